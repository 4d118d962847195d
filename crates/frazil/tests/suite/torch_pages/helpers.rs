//! The functions that steps call: those of `torch.jit`, and helpers that tests/generate/fixtures/make_torch_pages.py defines in Python.

use std::collections::BTreeMap;
use std::path::Path;

use super::containers::dictionary;
use super::objects::{Failure, Kwargs, Module, Object, Outcome, computed};
use frazil::passes::freeze::Freeze;
use frazil::{FreezeOptions, Model, PassOptions, SaveOptions, Session, Value};

/// Calls the function with the given name.
pub fn helper(name: &str, mut args: Vec<Object>, kwargs: Kwargs) -> Outcome {
    if let Some(result) = super::files::call(name, &args, &kwargs) {
        return result;
    }
    let first = args.first().cloned();
    match name {
        "torch.jit.freeze" => freeze(args, kwargs),
        "torch.jit.optimize_for_inference" => {
            let [model, methods] = bound(args, kwargs, ["mod", "other_methods"])?;
            let options = FreezeOptions::default().freeze(preserving(methods)?);
            Ok(made(
                module(model)?
                    .whole("optimize_for_inference")?
                    .optimize_for_inference(&options)?,
            ))
        }
        "torch.jit.run_frozen_optimizations" => {
            let [target, numerics, _] = bound(args, kwargs, ["mod", "optimize_numerics", "preserved_methods"])?;
            let numerics = numerics.is_none_or(|numerics| numerics.is_true());
            let pipeline = format!("optimize-frozen-graph{{optimize-numerics={numerics}}}");
            let target = module(target)?;
            let (model, _) = target.whole(name)?.run_passes(&pipeline, &PassOptions::default())?;
            target.becomes(model);
            Ok(Object::Value(Value::None))
        }
        "torch.jit.script" => first.ok_or_else(|| Failure::lacks(name)),
        "nn.Parameter" => {
            let [data, flag] = bound(args, kwargs, ["data", "requires_grad"])?;
            let tensor = data.and_then(|data| data.value().ok()?.as_tensor());
            let tensor = tensor.ok_or_else(|| Failure::lacks(name))?;
            let requires_grad = flag.is_none_or(|flag| flag.is_true());
            Ok(Object::Value(tensor.with_requires_grad(requires_grad).into()))
        }
        "OrderedDict" | "dict" => {
            let named = kwargs.into_iter().map(|(name, object)| (Object::str(name), object));
            let entries = pairs(first).into_iter().chain(named);
            let entries = entries.map(|(name, object)| Ok((name.text()?, object.value()?)));
            Ok(Object::Value(Value::Dict(dictionary(
                entries.collect::<Result<Vec<_>, Failure>>()?,
            ))))
        }
        "len" => {
            let items = first.and_then(|object| object.items());
            let items = items.ok_or_else(|| Failure::lacks("the length of this"))?;
            Ok(Object::Value(Value::Int(items.len() as i64)))
        }
        "iter" => first.ok_or_else(|| Failure::lacks(name)),
        "next" => {
            let items = first.and_then(|object| object.items()).unwrap_or_default();
            let item = items.into_iter().next();
            item.ok_or_else(|| Failure::lacks("the next of nothing"))
        }
        "list" => match first {
            Some(Object::Dict(_) | Object::Value(Value::Dict(_))) => helper("names", args, kwargs),
            Some(object) => Ok(Object::List(object.items().unwrap_or_default())),
            None => Ok(Object::List(Vec::new())),
        },
        "kinds" => {
            let pairs = kinds(first)?.into_iter();
            Ok(Object::Dict(
                pairs
                    .map(|(kind, n)| (Object::str(kind), Object::Value(Value::Int(n))))
                    .collect(),
            ))
        }
        "count" => {
            let kind = args.pop().ok_or_else(|| Failure::lacks(name))?.text()?;
            let count = kinds(first)?.get(&kind).copied().unwrap_or(0);
            Ok(Object::Value(Value::Int(count)))
        }
        "names" => Ok(Object::List(pairs(first).into_iter().map(|(name, _)| name).collect())),
        "dtypes" => with_each(first, |tensor| tensor.attribute("dtype")),
        "shapes" => with_each(first, |tensor| tensor.attribute("shape")),
        "grads" => with_each(first, |tensor| tensor.attribute("requires_grad")),
        "methods" => {
            let names = module(first)?.methods()?.into_iter();
            Ok(Object::List(names.map(Object::str).collect()))
        }
        "again" => Ok(made(again(&module(first)?.saved()?, SaveOptions::default())?)),
        "extra_files" => extra_files(args),
        "same" => match &args[..] {
            [Object::Module(a), Object::Module(b)] => Ok(Object::Value(Value::Bool(a.is(b)))),
            [Object::Value(Value::Dict(a)), Object::Value(Value::Dict(b))] => Ok(Object::Value(Value::Bool(a.is(b)))),
            _ => Err(Failure::lacks("whether objects are the same")),
        },
        "str" => match &args[..] {
            [Object::Value(value)] => Ok(Object::Value(computed("str(a)", std::slice::from_ref(value))?)),
            [object] => Ok(Object::str(object.text()?)),
            _ => Err(Failure::lacks(name)),
        },
        // Another function of tensors is evaluated as TorchScript.
        _ if name.starts_with("torch.") && name.matches('.').count() == 1 && kwargs.is_empty() => {
            let values = args.iter().map(Object::value).collect::<Result<Vec<_>, _>>()?;
            let names = ["a", "b", "c", "d"];
            let names = names.get(..values.len()).ok_or_else(|| Failure::lacks(name))?;
            Ok(Object::Value(computed(
                &format!("{name}({})", names.join(", ")),
                &values,
            )?))
        }
        _ => Err(Failure::lacks(&format!("`{name}`"))),
    }
}

fn made(model: Model) -> Object {
    Object::Module(Module::new(model))
}

fn module(object: Option<Object>) -> Result<Module, Failure> {
    match object {
        Some(Object::Module(module)) => Ok(module),
        other => Err(Failure::lacks(&format!("{other:?} as a module"))),
    }
}

/// Returns the arguments by their names.
fn bound<const N: usize>(args: Vec<Object>, kwargs: Kwargs, names: [&str; N]) -> Result<[Option<Object>; N], Failure> {
    let mut out = [const { None }; N];
    for (slot, object) in out.iter_mut().zip(args) {
        *slot = Some(object);
    }
    for (name, object) in kwargs {
        match names.iter().position(|known| *known == name) {
            Some(index) => out[index] = Some(object),
            None => return Err(Failure::lacks(&format!("an argument '{name}'"))),
        }
    }
    Ok(out)
}

fn preserving(names: Option<Object>) -> Result<Freeze, Failure> {
    let names = names.and_then(|names| names.items()).unwrap_or_default();
    Ok(Freeze {
        preserve: names.iter().map(Object::text).collect::<Result<_, _>>()?,
        ..Freeze::default()
    })
}

fn freeze(args: Vec<Object>, kwargs: Kwargs) -> Outcome {
    let [target, preserved, numerics] = bound(args, kwargs, ["mod", "preserved_attrs", "optimize_numerics"])?;
    let options = FreezeOptions::default()
        .freeze(preserving(preserved)?)
        .optimize_numerics(numerics.is_none_or(|numerics| numerics.is_true()));
    Ok(made(module(target)?.whole("frozen")?.freeze(&options)?))
}

/// Returns the number of nodes of each kind in a graph, without constants.
fn kinds(object: Option<Object>) -> Result<BTreeMap<String, i64>, Failure> {
    let Some(Object::Graph(graph)) = object else {
        return Err(Failure::lacks("kinds of what is no graph"));
    };
    let mut out = BTreeMap::new();
    for node in graph.all_nodes() {
        let kind = graph.kind_name(node);
        if kind != "prim::Constant" {
            *out.entry(kind.to_owned()).or_insert(0) += 1;
        }
    }
    Ok(out)
}

/// Returns the pairs of a list of pairs or a dictionary.
fn pairs(object: Option<Object>) -> Vec<(Object, Object)> {
    let items = object.and_then(|object| object.items()).unwrap_or_default();
    let pair = |item: Object| {
        let mut pair = item.items()?.into_iter();
        Some((pair.next()?, pair.next()?))
    };
    items.into_iter().filter_map(pair).collect()
}

/// Returns the names, each with the result of `tell` for its tensor.
fn with_each(object: Option<Object>, tell: impl Fn(&Object) -> Outcome) -> Outcome {
    let told = pairs(object)
        .into_iter()
        .map(|(name, tensor)| Ok(Object::Tuple(vec![name, tell(&tensor)?])));
    Ok(Object::List(told.collect::<Result<_, Failure>>()?))
}

/// Returns the model after saving and loading.
fn again(model: &Model, options: SaveOptions) -> Result<Model, Failure> {
    let bytes = model.save_bytes(&options)?;
    let loaded = Session::new().load_bytes(Path::new("again.pt"), bytes)?;
    Ok(loaded.model("loaded")?.clone())
}

/// Returns the extra files after saving and loading a module; empty for names that it does not have.
fn extra_files(args: Vec<Object>) -> Outcome {
    let [target, given, asked] = &args[..] else {
        return Err(Failure::lacks("extra files"));
    };
    let mut options = SaveOptions::default();
    for (name, text) in pairs(Some(given.clone())) {
        options
            .extra_files
            .insert(name.text()?, text.text()?.into_bytes().into());
    }
    let model = again(&module(Some(target.clone()))?.saved()?, options)?;
    let found = asked.items().unwrap_or_default().into_iter().map(|name| {
        let bytes = model.module().extra_files.get(&name.text()?);
        let text = bytes.map_or(String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned());
        Ok((name, Object::str(text)))
    });
    Ok(Object::Dict(found.collect::<Result<_, Failure>>()?))
}
