//! Loading of state dictionaries into modules.

use super::convert::is_meta;
use super::rewrite::replace_tensors;
use super::state_dict::Visit;
use super::state_hooks::LoadingState;
use super::{IncompatibleKeys, ScriptModule, ScriptModuleMut, StateDict};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::support::setters::setters;
use frazil_ir::{AttributeKind, Constant, ObjectId, Storage, TensorData};
use frazil_runtime::Tensor;
use frazil_runtime::export::{Exporter, share_bytes};
use frazil_runtime::import::Importer;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Options of [`Model::load_state_dict_with`].
///
/// ```
/// use frazil::{LoadStateDictOptions, StateDict, Tensor, ir::DType};
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.w = nn.Parameter(torch.ones(1))\n \
/// # def forward(self, x): return x * self.w\n";
/// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// let double = Tensor::from_f32(&[7.0], &[1])?.to_dtype(DType::Double)?;
/// let state = StateDict::from_iter([("w".to_owned(), double)]);
/// model.load_state_dict_with(&state, &LoadStateDictOptions::default().assign(true))?;
/// assert_eq!(model.root().get_parameter("w")?.dtype(), DType::Double);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadStateDictOptions {
    /// Whether missing and unexpected names are errors.
    pub strict: bool,
    /// Whether the loaded tensors replace the module's tensors, with their dtypes and layouts, rather than being copied into them. Gradient flags of
    /// parameters do not change.
    pub assign: bool,
}

setters!(LoadStateDictOptions {
    strict: bool,
    assign: bool,
});

impl Default for LoadStateDictOptions {
    fn default() -> LoadStateDictOptions {
        LoadStateDictOptions {
            strict: true,
            assign: false,
        }
    }
}

impl Model {
    /// Copies the tensors of `state` into the parameters and buffers of the same names (`Module.load_state_dict`), converting
    /// to their dtypes. The new values are visible in views and shared tensors of the module.
    ///
    /// ```
    /// # use frazil::{StateDict, Tensor};
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let state = StateDict::from_iter([("fc.bias".to_owned(), Tensor::from_f32(&[7.0], &[1])?)]);
    /// let keys = model.load_state_dict(&state, false)?;
    /// assert_eq!(keys.missing_keys, ["fc.weight"]);
    /// assert_eq!(model.root().get_parameter("fc.bias")?.to_f64_vec(), [7.0]);
    /// assert!(model.load_state_dict(&state, true).is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If sizes differ and, with `strict`, if a name is missing or unexpected; the text is PyTorch's. Unlike PyTorch's, the module is
    /// then unchanged. Also if a hook fails.
    pub fn load_state_dict(&mut self, state: &StateDict, strict: bool) -> Result<IncompatibleKeys> {
        self.root_mut().load_state_dict(state, strict)
    }

    /// Loads a state dictionary as [`load_state_dict`](Self::load_state_dict) does, with all its arguments.
    ///
    /// See [`LoadStateDictOptions`] for an example.
    ///
    /// # Errors
    /// See [`load_state_dict`](Self::load_state_dict).
    pub fn load_state_dict_with(
        &mut self,
        state: &StateDict,
        options: &LoadStateDictOptions,
    ) -> Result<IncompatibleKeys> {
        self.root_mut().load_state_dict_with(state, options)
    }
}

impl ScriptModuleMut<'_> {
    /// Loads a state dictionary into this module as [`Model::load_state_dict`] does. Names are relative to the module.
    ///
    /// ```
    /// # use frazil::{StateDict, Tensor};
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let state = StateDict::from_iter([("bias".to_owned(), Tensor::from_f32(&[7.0], &[1])?)]);
    /// model.submodule_mut("fc")?.load_state_dict(&state, false)?;
    /// assert_eq!(model.root().get_parameter("fc.bias")?.to_f64_vec(), [7.0]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`Model::load_state_dict`].
    pub fn load_state_dict(&mut self, state: &StateDict, strict: bool) -> Result<IncompatibleKeys> {
        self.load_state_dict_with(state, &LoadStateDictOptions::default().strict(strict))
    }

    /// Loads a state dictionary into this module as [`Model::load_state_dict_with`] does. Names are relative to the module.
    ///
    /// See [`LoadStateDictOptions`] for an example.
    ///
    /// # Errors
    /// See [`Model::load_state_dict`].
    pub fn load_state_dict_with(
        &mut self,
        state: &StateDict,
        options: &LoadStateDictOptions,
    ) -> Result<IncompatibleKeys> {
        // The tensors of the module are unchanged if something fails.
        let mut loaded = self.model.clone();
        let original = self.model.clone();
        let mut load = Load {
            loaded: &mut loaded,
            pending: Vec::new(),
            keys: IncompatibleKeys::default(),
            errors: Vec::new(),
            assign: options.assign,
        };
        // The entries for each module on the path; a module's hooks change those of the modules below it.
        let mut states: Vec<StateDict> = Vec::new();
        original.root().at(self.object).walk("", &mut |module, prefix, visit| {
            if visit == Visit::Leave {
                states.pop();
                return load.leave(module.object);
            }
            let mut own: StateDict = match states.last() {
                None => state.clone(),
                Some(above) => {
                    let entries = above.iter().filter(|(name, _)| name.starts_with(prefix));
                    entries.map(|(name, t)| (name.clone(), t.clone())).collect()
                }
            };
            load.enter(module.object, &mut own, prefix)?;
            states.push(own);
            Ok(())
        })?;
        load.flush()?;
        let Load { keys, errors, .. } = load;
        check(self.view().original_name(), &keys, errors, options.strict)?;
        *self.model = loaded;
        Ok(keys)
    }
}

/// Returns an error with PyTorch's messages if there are mismatches.
fn check(name: &str, keys: &IncompatibleKeys, errors: Vec<String>, strict: bool) -> Result<()> {
    let quoted = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
        names.join(", ")
    };
    let mut problems = Vec::new();
    if strict && !keys.missing_keys.is_empty() {
        problems.push(format!(
            "Missing key(s) in state_dict: {}. ",
            quoted(&keys.missing_keys)
        ));
    }
    if strict && !keys.unexpected_keys.is_empty() {
        let names = quoted(&keys.unexpected_keys);
        problems.push(format!("Unexpected key(s) in state_dict: {names}. "));
    }
    problems.extend(errors);
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Error::StateDict(format!(
            "Error(s) in loading state_dict for {name}:\n\t{}",
            problems.join("\n\t")
        ))),
    }
}

/// The state of loading a state dictionary into a model.
struct Load<'l> {
    loaded: &'l mut Model,
    /// Copies into tensors of the module that are still to be made. They are made before the target tensors are read.
    pending: Vec<(Arc<TensorData>, Tensor)>,
    keys: IncompatibleKeys,
    errors: Vec<String>,
    assign: bool,
}

impl Load<'_> {
    /// Loads the parameters and buffers of one module, without its submodules.
    fn enter(&mut self, object: ObjectId, state: &mut StateDict, prefix: &str) -> Result<()> {
        let hooks = Arc::clone(self.loaded.state_hooks());
        let mut loading = LoadingState {
            state,
            prefix,
            keys: &mut self.keys,
            error_msgs: &mut self.errors,
        };
        hooks.before_load(self.loaded.root().at(object), &mut loading)?;
        let module = self.loaded.root().at(object);
        let mut local: HashSet<&str> = HashSet::new();
        let mut assigned = Vec::new();
        for wanted in [AttributeKind::Parameter, AttributeKind::Buffer] {
            for (index, (name, kind, value)) in module.slots().enumerate() {
                let (true, Constant::Tensor(target)) = (kind == wanted, value) else {
                    continue;
                };
                local.insert(name);
                let key = format!("{prefix}{name}");
                let Some(source) = state.get(&key) else {
                    self.keys.missing_keys.push(key);
                    continue;
                };
                // Archives from before version 0.4 store 0-d tensors as one element.
                let source = match (target.sizes.as_slice(), source.sizes()) {
                    ([], [1]) => source.reshape(&[])?,
                    _ => source.clone(),
                };
                if target.sizes.as_slice() != source.sizes() {
                    self.errors.push(format!(
                        "size mismatch for {key}: copying a param with shape {} from checkpoint, the shape in current model is {}.",
                        shape(source.sizes()),
                        shape(&target.sizes)
                    ));
                } else if !self.assign {
                    self.pending.push((Arc::clone(target), source));
                } else if let Some(why) = unassignable(target, &source, kind) {
                    let (into, from) = (shape(&target.sizes), shape(source.sizes()));
                    self.errors.push(format!(
                        "While copying the parameter named \"{key}\", whose dimensions in the model are {into} and whose dimensions in the checkpoint are {from}, an exception occurred : ('{why}',)."
                    ));
                } else {
                    assigned.push((index, source, kind == AttributeKind::Parameter && target.requires_grad));
                }
            }
        }
        self.keys
            .unexpected_keys
            .extend(unexpected(module, &local, state, prefix));
        let mut exporter = Exporter::new();
        for (index, source, requires_grad) in assigned {
            let data = exporter.tensor(&source.with_requires_grad(requires_grad))?;
            self.loaded.module_mut().object_mut(object).slots[index] = Constant::Tensor(Arc::new(data));
        }
        Ok(())
    }

    fn leave(&mut self, object: ObjectId) -> Result<()> {
        let hooks = Arc::clone(self.loaded.state_hooks());
        if hooks.has_after_load(object) {
            self.flush()?;
            hooks.after_load(self.loaded.root().at(object), &mut self.keys)?;
        }
        Ok(())
    }

    /// Makes the pending copies. Copies to tensors of the device `meta` are dropped, because these have no memory.
    fn flush(&mut self) -> Result<()> {
        let mut copies = std::mem::take(&mut self.pending);
        copies.retain(|(target, _)| !is_meta(target));
        if copies.is_empty() {
            return Ok(());
        }
        let written = write_all(&copies)?;
        replace_tensors(self.loaded.module_mut(), |t| {
            let storage = written.get(&Arc::as_ptr(&t.storage))?;
            Some(Arc::new(TensorData {
                storage: storage.clone(),
                ..TensorData::clone(t)
            }))
        });
        Ok(())
    }
}

/// Returns the reason why the tensor `source` cannot replace the tensor `target`, if there is one.
fn unassignable(target: &TensorData, source: &Tensor, kind: AttributeKind) -> Option<&'static str> {
    let dtype = source.dtype();
    let differentiable = dtype.is_floating_point() || dtype.is_complex();
    (kind == AttributeKind::Parameter && target.requires_grad && !differentiable)
        .then_some("Only Tensors of floating point and complex dtype can require gradients")
}

/// Returns the names of entries that belong neither to the module nor, by their first component, to a submodule.
fn unexpected(module: ScriptModule<'_>, local: &HashSet<&str>, state: &StateDict, prefix: &str) -> Vec<String> {
    let children: HashSet<&str> = module.children().map(|(name, _)| name).collect();
    let is_unknown = |name: &str| match name.split_once('.') {
        Some((child, _)) => !children.contains(child),
        None => !local.contains(name),
    };
    let names = state.keys();
    names
        .filter(|key| key.strip_prefix(prefix).is_some_and(is_unknown))
        .cloned()
        .collect()
}

/// Writes each tensor into the storage of its target, and returns the new contents of the storages that were written.
fn write_all(copies: &[(Arc<TensorData>, Tensor)]) -> Result<HashMap<*const Storage, Arc<Storage>>> {
    // One importer for all, so that targets on one storage are written to one.
    let mut importer = Importer::new();
    let mut targets = Vec::new();
    for (target, source) in copies {
        let cell = importer.tensor(target)?.get();
        cell.copy_(source)?;
        targets.push((target, cell));
    }
    let mut written = HashMap::new();
    for (target, cell) in targets {
        written
            .entry(Arc::as_ptr(&target.storage))
            .or_insert_with(|| Arc::new(Storage::new(share_bytes(cell.storage()), target.storage.device())));
    }
    Ok(written)
}

/// Returns the text of sizes as PyTorch prints them: `torch.Size([2, 3])`.
fn shape(sizes: &[i64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
    format!("torch.Size([{}])", sizes.join(", "))
}
