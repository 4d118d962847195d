//! The Python package `frazil`: the facade as an extension module.
//!
//! - `arrays`, `shared` and `dlpack` exchange arrays, `value` other kinds of values.
//! - `instance` holds a model with its engines, `engine_call` makes one call, `hooks` calls Python functions around it.
//! - `script_module`, `members`, `state_hooks` and `unavailable` are the classes of modules, `object` that of objects, `graph` that of graphs.
//! - `native` contains functions for native code, `profile` the table of a profile, `interrupt` runs long work that Ctrl+C ends.
//! - `functions` contains the functions of the package, `args` their arguments, `options` the options of calls, `errors` the exceptions.

mod args;
mod arrays;
mod dlpack;
mod engine_call;
mod errors;
mod functions;
mod graph;
mod hooks;
mod instance;
mod interrupt;
mod members;
mod module_ref;
#[cfg(feature = "codegen")]
mod native;
mod object;
mod options;
#[cfg(feature = "codegen")]
mod profile;
mod script_module;
mod shared;
mod state_hooks;
mod unavailable;
mod value;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
fn _frazil(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("has_native_engine", cfg!(feature = "codegen"))?;
    module.add_class::<script_module::ScriptModule>()?;
    module.add_class::<script_module::ScriptMethod>()?;
    module.add_class::<script_module::HookHandle>()?;
    module.add_class::<object::Object>()?;
    #[cfg(feature = "codegen")]
    module.add_class::<profile::ProfileTable>()?;
    module.add_class::<graph::Graph>()?;
    module.add_class::<graph::Node>()?;
    module.add_class::<graph::Block>()?;
    module.add_class::<graph::Value>()?;
    module.add_class::<graph::Use>()?;
    module.add_function(wrap_pyfunction!(functions::load, module)?)?;
    module.add_function(wrap_pyfunction!(functions::save, module)?)?;
    module.add_function(wrap_pyfunction!(functions::freeze, module)?)?;
    module.add_function(wrap_pyfunction!(functions::run_frozen_optimizations, module)?)?;
    module.add_function(wrap_pyfunction!(functions::optimize_for_inference, module)?)?;
    module.add_function(wrap_pyfunction!(functions::script, module)?)?;
    module.add_function(wrap_pyfunction!(functions::run_passes, module)?)?;
    module.add_function(wrap_pyfunction!(functions::passes, module)?)?;
    module.add_function(wrap_pyfunction!(functions::enable_onednn_fusion, module)?)?;
    module.add_function(wrap_pyfunction!(functions::onednn_fusion_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(functions::set_fusion_strategy, module)?)?;
    module.add_function(wrap_pyfunction!(functions::strict_fusion, module)?)?;
    Ok(())
}
