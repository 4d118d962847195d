//! The parameters of a machine: what kernel selection and emission read of a processor besides its instruction set.
//!
//! The files beside this one hold the values, one machine a file, and say of each where it comes from. The fields here give meanings and units.

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

/// Number of instructions on whole vectors that start in a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ports {
    /// Fused multiply-adds a cycle.
    pub fma: f64,
    /// Cycles from a multiply-add to one that adds to its result.
    pub fma_latency: f64,
    /// Loads of whole vectors a cycle.
    pub vector_loads: f64,
    /// Loads of one element into all lanes a cycle.
    pub broadcasts: f64,
}

impl Ports {
    /// Cycles of one step of a register tile: `broadcasts` elements, each multiplied with `vectors` vectors.
    pub fn tile_step(&self, broadcasts: i64, vectors: i64) -> f64 {
        let multiply_adds = (broadcasts * vectors) as f64 / self.fma;
        let loads = broadcasts as f64 / self.broadcasts + vectors as f64 / self.vector_loads;
        multiply_adds.max(loads).max(self.fma_latency)
    }
}

/// Sizes of caches, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caches {
    /// A cache line.
    pub line: i64,
    /// First-level data cache of a core.
    pub l1d: i64,
    /// Second-level cache of a core.
    pub l2: i64,
    /// Last-level cache, which several cores share.
    pub l3: i64,
}

impl Caches {
    /// f32 elements of a cache line.
    pub fn line_elements(&self) -> i64 {
        (self.line / 4).max(1)
    }
}

/// Parameters of the division of kernels among threads, and of tiling over the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartitionParameters {
    /// Largest ratio of the predicted time of smaller tasks to the present one for which tasks are made smaller.
    pub worthwhile_ratio: f64,
    /// Cost of a task of a matmul besides its columns, in panels of B.
    pub gemm_task_panels: f64,
    /// Tasks of a matmul for each thread, so that a thread that is slowed down for a while leaves work to the others.
    pub gemm_tasks_per_thread: i64,
    /// Fewest rows of a task of a matmul: those for which loading its part of B into the core's cache is worthwhile.
    pub gemm_task_rows: i64,
    /// Cost of a task of a direct convolution besides its rows, in rows: it reads the weights of its channels again.
    pub conv_task_rows: f64,
    /// Parts of an image, at most, each of which is computed with all of its channels before the next. Two, four, ... threads then have the
    /// rows in their caches that they wrote in the kernel before. More parts would read the weights more often.
    pub image_parts: i64,
    /// Bytes of an intermediate result that a core's cache keeps from one kernel to the next, beside what else these read. Attention is
    /// tiled over the heads where all scores are at least twice as large.
    pub resident_bytes: i64,
    /// Parts, at most, into which the next weights are split for prefetching.
    pub prefetch_parts: i64,
}

/// Parameters of matmuls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GemmParameters {
    /// Widths of register tiles that are considered, in vectors; the first of equals is chosen.
    pub tile_vectors: &'static [i64],
    /// Most rows of a register tile.
    pub tile_rows: i64,
    /// Rows up to which the widest tile is chosen, since only its columns hide the latency of the multiply-adds.
    pub few_rows: i64,
    /// Width of that tile, in vectors.
    pub few_rows_vectors: i64,
    /// Cycles of a step of k for each row, besides those of the ports: rows of A displace each other in L1.
    pub row_cycles: f64,
    /// Cycles of a step of k for each vector of B, besides those of the ports: B is read from L2.
    pub vector_cycles: f64,
    /// Longest chain of multiply-adds before it is added to the result (KC), in steps of k.
    pub k_block: i64,
    /// Bytes of A's block, which stays in L2 while a column block of B is read.
    pub a_block_bytes: i64,
    /// Most columns of a task, in elements: its block of B stays in L2 while the rows are read.
    pub task_columns: i64,
    /// Fewest tasks, which keep a few threads evenly busy.
    pub tasks: i64,
    /// Steps of k of one iteration of the inner loop.
    pub unroll: i64,
    /// Elements of a packed panel that are prefetched ahead; 0 for no prefetch.
    pub prefetch: i64,
    /// Rows for each two lanes of a vector up to which the arithmetic on a weight takes no longer than reading it from memory.
    pub streamed_rows: i64,
    /// Rows up to which the time of a matmul is that of reading the weights.
    pub read_bound_rows: i64,
    /// Bytes of weights that a core's caches are expected to keep from one call to the next.
    pub cached_bytes: i64,
    /// Longest distance of the rows of an unpacked B, in elements, at which B is read in place.
    pub row_stride_in_place: i64,
}

/// Parameters of direct convolutions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvParameters {
    /// Most columns of a register tile.
    pub tile_columns: i64,
    /// Cycles of a step for each column, besides those of the ports.
    pub column_cycles: f64,
    /// Cycles of a step for each vector of weights, besides those of the ports, where the weights are in L1.
    pub l1_weight_cycles: f64,
    /// Likewise where the weights of one block of channels fill L1.
    pub l2_weight_cycles: f64,
    /// Likewise where there are more weights than elements of the input.
    pub far_weight_cycles: f64,
    /// Factor of the estimated time of a row that needs a second, narrower tile: its code costs space in the instruction cache.
    pub second_tile: f64,
    /// Bytes of weights that stay in L1 beside the input.
    pub l1_weight_bytes: i64,
    /// Bytes of the partial sums of a task's rows, for kernels of one tap.
    pub partial_bytes: i64,
    /// Likewise for kernels of several taps, between whose partial sums a chain is long.
    pub long_partial_bytes: i64,
    /// Fewest tasks of a pointwise convolution, which keep a few threads evenly busy.
    pub tasks: i64,
    /// Fewest tasks where there are several taps or mostly weights.
    pub heavy_tasks: i64,
    /// Most rows into which the pixels of a pointwise convolution are divided.
    pub pointwise_rows: i64,
    /// Input channels of one iteration of the inner loop: a power of two, at least 2.
    pub unroll: i64,
    /// Elements of weights that are prefetched ahead; 0 for no prefetch.
    pub prefetch: i64,
    /// Elements of weights below which the weights of the next group are not prefetched.
    pub few_weights: i64,
    /// Units ahead of which the input of a pointwise convolution is prefetched.
    pub units_ahead: i64,
}

/// Parameters of Winograd convolutions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WinogradParameters {
    /// Fewest tiles of an image for which reading the transformed weights, 16/9 of the plain ones, is worthwhile.
    pub tiles: i64,
    /// Most columns of a register tile.
    pub tile_columns: i64,
    /// Bytes of the transformed input of a task, at most.
    pub input_bytes: i64,
    /// Cycles of the transformation of one tile, for one vector of channels.
    pub transform_cycles: f64,
    /// Bytes of weights that can be read in a cycle, from L2 or further away.
    pub weight_bytes_per_cycle: f64,
    /// Largest ratio of the predicted time to that of the direct convolution for which Winograd's algorithm is chosen.
    pub worthwhile_ratio: f64,
    /// Input channels of one iteration of the inner loop.
    pub unroll: i64,
    /// Elements of weights that are prefetched ahead; 0 for no prefetch.
    pub prefetch: i64,
}

/// Parameters of depthwise convolutions and pooling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowParameters {
    /// Most output columns of a register tile of a depthwise convolution.
    pub depthwise_columns: i64,
    /// Most output rows of a task of a depthwise convolution.
    pub depthwise_rows: i64,
    /// Output columns of a register tile of a pooling.
    pub pool_columns: i64,
}

/// Parameters of loop nests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopParameters {
    /// Scalar iterations up to which a nest is one task.
    pub small: i64,
    /// Scalar iterations of a task.
    pub task: i64,
    /// Most accumulators of a vectorised reduction, so that additions need not wait for each other.
    pub accumulators: i64,
    /// Vectors of a polynomial that are computed side by side.
    pub interleaved: i64,
    /// Locality of the prefetch of the next task's row, as LLVM counts: 3 for L1, 2 for L2, 1 for L3.
    pub row_locality: i64,
}
