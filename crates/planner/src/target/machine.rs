//! The parameters of a machine: the properties of a processor, besides its instruction set, that kernel selection and emission use.
//!
//! Each of the other files in this folder contains the values of one machine, with their origin. The fields here document meanings and units.

use super::vector::VectorUnit;

/// A microarchitecture: its vector unit, ports and caches, and the parameters of the cost model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Name of the microarchitecture, unique among [`MACHINES`](super::MACHINES).
    pub name: &'static str,
    /// The processors that these parameters serve, by LLVM's names.
    pub cpus: &'static [&'static str],
    /// The vector unit.
    pub vector: VectorUnit,
    /// Execution ports.
    pub ports: Ports,
    /// Caches.
    pub caches: Caches,
    /// Division of kernels among threads.
    pub partition: PartitionParameters,
    /// Matmuls.
    pub gemm: GemmParameters,
    /// Direct convolutions.
    pub conv: ConvParameters,
    /// Winograd convolutions.
    pub winograd: WinogradParameters,
    /// Depthwise convolutions and pooling.
    pub window: WindowParameters,
    /// Loop nests.
    pub loops: LoopParameters,
}

/// Throughput of the ports, in instructions on whole vectors per cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ports {
    /// Fused multiply-adds per cycle.
    pub fma: f64,
    /// Latency of a multiply-add in cycles, if the next one adds to its result.
    pub fma_latency: f64,
    /// Loads of whole vectors per cycle.
    pub vector_loads: f64,
    /// Loads of one element into all lanes, per cycle.
    pub broadcasts: f64,
}

impl Ports {
    /// Returns the cycles of one step of a register tile: `broadcasts` elements, each multiplied with `vectors` vectors.
    pub fn tile_step(&self, broadcasts: i64, vectors: i64) -> f64 {
        let multiply_adds = (broadcasts * vectors) as f64 / self.fma;
        let loads = broadcasts as f64 / self.broadcasts + vectors as f64 / self.vector_loads;
        multiply_adds.max(loads).max(self.fma_latency)
    }
}

/// Sizes of caches, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caches {
    /// Size of a cache line.
    pub line: i64,
    /// First-level data cache of a core.
    pub l1d: i64,
    /// Second-level cache of a core.
    pub l2: i64,
    /// Last-level cache, which several cores share.
    pub l3: i64,
}

impl Caches {
    /// Returns the number of f32 elements of a cache line.
    pub fn line_elements(&self) -> i64 {
        (self.line / 4).max(1)
    }
}

/// Parameters of the division of kernels among threads, and of tiling over the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartitionParameters {
    /// Maximum predicted time with smaller tasks, relative to the time with the present ones, for which tasks are made smaller.
    pub worthwhile_ratio: f64,
    /// Cost of a task of a matmul in addition to its columns, in panels of B.
    pub gemm_task_panels: f64,
    /// Number of tasks of a matmul for each thread. With several tasks, other threads take over work of a thread that is slowed down for a while.
    pub gemm_tasks_per_thread: i64,
    /// Minimum number of rows of a task of a matmul. For fewer, loading its part of B into the core's cache is not worthwhile.
    pub gemm_task_rows: i64,
    /// Cost of a task of a direct convolution in addition to its rows, in rows. Each task reads the weights of its channels again.
    pub conv_task_rows: f64,
    /// Maximum number of parts of an image. All channels of a part are computed before the next part, so that two, four, ... threads find the rows that they
    /// wrote in the previous kernel in their caches. More parts would read the weights more often.
    pub image_parts: i64,
    /// Size of an intermediate result that stays in a core's cache from one kernel to the next, beside the other data that these kernels read, in bytes.
    /// Attention is tiled over the heads if all scores are at least twice as large.
    pub resident_bytes: i64,
    /// Maximum number of parts into which the next weights are split for prefetching.
    pub prefetch_parts: i64,
}

/// Parameters of matmuls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GemmParameters {
    /// Widths of register tiles that are considered, in vectors. Of widths with equal estimated times, the first one is chosen.
    pub tile_vectors: &'static [i64],
    /// Maximum number of rows of a register tile.
    pub tile_rows: i64,
    /// Maximum number of rows for which a tile of `few_rows_vectors` vectors is used, because only many columns hide the latency of the multiply-adds.
    pub few_rows: i64,
    /// Width of the register tile for at most `few_rows` rows, in vectors.
    pub few_rows_vectors: i64,
    /// Cycles of a step of k for each row, in addition to those of the ports: rows of A evict each other from L1.
    pub row_cycles: f64,
    /// Cycles of a step of k for each vector of B, in addition to those of the ports: B is read from L2.
    pub vector_cycles: f64,
    /// Maximum number of terms of a sum that are accumulated in registers before they are added to the result (KC).
    pub k_block: i64,
    /// Size of the block of A that stays in L2 while a column block of B is read, in bytes.
    pub a_block_bytes: i64,
    /// Maximum number of columns of a task. Its block of B stays in L2 while the rows are read.
    pub task_columns: i64,
    /// Minimum number of tasks, which keeps a few threads evenly busy.
    pub tasks: i64,
    /// Number of steps of k in one iteration of the inner loop.
    pub unroll: i64,
    /// Distance in a packed panel at which weights are prefetched, in elements; 0 for no prefetch.
    pub prefetch: i64,
    /// Maximum number of rows, for each two lanes of a vector, for which the arithmetic on a weight takes no longer than reading it from memory.
    pub streamed_rows: i64,
    /// Maximum number of rows for which reading the weights determines the time of a matmul.
    pub read_bound_rows: i64,
    /// Size of the weights that are expected to stay in a core's caches from one call to the next, in bytes.
    pub cached_bytes: i64,
    /// Maximum distance between rows of an unpacked B, in elements, for which B is read in place.
    pub row_stride_in_place: i64,
}

/// Parameters of direct convolutions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvParameters {
    /// Maximum number of columns of a register tile.
    pub tile_columns: i64,
    /// Cycles of a step for each column, in addition to those of the ports.
    pub column_cycles: f64,
    /// Cycles of a step for each vector of weights, in addition to those of the ports, if the weights are in L1.
    pub l1_weight_cycles: f64,
    /// Cycles as `l1_weight_cycles`, if the weights of one block of channels fill L1.
    pub l2_weight_cycles: f64,
    /// Cycles as `l1_weight_cycles`, if there are more weights than elements of the input.
    pub far_weight_cycles: f64,
    /// Factor of the estimated time of a row that needs a second, narrower tile: its code costs space in the instruction cache.
    pub second_tile: f64,
    /// Size of the weights that stay in L1 beside the input, in bytes.
    pub l1_weight_bytes: i64,
    /// Maximum size of the partial sums of a task's rows, in bytes, for kernels of one tap.
    pub partial_bytes: i64,
    /// Maximum size as `partial_bytes`, for kernels of several taps, which access the partial sums more rarely.
    pub long_partial_bytes: i64,
    /// Minimum number of tasks of a pointwise convolution, which keeps a few threads evenly busy.
    pub tasks: i64,
    /// Minimum number of tasks if there are several taps or mostly weights.
    pub heavy_tasks: i64,
    /// Maximum number of rows into which the pixels of a pointwise convolution are divided.
    pub pointwise_rows: i64,
    /// Number of input channels in one iteration of the inner loop: a power of two, at least 2.
    pub unroll: i64,
    /// Distance at which weights are prefetched, in elements; 0 for no prefetch.
    pub prefetch: i64,
    /// Minimum number of weights for which the weights of the next group are prefetched.
    pub few_weights: i64,
    /// Number of units that the input of a pointwise convolution is prefetched in advance.
    pub units_ahead: i64,
}

/// Parameters of Winograd convolutions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WinogradParameters {
    /// Minimum number of tiles of an image. For fewer, reading the transformed weights, 16/9 of the plain ones, is not worthwhile.
    pub tiles: i64,
    /// Maximum number of columns of a register tile.
    pub tile_columns: i64,
    /// Maximum size of the transformed input of a task, in bytes.
    pub input_bytes: i64,
    /// Cycles of the transformation of one tile, for one vector of channels.
    pub transform_cycles: f64,
    /// Bytes of weights that can be read per cycle, from L2 or further away.
    pub weight_bytes_per_cycle: f64,
    /// Maximum predicted time, relative to that of the direct convolution, for which Winograd's algorithm is chosen.
    pub worthwhile_ratio: f64,
    /// Number of input channels in one iteration of the inner loop.
    pub unroll: i64,
    /// Distance at which weights are prefetched, in elements; 0 for no prefetch.
    pub prefetch: i64,
}

/// Parameters of depthwise convolutions and pooling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowParameters {
    /// Maximum number of output columns of a register tile of a depthwise convolution.
    pub depthwise_columns: i64,
    /// Maximum number of output rows of a task of a depthwise convolution.
    pub depthwise_rows: i64,
    /// Number of output columns of a register tile of a pooling.
    pub pool_columns: i64,
}

/// Parameters of loop nests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopParameters {
    /// Maximum number of scalar iterations of a loop nest that is one task.
    pub small: i64,
    /// Number of scalar iterations that a task should have.
    pub task: i64,
    /// Maximum number of accumulators of a vectorised reduction, so that additions need not wait for each other.
    pub accumulators: i64,
    /// Number of vectors for which a polynomial is computed interleaved.
    pub interleaved: i64,
    /// Locality of the prefetch of the next task's row, as LLVM counts: 3 for L1, 2 for L2, 1 for L3.
    pub row_locality: i64,
}
