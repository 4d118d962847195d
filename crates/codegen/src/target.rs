//! What code is generated for: the processor, and the shape of its vector unit.

/// The vector unit of a processor, as far as tile sizes depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorUnit {
    /// Number of f32 lanes of a vector register: 16 (AVX-512), 8 (AVX2) or 4 (anything else).
    pub lanes: i64,
    /// Number of vector registers: 32 or 16.
    pub registers: i64,
    /// True when a fused multiply-add is one instruction.
    pub fma: bool,
}

impl VectorUnit {
    /// AVX-512: 32 registers of 16 lanes.
    pub const AVX512: VectorUnit = VectorUnit {
        lanes: 16,
        registers: 32,
        fma: true,
    };
    /// AVX2 with FMA: 16 registers of 8 lanes.
    pub const AVX2: VectorUnit = VectorUnit {
        lanes: 8,
        registers: 16,
        fma: true,
    };
    /// SSE2: 16 registers of 4 lanes, no fused multiply-add.
    pub const SSE2: VectorUnit = VectorUnit {
        lanes: 4,
        registers: 16,
        fma: false,
    };
    /// NEON: 32 registers of 4 lanes.
    pub const NEON: VectorUnit = VectorUnit {
        lanes: 4,
        registers: 32,
        fma: true,
    };
}

/// A processor to generate code for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// LLVM's name of the processor, for example `znver5` or `x86-64-v3`.
    pub cpu: String,
    /// LLVM's feature string, for example `+avx2,+fma`; may be empty.
    pub features: String,
    /// The vector unit that kernels are tiled for.
    pub vector: VectorUnit,
    /// Bytes of one core's second-level cache, from which blocking is derived.
    pub l2_bytes: i64,
}

impl Target {
    /// The processor `cpu` (LLVM's name) with features `features` (LLVM's notation, or empty: those that the name implies).
    ///
    /// The vector unit is taken from the features when they mention one, otherwise from the name; an unknown name gets the
    /// portable four lanes.
    pub fn new(cpu: &str, features: &str) -> Target {
        let has = |f: &str| features.split(',').any(|x| x.strip_prefix('+') == Some(f));
        let vector = if has("avx512f") && has("avx512vl") {
            VectorUnit::AVX512
        } else if has("avx2") && has("fma") {
            VectorUnit::AVX2
        } else if has("neon") || cfg!(target_arch = "aarch64") {
            VectorUnit::NEON
        } else if features.is_empty() {
            vector_unit_of(cpu)
        } else {
            VectorUnit::SSE2
        };
        Target {
            cpu: cpu.to_owned(),
            features: features.to_owned(),
            vector,
            l2_bytes: 1 << 20,
        }
    }
}

/// The vector unit that LLVM's processor names imply.
fn vector_unit_of(cpu: &str) -> VectorUnit {
    const AVX512: &[&str] = &[
        "x86-64-v4",
        "skylake-avx512",
        "cascadelake",
        "cooperlake",
        "cannonlake",
        "icelake-client",
        "icelake-server",
        "tigerlake",
        "rocketlake",
        "sapphirerapids",
        "emeraldrapids",
        "graniterapids",
        "graniterapids-d",
        "diamondrapids",
        "znver4",
        "znver5",
    ];
    const AVX2: &[&str] = &[
        "x86-64-v3",
        "haswell",
        "core-avx2",
        "broadwell",
        "skylake",
        "alderlake",
        "raptorlake",
        "meteorlake",
        "arrowlake",
        "arrowlake-s",
        "lunarlake",
        "pantherlake",
        "gracemont",
        "sierraforest",
        "grandridge",
        "znver1",
        "znver2",
        "znver3",
    ];
    if AVX512.contains(&cpu) {
        VectorUnit::AVX512
    } else if AVX2.contains(&cpu) {
        VectorUnit::AVX2
    } else {
        VectorUnit::SSE2
    }
}
