//! AMD Zen 4.
//!
//! Measured on a virtual machine with two cores of a Zen 4 server processor, one thread. The kernels were written in C with intrinsics and compiled by clang
//! 22, not emitted by this crate. "Inherited" values are those of Sapphire Rapids and are not measured on Zen 4.

use super::machine::{Caches, ConvParameters, GemmParameters, Machine, PartitionParameters, Ports, WinogradParameters};
use super::sapphire_rapids::PARAMETERS;

/// AMD Zen 4.
pub static ZEN4: Machine = Machine {
    name: "Zen 4",
    cpus: &["znver4"],
    ports: Ports {
        // Measured: 114 to 117 GFLOP/s, the same with vectors of 256 bits, of which two start in a cycle.
        fma: 1.0,
        // Measured.
        fma_latency: 4.0,
        // Documented by AMD: 64 bytes a cycle from L1d, two loads of at most 256 bits. A load of 512 bits takes both.
        vector_loads: 1.0,
        // As above; a broadcast reads one element.
        broadcasts: 2.0,
    },
    // Documented by AMD; L3 of a core complex.
    caches: Caches {
        line: 64,
        l1d: 32 << 10,
        l2: 1 << 20,
        l3: 32 << 20,
    },
    partition: PartitionParameters {
        // The same half of L2 as on Sapphire Rapids. Not measured.
        resident_bytes: 512 << 10,
        ..PARAMETERS.partition
    },
    gemm: GemmParameters {
        // Measured: 8x32 and 6x64 reach 115 to 117 GFLOP/s with 128 and more rows. Where rows of A lie a multiple of 4096 bytes apart, 10 and more rows
        // exceed the 8 ways of L1d: at 128x4096x1024 8 rows reach 94 GFLOP/s, 10 rows 85, 12 rows 67, 14 rows 57.
        tile_rows: 8,
        // Measured: 4 rows with 64 columns are 7 to 8 % faster than with 32.
        few_rows: 4,
        few_rows_vectors: 4,
        // Measured at 128x3072x768: one chain of 768 reaches 111 GFLOP/s, split ones 95 to 108. Not taken over: shorter chains round less (see Sapphire
        // Rapids), and results shall have the same accuracy on all machines.
        k_block: 384,
        // Measured: prefetching B is 20 % slower with 1 row, and between 9 % slower and 3 % faster with more.
        prefetch: 0,
        // Inherited: widths, cycles of rows and vectors, bytes of A, columns and tasks, unrolling. `a_block_bytes` and the 384 KB of a task's B fit L2.
        ..PARAMETERS.gemm
    },
    conv: ConvParameters {
        // The same 5/6 of L1d as on Sapphire Rapids. Not measured.
        l1_weight_bytes: 26 << 10,
        // The same half of L1d as on Sapphire Rapids. Not measured.
        partial_bytes: 16 << 10,
        // Inherited: the rest. Measured with tiles of at most 14x2: 112 to 117 GFLOP/s, 512 channels of 7x7 96.
        ..PARAMETERS.conv
    },
    winograd: WinogradParameters {
        // Twice that of Sapphire Rapids, since half as many instructions on 512 bits start in a cycle. Not measured.
        transform_cycles: 90.0,
        // Inherited: the rest.
        ..PARAMETERS.winograd
    },
    // Inherited: windows and loops.
    ..PARAMETERS
};
