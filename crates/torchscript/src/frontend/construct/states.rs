//! The tensors of modules: parameters, buffers, `state_dict` and `load_state_dict`.

use std::collections::HashSet;
use std::rc::Rc;

use frazil_ir::{AttributeKind, DType};

use super::builtins::dtype_of;
use super::globals::{joined, modules, walk_modules};
use super::tensor::HostTensor;
use super::value::{ObjectRef, Py};

/// The modules that a module holds itself.
pub(super) fn children(object: &ObjectRef) -> Vec<Py> {
    let attributes = &object.borrow().attributes;
    let values = attributes.values().map(|attribute| &attribute.value);
    values.filter(|value| matches!(value, Py::Object(_))).cloned().collect()
}

/// The parameters of a module and those below it, each once, with their names.
pub(super) fn parameters(object: &ObjectRef) -> Vec<(String, Py)> {
    tensors(object, AttributeKind::Parameter)
}

/// The buffers of a module and those below it, each once, with their names.
pub(super) fn buffers(object: &ObjectRef) -> Vec<(String, Py)> {
    tensors(object, AttributeKind::Buffer)
}

fn tensors(object: &ObjectRef, kind: AttributeKind) -> Vec<(String, Py)> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    walk_modules(object, &mut |prefix, module| {
        for (name, attribute) in &module.borrow().attributes {
            if let (true, Py::Tensor(tensor) | Py::Parameter(tensor)) = (attribute.kind == kind, &attribute.value)
                && known.insert(Rc::as_ptr(&tensor.data))
            {
                found.push((joined(prefix, name), attribute.value.clone()));
            }
        }
    });
    found
}

/// A list of the values.
pub(super) fn values(items: Vec<(String, Py)>) -> Py {
    Py::list(items.into_iter().map(|(_, value)| value).collect())
}

/// A list of pairs of names and values.
pub(super) fn pairs(items: Vec<(String, Py)>) -> Py {
    Py::list(
        items
            .into_iter()
            .map(|(name, value)| Py::tuple(vec![Py::str(name), value]))
            .collect(),
    )
}

/// `state_dict()`: parameters, then buffers, then what the children have; tensors under several names are there several times.
pub(super) fn state_dict(object: &ObjectRef) -> Vec<(Py, Py)> {
    let mut found = Vec::new();
    collect(object, "", 0, &mut found);
    found
}

fn collect(object: &ObjectRef, prefix: &str, depth: usize, found: &mut Vec<(Py, Py)>) {
    let object = object.borrow();
    for kind in [AttributeKind::Parameter, AttributeKind::Buffer] {
        for (name, attribute) in object.attributes.iter().filter(|(_, a)| a.kind == kind) {
            let is_kept = kind == AttributeKind::Parameter || !object.transient.contains(name);
            if let (true, Py::Tensor(tensor) | Py::Parameter(tensor)) = (is_kept, &attribute.value) {
                found.push((Py::str(joined(prefix, name)), Py::Tensor(tensor.clone())));
            }
        }
    }
    for (name, attribute) in &object.attributes {
        if let (true, Py::Object(child)) = (depth < super::MAX_CALLS, &attribute.value) {
            collect(child, &joined(prefix, name), depth + 1, found);
        }
    }
}

/// `load_state_dict(state, strict)`. Gives the names of the tensors that the state misses, and those that the module does not have.
///
/// # Errors
/// As PyTorch raises, in its words.
pub(super) fn load(object: &ObjectRef, state: &[(Py, Py)], strict: bool) -> Result<Py, String> {
    let own = state_dict(object);
    let class = object.borrow().class.qualified.clone();
    let class = class.rsplit('.').next().unwrap_or_default();
    let find = |items: &[(Py, Py)], key: &Py| items.iter().find(|(name, _)| name.equals(key)).map(|(_, v)| v.clone());
    let quoted = |keys: Vec<&Py>| -> String {
        let keys: Vec<String> = keys.into_iter().map(|key| format!("\"{}\"", key.text())).collect();
        keys.join(", ")
    };
    let unexpected: Vec<&Py> = state
        .iter()
        .map(|(key, _)| key)
        .filter(|key| find(&own, key).is_none())
        .collect();
    let missing: Vec<&Py> = own
        .iter()
        .map(|(key, _)| key)
        .filter(|key| find(state, key).is_none())
        .collect();
    let keys = |keys: &[&Py]| Py::list(keys.iter().map(|key| (*key).clone()).collect());
    let result = Py::tuple(vec![keys(&missing), keys(&unexpected)]);
    let mut errors = Vec::new();
    if strict && !unexpected.is_empty() {
        errors.push(format!("Unexpected key(s) in state_dict: {}. ", quoted(unexpected)));
    }
    if strict && !missing.is_empty() {
        errors.push(format!("Missing key(s) in state_dict: {}. ", quoted(missing)));
    }
    let mut copies: Vec<(&HostTensor, HostTensor)> = Vec::new();
    for (key, value) in &own {
        let Py::Tensor(to) = value else { continue };
        match find(state, key) {
            Some(Py::Tensor(from) | Py::Parameter(from)) => {
                // A number fits where PyTorch once kept tensors of one element.
                let from = match (from.sizes.as_slice(), to.sizes.as_slice()) {
                    ([1], []) => from.view(&[]).unwrap_or(from),
                    _ => from,
                };
                if from.sizes == to.sizes {
                    copies.push((to, from));
                } else {
                    errors.push(format!(
                        "size mismatch for {}: copying a param with shape torch.Size({:?}) from checkpoint, the shape in current model is torch.Size({:?}).",
                        key.text(),
                        from.sizes,
                        to.sizes
                    ));
                }
            }
            Some(other) => errors.push(format!(
                "While copying the parameter named \"{}\", expected torch.Tensor or Tensor-like object from checkpoint but received {}",
                key.text(),
                other.type_name()
            )),
            None => {}
        }
    }
    if !errors.is_empty() {
        return Err(format!(
            "RuntimeError: Error(s) in loading state_dict for {class}:\n\t{}",
            errors.join("\n\t")
        ));
    }
    for (to, from) in copies {
        let _ = to.copy_from(&from);
    }
    Ok(result)
}

/// Casts the floating-point tensors of a module as `name` says: `float`, `double`, or `to` with arguments. Where they are to be changes nothing
/// here. `None` where the arguments are others.
pub(super) fn cast(object: &ObjectRef, name: &str, positional: &[Py], keywords: &[(String, Py)]) -> Option<()> {
    let mut dtype = match name {
        "float" => Some(DType::Float),
        "double" => Some(DType::Double),
        _ => None,
    };
    let by_name = keywords.iter().map(|(_, value)| value);
    for argument in positional.iter().chain(by_name) {
        match argument {
            Py::Device(_) | Py::Str(_) | Py::Bool(_) | Py::None => {}
            other => dtype = Some(dtype_of(other).filter(|d| matches!(d, DType::Float | DType::Double))?),
        }
    }
    let Some(dtype) = dtype else { return Some(()) };
    // What is one tensor stays one.
    let mut known: Vec<(HostTensor, HostTensor)> = Vec::new();
    for module in modules(object) {
        for attribute in module.borrow_mut().attributes.values_mut() {
            let is_state = attribute.kind != AttributeKind::Plain;
            let (Py::Tensor(tensor) | Py::Parameter(tensor)) = &mut attribute.value else {
                continue;
            };
            if !is_state || !tensor.dtype.is_floating_point() || tensor.dtype == dtype {
                continue;
            }
            let cast = match known.iter().find(|(old, _)| Rc::ptr_eq(&old.data, &tensor.data)) {
                Some((_, new)) => new.clone(),
                None => {
                    let mut new = tensor.map(dtype, |x| x)?;
                    new.requires_grad = Rc::clone(&tensor.requires_grad);
                    known.push((tensor.clone(), new.clone()));
                    new
                }
            };
            *tensor = cast;
        }
    }
    Some(())
}
