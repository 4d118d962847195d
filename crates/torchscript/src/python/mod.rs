//! Modules from source. A text runs on a subset of Python, and its objects become a [`Module`](frazil_ir::Module).
//!
//! - [`maker`] is the state of a run. [`exec`] runs statements, [`eval`] expressions, [`builtins`] functions of Python and `torch`.
//! - [`value`] and [`tensor`] are the values.
//! - [`refuse`] finds the effects of statements that cannot be run, [`purity`] the calls that change nothing.
//! - [`root`] finds the module of the file, [`scripted`] is `torch.jit.script`, and [`lower`] makes the module, whose methods are compiled.
//!
//! Anything beyond the subset is an error.

mod arguments;
mod attributes;
mod bases;
mod builtins;
mod compare;
mod complex;
mod containers;
mod copies;
mod declared;
mod dtypes;
mod elements;
mod eval;
mod exec;
mod factories;
mod globals;
mod instances;
mod known;
mod lower;
mod maker;
mod mentions;
mod methods;
mod module_attributes;
mod named;
mod operators;
mod purity;
mod random;
mod refuse;
mod root;
mod scripted;
mod sets;
mod states;
mod tensor;
mod tensor_literals;
mod tensor_methods;
mod text;
mod toplevel;
mod traced;
mod unknown;
mod value;
mod value_methods;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::error::Result;
use crate::names::{Names, Objects};
use crate::source::SourceFile;
use globals::Globals;
use maker::{MAX_STEPS, Maker};
use random::Random;
use value::Py;

/// Runs a source text. Returns the objects of the module that it defines, if it defines one.
pub(crate) fn module(names: &mut dyn Names, file: &Arc<SourceFile>) -> Result<Option<Objects>> {
    let mut maker = Maker {
        names,
        random: Random::new(),
        globals: Globals::default(),
        chains: HashMap::new(),
        locals: HashMap::new(),
        library_values: HashMap::new(),
        has_traces: false,
        steps: 0,
        max_steps: MAX_STEPS.saturating_add(file.text.len()),
        work: 0,
        bytes: 0,
        tensor_bytes: 0,
        calls: 0,
        depth: 0,
    };
    maker.run(file)?;
    let root = maker.root(file)?;
    if let Some(root) = &root {
        maker.evaluate(file, root)?;
    }
    maker.check_snapshots()?;
    if let Some(doubt) = root
        .as_ref()
        .and_then(|root| maker.globals.doubt_within(&Py::Object(Rc::clone(root))))
    {
        return Err(Box::new(doubt.clone()).into());
    }
    let (top_names, bound, constants) = (maker.top_names(file), maker.bound(), maker.top_constants());
    names.definitions_mut().set_top(file, top_names, bound, constants);
    if let Some(root) = &root {
        globals::walk(&Py::Object(Rc::clone(root)), &mut |part| {
            if let Py::Object(module) = part {
                let mut module = module.borrow_mut();
                let training = module.mode.unwrap_or(false);
                value::set_mode(&mut module, training);
            }
        });
    }
    match root {
        Some(root) => lower::objects(names, file, &root).map(Some),
        None => Ok(None),
    }
}

impl Maker<'_> {
    /// Sets evaluation mode as Python would, if the text has set no mode and a class defines its own `train`.
    fn evaluate(&mut self, file: &Arc<SourceFile>, root: &value::ObjectRef) -> Result<()> {
        let modules = globals::modules(root);
        let mut has_own = false;
        for module in &modules {
            has_own |= self.defines(module, &["train"])?;
        }
        if !has_own || modules.iter().any(|module| module.borrow().mode.is_some()) {
            return Ok(());
        }
        self.set_training(file, root, false, &ruff_text_size::TextRange::default())
    }
}
