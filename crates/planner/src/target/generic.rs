//! Machines for processors without a file of their own, one for each vector unit.
//!
//! Unless stated otherwise, nothing has been measured on these machines. Values that are not given here are inherited from Sapphire Rapids. Caches are those of
//! the smallest processors of the class.

use super::machine::{Caches, ConvParameters, GemmParameters, Machine, Ports, WindowParameters};
use super::sapphire_rapids::PARAMETERS;
use super::vector::VectorUnit;

/// Any processor with AVX-512: x86-64-v4.
pub static AVX512: Machine = Machine {
    name: "generic AVX-512",
    cpus: &[
        "x86-64-v4",
        "skylake-avx512",
        "skylake_avx512",
        "skx",
        "cascadelake",
        "cooperlake",
        "cannonlake",
        "icelake-client",
        "icelake_client",
        "icelake-server",
        "icelake_server",
        "tigerlake",
        "rocketlake",
        "novalake",
    ],
    // Skylake and its successors have two units for multiply-adds of 512 bits, some of their cheaper versions only one.
    caches: Caches {
        line: 64,
        l1d: 32 << 10,
        l2: 256 << 10,
        l3: 8 << 20,
    },
    ..PARAMETERS
};

/// Parameters of tiles for 16 registers.
const NARROW_GEMM: GemmParameters = GemmParameters {
    tile_vectors: &[2],
    // 6 rows and 2 vectors use 15 of 16 registers.
    tile_rows: 6,
    ..PARAMETERS.gemm
};

/// Any processor with AVX2 and FMA: x86-64-v3.
pub static AVX2: Machine = Machine {
    name: "generic AVX2",
    cpus: &[
        "x86-64-v3",
        "haswell",
        "core-avx2",
        "core_4th_gen_avx",
        "core_4th_gen_avx_tsx",
        "broadwell",
        "core_5th_gen_avx",
        "core_5th_gen_avx_tsx",
        "skylake",
        "alderlake",
        "raptorlake",
        "meteorlake",
        "arrowlake",
        "arrowlake-s",
        "arrowlake_s",
        "lunarlake",
        "pantherlake",
        "wildcatlake",
        "gracemont",
        "sierraforest",
        "grandridge",
        "clearwaterforest",
        "bdver4",
        "znver1",
        "znver2",
        "znver3",
    ],
    vector: VectorUnit::AVX2,
    // Documented for Haswell to Skylake and Zen 2 to Zen 4, but for latencies of 5 cycles of the older ones.
    ports: Ports {
        fma: 2.0,
        fma_latency: 4.0,
        vector_loads: 2.0,
        broadcasts: 2.0,
    },
    // Haswell.
    caches: Caches {
        line: 64,
        l1d: 32 << 10,
        l2: 256 << 10,
        l3: 3 << 20,
    },
    gemm: GemmParameters {
        // Measured with `make bench-cost-model` on Sapphire Rapids, code for x86-64-v3: 4x24 is 1.34 to 1.45 times as fast as 6x16 where 24 columns cover
        // a matmul of 17, 19 or 24, and elsewhere between 7 % faster and slower. On Zen 4, C code for Haswell, 128 rows: 4x24 reaches 102 to 109 GFLOP/s,
        // 6x16 87 to 104, and in a later run on a busier host 87 to 105 and 80 to 100.
        tile_vectors: &[2, 3],
        // Measured on Zen 3, one thread: without prefetch, BERT with 128 tokens takes 0.94 of the time with it, an encoder of 30x32 tokens 0.96, an MLP of 200
        // rows 0.95. On Zen 4 with AVX-512, prefetching gained nothing either. Not measured on Intel's processors without AVX-512.
        prefetch: 0,
        ..NARROW_GEMM
    },
    conv: ConvParameters {
        // Measured on Zen 3, one thread: without prefetch here and in matmuls, ResNet-18 takes 0.96, ResNet-50 0.99, MobileNet 0.97 and U-Net 0.91 of the time.
        prefetch: 0,
        ..PARAMETERS.conv
    },
    window: NARROW_WINDOW,
    ..PARAMETERS
};

/// Any x86-64 processor, and the fallback for unknown ones: x86-64 and x86-64-v2.
pub static SSE2: Machine = Machine {
    name: "generic SSE2",
    cpus: &[
        "generic",
        "x86-64",
        "x86-64-v2",
        "nocona",
        "core2",
        "core_2_duo_ssse3",
        "penryn",
        "core_2_duo_sse4_1",
        "nehalem",
        "corei7",
        "core_i7_sse4_2",
        "westmere",
        "core_aes_pclmulqdq",
        "sandybridge",
        "corei7-avx",
        "core_2nd_gen_avx",
        "ivybridge",
        "core-avx-i",
        "core_3rd_gen_avx",
        "bonnell",
        "atom",
        "silvermont",
        "slm",
        "atom_sse4_2",
        "atom_sse4_2_movbe",
        "goldmont",
        "goldmont-plus",
        "goldmont_plus",
        "tremont",
        "k8",
        "k8-sse3",
        "opteron",
        "opteron-sse3",
        "athlon64",
        "athlon64-sse3",
        "athlon-fx",
        "amdfam10",
        "barcelona",
        "btver1",
        "btver2",
        "bdver1",
        "bdver2",
        "bdver3",
        // AVX-512 without the instructions for doublewords and shorter vectors.
        "knl",
        "mic_avx512",
        "knm",
    ],
    vector: VectorUnit::SSE2,
    // Nehalem.
    caches: Caches {
        line: 64,
        l1d: 32 << 10,
        l2: 256 << 10,
        l3: 4 << 20,
    },
    gemm: NARROW_GEMM,
    window: NARROW_WINDOW,
    ..PARAMETERS
};

/// Any processor with NEON.
pub static NEON: Machine = Machine {
    name: "generic NEON",
    cpus: &[],
    vector: VectorUnit::NEON,
    // Cortex-A76.
    caches: Caches {
        line: 64,
        l1d: 64 << 10,
        l2: 256 << 10,
        l3: 1 << 20,
    },
    window: NARROW_WINDOW,
    ..PARAMETERS
};

/// Parameters of windows for vectors of less than 16 lanes.
const NARROW_WINDOW: WindowParameters = WindowParameters {
    depthwise_columns: 8,
    ..PARAMETERS.window
};
