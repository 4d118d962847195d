//! Levels: classes of processors that can run the same code.
//!
//! Code for a level uses only the instructions of the level, and the generic parameters of its vector unit. So its results are bit-equal to those of code for
//! one of the processors, but it may be a little slower.

use super::{AVX2, AVX512, MACHINES, Machine, Target};

/// A class of x86-64 processors.
struct Level {
    /// LLVM's name of the level.
    cpu: &'static str,
    machine: &'static Machine,
    /// The instruction sets in addition to those of lower levels, by LLVM's names.
    features: &'static [&'static str],
}

/// The levels, from the lowest to the highest.
static LEVELS: [Level; 2] = [
    Level {
        cpu: "x86-64-v3",
        machine: &AVX2,
        features: &[
            "cx16", "sahf", "popcnt", "sse4.2", "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe",
        ],
    },
    Level {
        cpu: "x86-64-v4",
        machine: &AVX512,
        features: &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
    },
];

impl Target {
    /// Returns the targets of all levels, from the lowest to the highest. Returns none if this program is not for x86-64.
    pub fn levels() -> Vec<Target> {
        let levels = LEVELS.iter().filter(|_| cfg!(target_arch = "x86_64"));
        levels.map(|level| Target::new(level.cpu, "")).collect()
    }

    /// Returns the target whose code runs on this processor with bit-equal results: the level with the same vector unit, if the processor has all instructions
    /// of the level. The order in which sums are added must not depend on other parameters of the machine.
    pub fn level(&self) -> Option<Target> {
        let is_same = |level: &&Level| {
            let (own, other) = (self.machine, level.machine);
            own.vector == other.vector && own.loops.accumulators == other.loops.accumulators
        };
        let position = LEVELS
            .iter()
            .position(|level| is_same(&level))
            .filter(|_| self.is_x86())?;
        let has = |feature: &&str| self.features.split(',').any(|f| f.strip_prefix('+') == Some(*feature));
        let mut needed = LEVELS.iter().take(position + 1).flat_map(|level| level.features);
        // A target with a name but without a list of features has the instructions of its machine's vector unit.
        let has_all = self.features.is_empty() || needed.all(has);
        let level = LEVELS.get(position).filter(|_| has_all)?;
        Some(Target::new(level.cpu, ""))
    }

    /// Returns this target, which must be a level, once with each of the machines that it serves. Plans for these machines differ in tiles and tasks.
    pub fn served(&self) -> Vec<Target> {
        let with = |machine: &&'static Machine| Target {
            machine,
            ..self.clone()
        };
        let targets = MACHINES.iter().map(with);
        targets.filter(|target| target.level().as_ref() == Some(self)).collect()
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;
    use crate::target::{SAPPHIRE_RAPIDS, ZEN4, ZEN5};

    const V3: &str = "+cx16,+sahf,+popcnt,+sse4.2,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe";
    const V4: &str = "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl";

    fn level(cpu: &str, features: &str) -> Option<String> {
        Target::new(cpu, features).level().map(|level| level.cpu)
    }

    #[test]
    fn processors_have_the_level_of_their_vector_unit() {
        for (cpu, expected) in [
            ("sapphirerapids", Some("x86-64-v4")),
            ("znver5", Some("x86-64-v4")),
            ("x86-64-v4", Some("x86-64-v4")),
            ("znver3", Some("x86-64-v3")),
            ("x86-64-v3", Some("x86-64-v3")),
            ("x86-64-v2", None),
            ("no such processor", None),
        ] {
            assert_eq!(level(cpu, "").as_deref(), expected, "{cpu}");
        }
    }

    #[test]
    fn all_instructions_of_a_level_are_needed() {
        let both = format!("{V3},{V4},+avx512fp16");
        assert_eq!(level("sapphirerapids", &both).as_deref(), Some("x86-64-v4"));
        assert_eq!(level("a new one", &both).as_deref(), Some("x86-64-v4"));
        assert_eq!(level("haswell", V3).as_deref(), Some("x86-64-v3"));
        for feature in both.split(',').filter(|f| *f != "+avx512fp16") {
            let without = both.replace(&format!("{feature},"), &format!("{},", feature.replace('+', "-")));
            // Without the main instructions of AVX-512 it is another vector unit.
            assert_ne!(
                level("sapphirerapids", &without).as_deref(),
                Some("x86-64-v4"),
                "{feature}"
            );
        }
    }

    #[test]
    fn a_level_serves_the_machines_of_its_vector_unit() {
        let [v3, v4] = [Target::new("x86-64-v3", ""), Target::new("x86-64-v4", "")];
        assert_eq!(Target::levels(), [v3.clone(), v4.clone()]);
        let names = |level: &Target| level.served().iter().map(|t| t.machine.name).collect::<Vec<_>>();
        assert_eq!(names(&v3), [AVX2.name]);
        assert_eq!(names(&v4), [SAPPHIRE_RAPIDS.name, ZEN4.name, ZEN5.name, AVX512.name]);
        assert_eq!(
            Target {
                machine: &ZEN4,
                ..v4.clone()
            }
            .level(),
            Some(v4)
        );
    }
}
