//! Intel Sapphire Rapids and its successors.
//!
//! The machine of most measurements: a virtual machine with two cores of a Xeon (Sapphire Rapids, later Emerald Rapids), AVX-512, one thread if
//! nothing else is said. "Recorded" figures compare variants of one kernel on it. "Not measured" means that no figures are recorded: these values were
//! chosen while kernels were developed on the machine, and how flat the optimum is, is not known.

use super::machine::{
    Caches, ConvParameters, GemmParameters, LoopParameters, Machine, PartitionParameters, Ports, WindowParameters,
    WinogradParameters,
};
use super::vector::VectorUnit;

/// Intel Sapphire Rapids, Emerald Rapids and later server processors.
pub static SAPPHIRE_RAPIDS: Machine = Machine {
    name: "Sapphire Rapids",
    cpus: &[
        "sapphirerapids",
        "emeraldrapids",
        "graniterapids",
        "graniterapids-d",
        "graniterapids_d",
        "diamondrapids",
    ],
    ..PARAMETERS
};

/// All parameters, for machines that inherit them.
pub(super) const PARAMETERS: Machine = Machine {
    name: "",
    cpus: &[],
    vector: VectorUnit::AVX512,
    // Documented by Intel. Matmuls reached 167 to 176 GFLOP/s of about 190.
    ports: Ports {
        fma: 2.0,
        fma_latency: 4.0,
        vector_loads: 2.0,
        broadcasts: 2.0,
    },
    // Documented by Intel, but for L3: what the virtual machine reports, which shares it with others.
    caches: Caches {
        line: 64,
        l1d: 48 << 10,
        l2: 2 << 20,
        l3: 300 << 20,
    },
    partition: PartitionParameters {
        // Not measured.
        worthwhile_ratio: 0.95,
        // Not measured.
        gemm_task_panels: 0.1,
        // Not measured.
        gemm_tasks_per_thread: 8,
        // Not measured.
        gemm_task_rows: 96,
        // Not measured.
        conv_task_rows: 0.25,
        // Not measured; written for two and four threads.
        image_parts: 4,
        // Half of L2. Not measured.
        resident_bytes: 1 << 20,
        // Not measured.
        prefetch_parts: 8,
    },
    gemm: GemmParameters {
        // Recorded for m, n, k of 128 to 2048, GFLOP/s: 6x64 155 to 176, 8x48 156 to 175, 12x32 160 to 174. Flat to 5 % at each size.
        tile_vectors: &[2, 3, 4],
        // Recorded with 32 columns: 14 rows 157 to 176 GFLOP/s, 12 rows 160 to 174. Neither spills.
        tile_rows: 14,
        // Recorded for 1 row: 2 to 4 vectors are equal, memory decides. Recorded for 8 rows: 32 and 48 columns are equal. 4 rows not measured.
        few_rows: 4,
        few_rows_vectors: 4,
        // Not measured separately: fitted with the next one so that the chosen width is that of the fastest tile, while another virtual machine shared
        // the core.
        row_cycles: 0.4,
        // As above.
        vector_cycles: 1.1,
        // Recorded: 256 to 512 are equal. 512 with 1024 columns is 20 % slower at 1024^3, 1024 with 512 columns 14 to 27 % at 2048^3. Shorter chains round
        // less: the largest error at k = 768 is 4.9e-6 for one chain, 2.0e-6 for chains of 256.
        k_block: 384,
        // Not measured. With B's block of 384 KB it fills a third of L2.
        a_block_bytes: 320 << 10,
        // Recorded: best of 128 rows. The product with `k_block` must stay below about 1 MB (see there).
        task_columns: 256,
        // Not measured.
        tasks: 8,
        // Recorded: 1, 2, 4 and 8 within 2 %.
        unroll: 4,
        // Recorded: prefetching 8 rows of B ahead gains 1 to 3 % at large sizes, 16 to 32 rows 10 to 30 % where 8 rows of A meet weights from L3. The
        // distance in elements, 32 to 128 rows, is not measured.
        prefetch: 2048,
        // Not measured.
        streamed_rows: 7,
        // Recorded for 1 row: 29 GB/s, L3's bandwidth. Other numbers of rows are not measured.
        read_bound_rows: 4,
        // Not measured.
        cached_bytes: 4 << 20,
        // Recorded: equal at 128 elements, 1 to 6 % slower in place at 512, half as fast at 1024.
        row_stride_in_place: 256,
    },
    conv: ConvParameters {
        // Recorded: 28 accumulators (14x2, 7x4) reach 167 to 189 GFLOP/s with weights in L2. 28 columns of one vector are not measured.
        tile_columns: 28,
        // This and the cycles of weights: not measured separately, fitted to the fastest tiles of the convolutions of ResNet and MobileNet.
        column_cycles: 0.15,
        l1_weight_cycles: 0.15,
        l2_weight_cycles: 0.35,
        far_weight_cycles: 0.5,
        // Not measured.
        second_tile: 1.005,
        // 5/6 of L1d. Not measured.
        l1_weight_bytes: 40 << 10,
        // Half of L1d. Not measured.
        partial_bytes: 24 << 10,
        // Not measured.
        long_partial_bytes: 64 << 10,
        // Not measured.
        tasks: 16,
        // Not measured.
        heavy_tasks: 8,
        // Not measured.
        pointwise_rows: 32,
        // Recorded: 2 to 16 within 8 %, as long as LLVM does not spill. It does from 8 on in its full pipelines.
        unroll: 4,
        // Recorded: 16 to 32 channels ahead gain 0 to 5 % for weights in L2, 15 % for 512 channels of 7x7. The distance of 2048 elements, 32 to 128
        // channels, is not measured.
        prefetch: 2048,
        // Not measured: 256 KB of weights.
        few_weights: 1 << 16,
        // Not measured; for rows that another thread wrote.
        units_ahead: 2,
    },
    winograd: WinogradParameters {
        // Not measured. 49 tiles of 256 channels gained (262 against 183 GFLOP/s), 16 tiles of 512 channels lost (120 against 143).
        tiles: 32,
        // Not measured.
        tile_columns: 28,
        // A quarter of L2. Recorded for F(4x4, 3x3), 64 channels of 56x56: all tiles at once reach 271 GFLOP/s, one row of tiles at a time 484.
        input_bytes: 512 << 10,
        // Not measured separately: fitted to whole kernels.
        transform_cycles: 45.0,
        // Not measured.
        weight_bytes_per_cycle: 12.0,
        // Not measured.
        worthwhile_ratio: 0.9,
        // Not measured; as of direct convolutions.
        unroll: 4,
        // Recorded for F(4x4, 3x3), 128 channels: 452 against 293 GFLOP/s without, at 16 to 32 channels ahead. The distance of 2048 elements is not measured.
        prefetch: 2048,
    },
    window: WindowParameters {
        // Not measured.
        depthwise_columns: 14,
        // Not measured.
        depthwise_rows: 14,
        // Not measured.
        pool_columns: 8,
    },
    loops: LoopParameters {
        // Not measured.
        small: 1 << 15,
        // Not measured.
        task: 1 << 13,
        // Latency of 4 cycles times 2 additions a cycle would need 8. Not measured.
        accumulators: 4,
        // Recorded in L1: one vector is within 8 % of two.
        interleaved: 2,
        // Not measured: L2, so that what is in use stays in L1.
        row_locality: 2,
    },
};
