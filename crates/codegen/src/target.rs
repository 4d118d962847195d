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
    /// AVX-512 with the instructions for doublewords: 32 registers of 16 lanes.
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
}

impl Target {
    /// The processor `cpu` (LLVM's name) with features `features` (LLVM's notation, or empty: those that the name implies).
    ///
    /// The vector unit is taken from the features when they mention one, otherwise from the name; an unknown name gets the
    /// portable four lanes, and see [`Target::is_known`].
    pub fn new(cpu: &str, features: &str) -> Target {
        let has = |f: &str| features.split(',').any(|x| x.strip_prefix('+') == Some(f));
        let vector = if ["avx512f", "avx512vl", "avx512dq"].into_iter().all(has) {
            VectorUnit::AVX512
        } else if has("avx2") && has("fma") {
            VectorUnit::AVX2
        } else if has("neon") || cfg!(target_arch = "aarch64") {
            VectorUnit::NEON
        } else if features.is_empty() {
            vector_unit_of(cpu).unwrap_or(VectorUnit::SSE2)
        } else {
            VectorUnit::SSE2
        };
        Target {
            cpu: cpu.to_owned(),
            features: features.to_owned(),
            vector,
        }
    }

    /// True when the features are given, or the name is one that LLVM has for an x86-64 processor. LLVM itself takes any name,
    /// and for one that it does not know silently generates code for the oldest.
    pub fn is_known(&self) -> bool {
        !self.features.is_empty() || vector_unit_of(&self.cpu).is_some() || !cfg!(target_arch = "x86_64")
    }
}

/// The vector unit that LLVM's name of an x86-64 processor implies.
fn vector_unit_of(cpu: &str) -> Option<VectorUnit> {
    const AVX512: &str = "x86-64-v4 skylake-avx512 skx cascadelake cooperlake cannonlake icelake-client icelake-server \
        tigerlake rocketlake sapphirerapids emeraldrapids graniterapids graniterapids-d diamondrapids znver4 znver5";
    const AVX2: &str = "x86-64-v3 haswell core-avx2 broadwell skylake alderlake raptorlake meteorlake arrowlake arrowlake-s \
        lunarlake pantherlake wildcatlake novalake gracemont sierraforest grandridge clearwaterforest bdver4 znver1 znver2 \
        znver3";
    const SSE2: &str = "generic x86-64 x86-64-v2 nocona core2 penryn nehalem corei7 westmere sandybridge corei7-avx \
        ivybridge core-avx-i bonnell atom silvermont slm goldmont goldmont-plus tremont k8 k8-sse3 opteron opteron-sse3 \
        athlon64 athlon64-sse3 athlon-fx amdfam10 barcelona btver1 btver2 bdver1 bdver2 bdver3 knl knm";
    let lists = [
        (AVX512, VectorUnit::AVX512),
        (AVX2, VectorUnit::AVX2),
        (SSE2, VectorUnit::SSE2),
    ];
    lists
        .into_iter()
        .find(|(names, _)| names.split_whitespace().any(|n| n == cpu))
        .map(|(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_features_imply_vector_units() {
        assert_eq!(Target::new("x86-64-v4", "").vector, VectorUnit::AVX512);
        assert_eq!(Target::new("znver3", "").vector, VectorUnit::AVX2);
        assert_eq!(Target::new("x86-64", "").vector, VectorUnit::SSE2);
        assert_eq!(Target::new("znver5", "+avx2,+fma,-avx512f").vector, VectorUnit::AVX2);
        assert!(Target::new("haswell", "").is_known());
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn misspelt_names_are_not_known() {
        assert!(!Target::new("hasswell", "").is_known());
        assert!(!Target::new("", "").is_known());
    }
}
