//! Tests of the names, the parameters and the keys of targets.

use super::*;

#[test]
fn names_and_features_imply_vector_units() {
    assert_eq!(Target::new("x86-64-v4", "").vector(), VectorUnit::AVX512);
    assert_eq!(Target::new("znver3", "").vector(), VectorUnit::AVX2);
    assert_eq!(Target::new("x86-64", "").vector(), VectorUnit::SSE2);
    assert_eq!(Target::new("znver5", "+avx2,+fma,-avx512f").vector(), VectorUnit::AVX2);
    assert!(Target::new("haswell", "").is_known());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn names_imply_machines_unless_features_contradict_them() {
    let machine = |cpu: &str, features: &str| Target::new(cpu, features).machine.name;
    let avx512 = "+avx2,+fma,+avx512f,+avx512vl,+avx512dq";
    assert_eq!(machine("emeraldrapids", avx512), "Sapphire Rapids");
    assert_eq!(machine("znver4", ""), "Zen 4");
    assert_eq!(machine("znver4", avx512), "Zen 4");
    assert_eq!(machine("znver4", "+avx2,+fma"), "generic AVX2");
    assert_eq!(machine("", avx512), "generic AVX-512");
    assert_eq!(machine("a-future-processor", "+avx2,+fma,+avx512f"), "generic AVX2");
    assert_eq!(machine("haswell", "+sse4.2"), "generic SSE2");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn misspelt_names_are_not_known() {
    assert!(!Target::new("hasswell", "").is_known());
    assert!(!Target::new("", "").is_known());
}

#[test]
fn each_name_belongs_to_one_machine() {
    let mut names: Vec<&str> = MACHINES.iter().map(|m| m.name).collect();
    names.extend(MACHINES.iter().flat_map(|m| m.cpus));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(!names.contains(&""));
}

#[test]
fn caches_grow_and_lanes_match() {
    for machine in MACHINES {
        let name = machine.name;
        let c = &machine.caches;
        assert!(
            c.line > 0 && c.line < c.l1d && c.l1d < c.l2 && c.l2 < c.l3,
            "{name}: {c:?}"
        );
        assert!(c.l1d % c.line == 0 && c.l2 % c.line == 0, "{name}: {c:?}");
        let v = machine.vector;
        let (lanes, registers) = match v.instructions {
            InstructionSet::Avx512 => (16, 32),
            InstructionSet::Avx2 => (8, 16),
            InstructionSet::Portable => (4, 16),
            InstructionSet::Neon => (4, 32),
        };
        assert_eq!((v.lanes, v.registers), (lanes, registers), "{name}");
        assert!(c.line % (4 * v.lanes) == 0, "{name}: vectors cross lines");
    }
}

#[test]
fn parameters_are_plausible() {
    for machine in MACHINES {
        let (name, ports) = (machine.name, &machine.ports);
        for value in [ports.fma, ports.fma_latency, ports.vector_loads, ports.broadcasts] {
            assert!((0.5..=16.0).contains(&value), "{name}: {ports:?}");
        }
        for ratio in [machine.partition.worthwhile_ratio, machine.winograd.worthwhile_ratio] {
            assert!(ratio > 0.5 && ratio <= 1.0, "{name}: {ratio}");
        }
        let g = &machine.gemm;
        assert!(
            !g.tile_vectors.is_empty() && g.tile_vectors.iter().all(|v| (1..=4).contains(v)),
            "{name}: {g:?}"
        );
        assert!(
            g.k_block >= 64 && g.tile_rows >= 1 && g.tasks >= 1 && g.prefetch >= 0,
            "{name}: {g:?}"
        );
        assert!(g.task_columns >= 4 * machine.vector.lanes, "{name}: {g:?}");
        let c = &machine.conv;
        assert!(
            c.l1_weight_cycles <= c.l2_weight_cycles && c.l2_weight_cycles <= c.far_weight_cycles,
            "{name}: {c:?}"
        );
        assert!(
            c.partial_bytes <= c.long_partial_bytes && c.heavy_tasks <= c.tasks,
            "{name}: {c:?}"
        );
        for unroll in [g.unroll, c.unroll, machine.winograd.unroll] {
            assert!(
                unroll.count_ones() == 1 && (2..=16).contains(&unroll),
                "{name}: {unroll}"
            );
        }
        let l = &machine.loops;
        assert!(
            l.task <= l.small && l.accumulators >= 1 && (1..=3).contains(&l.row_locality),
            "{name}: {l:?}"
        );
        // A tile of two accumulators and more can be computed side by side.
        assert!(l.accumulators % l.interleaved == 0, "{name}: {l:?}");
    }
}

/// Parameters that are sizes of what a cache keeps must fit it, on the machines that have their own file.
#[test]
fn what_stays_in_a_cache_fits_it() {
    for machine in [&SAPPHIRE_RAPIDS, &ZEN4, &ZEN5] {
        let (name, c, g) = (machine.name, &machine.caches, &machine.gemm);
        assert!(machine.conv.l1_weight_bytes < c.l1d, "{name}");
        assert!(machine.conv.partial_bytes < c.l1d, "{name}");
        assert!(machine.winograd.input_bytes < c.l2, "{name}");
        assert!(machine.partition.resident_bytes < c.l2, "{name}");
        assert!(g.a_block_bytes + 4 * g.k_block * g.task_columns < c.l2, "{name}");
        assert!(4 * g.k_block * g.tile_rows < c.l1d, "{name}");
    }
}

/// Keys of caches contain the debug form of a target: it must show all parameters.
#[test]
fn targets_with_different_parameters_have_different_debug_forms() {
    let of = |machine: &'static Machine| Target {
        machine,
        ..Target::new("x86-64-v4", "")
    };
    let forms = MACHINES.map(|m| format!("{:?}", of(m)));
    for (i, one) in forms.iter().enumerate() {
        assert!(forms.iter().skip(i + 1).all(|other| other != one));
    }
    static CHANGED: Machine = Machine {
        name: "Sapphire Rapids",
        cpus: SAPPHIRE_RAPIDS.cpus,
        gemm: GemmParameters {
            prefetch: 0,
            ..sapphire_rapids::PARAMETERS.gemm
        },
        ..sapphire_rapids::PARAMETERS
    };
    assert_ne!(format!("{:?}", of(&CHANGED)), format!("{:?}", of(&SAPPHIRE_RAPIDS)));
}
