//! Vector units.

/// Families of vector instructions that kernels distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstructionSet {
    /// AVX-512 with its instructions for doublewords and for shorter vectors (F, DQ and VL).
    Avx512,
    /// AVX2 and FMA.
    Avx2,
    /// SSE2, or the portable operations that LLVM maps to any processor.
    Portable,
    /// NEON.
    Neon,
}

/// The properties of a processor's vector unit on which kernels depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorUnit {
    /// The instructions of the vector unit.
    pub instructions: InstructionSet,
    /// Number of f32 lanes of a vector register: 16 (AVX-512), 8 (AVX2) or 4 (anything else).
    pub lanes: i64,
    /// Number of vector registers: 32 or 16.
    pub registers: i64,
    /// Whether a fused multiply-add is one instruction.
    pub fma: bool,
}

impl VectorUnit {
    /// AVX-512 with the instructions for doublewords: 32 registers of 16 lanes.
    pub const AVX512: VectorUnit = VectorUnit {
        instructions: InstructionSet::Avx512,
        lanes: 16,
        registers: 32,
        fma: true,
    };
    /// AVX2 with FMA: 16 registers of 8 lanes.
    pub const AVX2: VectorUnit = VectorUnit {
        instructions: InstructionSet::Avx2,
        lanes: 8,
        registers: 16,
        fma: true,
    };
    /// SSE2: 16 registers of 4 lanes, no fused multiply-add.
    pub const SSE2: VectorUnit = VectorUnit {
        instructions: InstructionSet::Portable,
        lanes: 4,
        registers: 16,
        fma: false,
    };
    /// NEON: 32 registers of 4 lanes.
    pub const NEON: VectorUnit = VectorUnit {
        instructions: InstructionSet::Neon,
        lanes: 4,
        registers: 32,
        fma: true,
    };
}
