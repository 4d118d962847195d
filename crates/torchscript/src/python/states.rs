//! Evaluation of accesses to a module's tensors: parameters, buffers, `state_dict` and `load_state_dict`.

use std::collections::HashSet;
use std::rc::Rc;

use frazil_ir::{AttributeKind, DType};

use super::arguments::Arguments;
use super::globals::{joined, modules, walk_modules};
use super::tensor::HostTensor;
use super::tensor_methods::cast_of;
use super::value::{ObjectRef, Py, iterator};

/// Returns the direct submodules of a module, each once, with their names.
pub(super) fn children(object: &ObjectRef) -> Vec<(String, Py)> {
    let mut known = HashSet::new();
    let attributes = &object.borrow().attributes;
    let mut children = Vec::new();
    for (name, attribute) in attributes {
        if let Py::Object(child) = &attribute.value
            && known.insert(Rc::as_ptr(child))
        {
            children.push((name.clone(), attribute.value.clone()));
        }
    }
    children
}

/// Returns the parameters of a module and its submodules, each once, with their names.
pub(super) fn parameters(object: &ObjectRef) -> Vec<(String, Py)> {
    tensors(object, AttributeKind::Parameter)
}

/// Returns the buffers of a module and its submodules, each once, with their names.
pub(super) fn buffers(object: &ObjectRef) -> Vec<(String, Py)> {
    tensors(object, AttributeKind::Buffer)
}

fn tensors(object: &ObjectRef, kind: AttributeKind) -> Vec<(String, Py)> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    walk_modules(object, &mut |prefix, module| {
        for (name, attribute) in &module.borrow().attributes {
            if let (true, Py::Tensor(tensor) | Py::Parameter(tensor)) = (attribute.kind == kind, &attribute.value)
                && known.insert(tensor.address())
            {
                found.push((joined(prefix, name), attribute.value.clone()));
            }
        }
    });
    found
}

/// Returns a Python iterator over pairs of name and value.
pub(super) fn pairs(items: Vec<(String, Py)>) -> Py {
    let pairs = items
        .into_iter()
        .map(|(name, value)| Py::tuple(vec![Py::str(name), value]));
    iterator(pairs.collect())
}

/// Evaluates `state_dict()`: parameters, then buffers, then the entries of the children. Tensors with several names occur several times.
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
                found.push((Py::str(joined(prefix, name)), Py::Tensor(tensor.alias())));
            }
        }
    }
    for (name, attribute) in &object.attributes {
        if let (true, Py::Object(child)) = (depth < super::maker::MAX_CALLS, &attribute.value) {
            collect(child, &joined(prefix, name), depth + 1, found);
        }
    }
}

/// Executes `load_state_dict(state, strict)`. Returns the names of missing and of unexpected tensors.
///
/// # Errors
/// PyTorch's exception, with its message.
pub(super) fn load(object: &ObjectRef, state: &[(Py, Py)], strict: bool) -> Result<Py, String> {
    let own = state_dict(object);
    let class = object.borrow().class.qualified.clone();
    let class = class.rsplit('.').next().unwrap_or_default();
    let find = |items: &[(Py, Py)], key: &Py| items.iter().find(|(name, _)| name.is_key(key)).map(|(_, v)| v.clone());
    let quoted = |keys: &[&Py]| -> String {
        let keys: Vec<String> = keys
            .iter()
            .map(|key| format!("\"{}\"", key.text().unwrap_or_default()))
            .collect();
        keys.join(", ")
    };
    // State dictionaries of older versions lack the counters of batch norms. The counters then keep their values.
    let is_counter = |key: &Py| matches!(key, Py::Str(name) if name.ends_with("num_batches_tracked"));
    let unexpected: Vec<&Py> = state
        .iter()
        .map(|(key, _)| key)
        .filter(|key| find(&own, key).is_none())
        .collect();
    let missing: Vec<&Py> = own
        .iter()
        .map(|(key, _)| key)
        .filter(|key| find(state, key).is_none() && !is_counter(key))
        .collect();
    let keys = |keys: &[&Py]| Py::list(keys.iter().map(|&key| key.clone()).collect());
    let mut errors = Vec::new();
    if strict && !unexpected.is_empty() {
        errors.push(format!("Unexpected key(s) in state_dict: {}. ", quoted(&unexpected)));
    }
    if strict && !missing.is_empty() {
        errors.push(format!("Missing key(s) in state_dict: {}. ", quoted(&missing)));
    }
    let mut copies: Vec<(&HostTensor, HostTensor)> = Vec::new();
    for (key, value) in &own {
        let Py::Tensor(to) = value else { continue };
        match find(state, key) {
            Some(Py::Tensor(from) | Py::Parameter(from)) => {
                // As in PyTorch, a tensor of one element is accepted for one without dimensions, for state dictionaries of older versions.
                let from = match (from.sizes().as_slice(), to.rank()) {
                    ([1], 0) => from.view(&[]).unwrap_or(from),
                    _ => from,
                };
                if from.sizes() == to.sizes() {
                    copies.push((to, from));
                } else {
                    errors.push(format!(
                        "size mismatch for {}: copying a param with shape torch.Size({:?}) from checkpoint, the shape in current model is torch.Size({:?}).",
                        key.text().unwrap_or_default(),
                        from.sizes(),
                        to.sizes()
                    ));
                }
            }
            Some(other) => errors.push(format!(
                "While copying the parameter named \"{}\", expected torch.Tensor or Tensor-like object from checkpoint but received {}",
                key.text().unwrap_or_default(),
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
        if to.copy_from(&from).is_none() {
            return Err("the state has numbers that the module's integers do not have".to_owned());
        }
    }
    Ok(Py::Keys(Rc::new([keys(&missing), keys(&unexpected)])))
}

/// Casts the floating-point tensors of a module by `float`, `double`, or `to` with arguments. Devices are ignored. Returns `None` for unsupported arguments.
pub(super) fn cast(object: &ObjectRef, name: &str, arguments: &Arguments) -> Option<()> {
    let dtype = match name {
        "float" => Some(DType::Float),
        "double" => Some(DType::Double),
        "half" => Some(DType::Half),
        "bfloat16" => Some(DType::BFloat16),
        _ => cast_of(arguments)?,
    };
    let Some(dtype) = dtype else { return Some(()) };
    dtype.is_floating_point().then_some(())?;
    for module in modules(object) {
        for attribute in module.borrow_mut().attributes.values_mut() {
            match &mut attribute.value {
                // The parameter remains the same object and gets other data: `p.data = p.data.double()`.
                Py::Parameter(tensor) if tensor.dtype().is_floating_point() => {
                    tensor.set_data(&tensor.cast(dtype)?);
                }
                // The buffer is replaced by another tensor object.
                Py::Tensor(tensor) if attribute.kind == AttributeKind::Buffer && tensor.dtype().is_floating_point() => {
                    *tensor = tensor.cast(dtype)?;
                }
                _ => {}
            }
        }
    }
    Some(())
}
