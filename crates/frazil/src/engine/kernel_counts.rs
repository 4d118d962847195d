//! Numbers of kernels by the origin of their code.

/// Numbers of kernels by the origin of their code. Code that is found in the [cache directory](crate::CompileOptions::cache_dir), or that the process has loaded
/// before, is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelCounts {
    /// Kernels that were compiled.
    pub compiled: usize,
    /// Those of the compiled kernels whose sizes are constants of the code, though they could be arguments: the code serves one shape only.
    pub with_constant_sizes: usize,
    /// Kernels whose code is from the [code library](crate::CodeLibrary).
    pub from_library: usize,
}
