//! Code for libraries: kernels compiled in advance.

use super::compile_kernel;
use crate::backend::CompileError;
use crate::code_library::{key_of, written};
use crate::options::BackendOptions;
use frazil_limits::Budget;
use frazil_planner::kernel::KernelCode;
use frazil_planner::target::Target;
use frazil_runtime::threads::parallel;
use rayon::prelude::*;

/// Compiles each of `codes` for the processors of its level, in parallel. Returns the bytes of a library with them, for
/// [`CodeLibrary::open`](crate::CodeLibrary::open).
///
/// # Errors
/// If a kernel cannot be compiled, or the library would be too large.
pub fn compile_library(codes: &[(Target, KernelCode)]) -> Result<Vec<u8>, CompileError> {
    let budget = Budget::current();
    let objects = codes.par_iter().map(|(level, code)| {
        let _entered = budget.as_ref().map(Budget::enter);
        frazil_limits::check()?;
        let key = key_of(&code.identity(), level);
        let object = compile_kernel(&key.symbol(), code, &BackendOptions::new(level.clone()))?;
        Ok::<_, CompileError>((key, object))
    });
    let objects = parallel(|| objects.collect::<Result<Vec<_>, _>>())?;
    Ok(written(objects)?)
}
