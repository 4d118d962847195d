//! State dictionaries: the tensors of a module by name, out of it and into it.

use super::rewrite::replace_tensors;
use super::{ScriptModule, join};
use crate::{Error, Model, Result};
use frazil_ir::{AttributeKind, Constant, Storage, TensorData};
use frazil_runtime::Tensor;
use frazil_runtime::export::share_bytes;
use frazil_runtime::import::Importer;
use indexmap::IndexMap;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Tensors by dotted name, in the order of the module.
///
/// See [`Model::load_state_dict`] for an example.
pub type StateDict = IndexMap<String, Tensor>;

/// Names that a module and a state dictionary do not share.
///
/// See [`Model::load_state_dict`] for an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncompatibleKeys {
    /// The module has them, the dictionary has not.
    pub missing_keys: Vec<String>,
    /// The dictionary has them, the module has not.
    pub unexpected_keys: Vec<String>,
}

impl<'m> ScriptModule<'m> {
    /// Parameters and buffers by dotted name (`Module.state_dict`). Shared ones stand under each of their names.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let state = model.root().get_submodule("fc")?.state_dict()?;
    /// assert!(state.keys().eq(["weight", "bias"]));
    /// assert!(model.state_dict()?.keys().eq(["fc.weight", "fc.bias"]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a tensor does not fit its storage.
    pub fn state_dict(self) -> Result<StateDict> {
        let mut importer = Importer::new();
        self.state()
            .into_iter()
            .map(|(name, t)| Ok((name, importer.tensor(t)?.get())))
            .collect()
    }

    /// What [`state_dict`](Self::state_dict) gives: of each module first parameters, then buffers, then submodules.
    fn state(self) -> Vec<(String, &'m Arc<TensorData>)> {
        let mut pending = vec![(String::new(), self, Vec::new())];
        let mut out = Vec::new();
        while let Some((path, module, above)) = pending.pop() {
            for kind in [AttributeKind::Parameter, AttributeKind::Buffer] {
                for (name, found, value) in module.slots() {
                    if let (true, Constant::Tensor(t)) = (found == kind, value) {
                        out.push((join(&path, name), t));
                    }
                }
            }
            // A module that holds itself has endlessly many names; those on the way down are enough.
            let mut above = above;
            above.push(module.object);
            let children: Vec<_> = module.children().filter(|(_, c)| !above.contains(&c.object)).collect();
            for (name, child) in children.into_iter().rev() {
                pending.push((join(&path, name), child, above.clone()));
            }
        }
        out
    }
}

impl Model {
    /// See [`ScriptModule::state_dict`].
    ///
    /// # Errors
    /// When a tensor does not fit its storage.
    pub fn state_dict(&self) -> Result<StateDict> {
        self.root().state_dict()
    }

    /// Copies the tensors of `state` into the parameters and buffers of those names (`Module.load_state_dict`), converting to
    /// their dtypes. Views and shared tensors of the module see what is written.
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
    /// When sizes differ and, with `strict`, when a name is missing or unexpected; the text is PyTorch's. Unlike PyTorch's, the module
    /// is then unchanged.
    pub fn load_state_dict(&mut self, state: &StateDict, strict: bool) -> Result<IncompatibleKeys> {
        let root = self.root();
        let own = root.state();
        let mut keys = IncompatibleKeys::default();
        let mut problems = Vec::new();
        let mut copies: Vec<(&Arc<TensorData>, Tensor)> = Vec::new();
        for (name, target) in &own {
            let Some(source) = state.get(name) else {
                keys.missing_keys.push(name.clone());
                continue;
            };
            // Archives from before version 0.4 kept zero-dimensional tensors as one element.
            let source = match (target.sizes.as_slice(), source.sizes()) {
                ([], [1]) => source.reshape(&[])?,
                _ => source.clone(),
            };
            match target.sizes.as_slice() == source.sizes() {
                true => copies.push((target, source)),
                false => problems.push(format!(
                    "size mismatch for {name}: copying a param with shape {} from checkpoint, the shape in current model is {}.",
                    shape(source.sizes()),
                    shape(&target.sizes)
                )),
            }
        }
        let known: HashSet<&String> = own.iter().map(|(name, _)| name).collect();
        keys.unexpected_keys = state.keys().filter(|name| !known.contains(name)).cloned().collect();
        if strict {
            let quoted = |names: &[String]| {
                let names: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
                names.join(", ")
            };
            if !keys.unexpected_keys.is_empty() {
                problems.insert(
                    0,
                    format!("Unexpected key(s) in state_dict: {}. ", quoted(&keys.unexpected_keys)),
                );
            }
            if !keys.missing_keys.is_empty() {
                problems.insert(
                    0,
                    format!("Missing key(s) in state_dict: {}. ", quoted(&keys.missing_keys)),
                );
            }
        }
        if !problems.is_empty() {
            return Err(Error::StateDict(format!(
                "Error(s) in loading state_dict for {}:\n\t{}",
                root.original_name(),
                problems.join("\n\t")
            )));
        }
        let written = write_all(&copies)?;
        replace_tensors(self.module_mut(), |t| {
            let storage = written.get(&Arc::as_ptr(&t.storage))?;
            Some(Arc::new(TensorData {
                storage: storage.clone(),
                ..TensorData::clone(t)
            }))
        });
        Ok(keys)
    }
}

/// Writes each tensor into the storage of its target, and gives the new contents of the storages that were written.
fn write_all(copies: &[(&Arc<TensorData>, Tensor)]) -> Result<HashMap<*const Storage, Arc<Storage>>> {
    // One importer, so that targets on one storage are written to one.
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

/// Sizes as PyTorch writes them: `torch.Size([2, 3])`.
fn shape(sizes: &[i64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
    format!("torch.Size([{}])", sizes.join(", "))
}
