//! What Python and `torch` bring along: functions by dotted name.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::{DType, Device};
use indexmap::IndexMap;
use ruff_python_ast::ExprCall;

use super::tensor::{HostTensor, literal};
use super::value::{Attribute, Py, PyObject};
use super::{MAX_DEPTH, MAX_LENGTH, Maker};
use crate::frontend::Result;
use crate::frontend::source::SourceFile;

/// Functions of Python that constructors may call.
const PYTHON: &[&str] = &[
    "range",
    "len",
    "enumerate",
    "zip",
    "reversed",
    "sorted",
    "min",
    "max",
    "sum",
    "abs",
    "round",
    "any",
    "all",
    "int",
    "float",
    "bool",
    "str",
    "list",
    "tuple",
    "dict",
    "OrderedDict",
    "print",
    "isinstance",
    "hasattr",
    "getattr",
    "setattr",
    "divmod",
    "torch",
    "math",
];

/// Whether Python itself knows `name`.
pub(super) fn is_known(name: &str) -> bool {
    PYTHON.contains(&name)
}

/// A constant of a library module.
pub(super) fn constant(path: &str) -> Option<Py> {
    use crate::frontend::emit::builtins;
    match builtins::constant(path)? {
        frazil_ir::Constant::Float(value) => Some(Py::Float(value)),
        // A dtype stays a name: it is no number to Python.
        _ => None,
    }
}

pub(super) fn dtype_of(value: &Py) -> Option<DType> {
    match value {
        Py::Path(path) => DType::from_python_name(path.strip_prefix("torch.")?),
        _ => None,
    }
}

fn keyword<'k>(keywords: &'k [(String, Py)], name: &str) -> Option<&'k Py> {
    keywords
        .iter()
        .find(|(keyword, _)| keyword == name)
        .map(|(_, value)| value)
}

impl Maker<'_, '_> {
    pub(super) fn call_path(
        &mut self,
        file: &Arc<SourceFile>,
        path: &str,
        positional: &[Py],
        keywords: &[(String, Py)],
        call: &ExprCall,
    ) -> Result<Py> {
        let value = match path.strip_prefix("torch.") {
            Some("nn.Parameter" | "nn.parameter.Parameter") => match positional.first().or(keyword(keywords, "data")) {
                Some(Py::Tensor(tensor) | Py::Parameter(tensor)) => Some(Py::Parameter(tensor.clone())),
                _ => None,
            },
            Some("jit.script") => match positional {
                [value] => self.script(file, value, call)?,
                _ => None,
            },
            Some("manual_seed") => Some(Py::None),
            Some("device") => match positional {
                [Py::Str(text)] => Device::parse(text).map(Py::Device),
                [device @ Py::Device(_)] => Some(device.clone()),
                _ => None,
            },
            // Models are made for the processor.
            Some("cuda.is_available" | "backends.mps.is_available" | "backends.cuda.is_built") => Some(Py::Bool(false)),
            Some("Size") => positional.first().and_then(Py::items).map(Py::tuple),
            Some(name) => match name.strip_prefix("nn.init.") {
                Some(initialiser) => self.initialise(initialiser, positional, keywords),
                None => self.factory(name, positional, keywords),
            },
            None if path == "logging.getLogger" => Some(Py::Path("logging.Logger".into())),
            None => match path.strip_prefix("math.") {
                Some(name) => math(name, positional),
                None => self.python(path, positional, keywords),
            },
        };
        match value {
            Some(value) => Ok(value),
            None => self.beyond(file, format!("this call of `{path}`"), call),
        }
    }

    fn python(&mut self, name: &str, positional: &[Py], keywords: &[(String, Py)]) -> Option<Py> {
        let first = positional.first();
        let ordered = |mut items: Vec<Py>| -> Option<Vec<Py>> {
            let keys: Option<Vec<f64>> = items.iter().map(Py::as_f64).collect();
            match keys {
                Some(_) => {
                    items.sort_by(|a, b| a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(std::cmp::Ordering::Equal))
                }
                None if items.iter().all(|item| matches!(item, Py::Str(_))) => items.sort_by_key(Py::text),
                None => return None,
            }
            Some(items)
        };
        let all_or_first = || match positional {
            [one] => one.items(),
            many => Some(many.to_vec()),
        };
        Some(match (name, first) {
            ("range", Some(_)) => {
                let bounds: Vec<i64> = positional.iter().map(Py::as_int).collect::<Option<_>>()?;
                let (start, end, step) = match *bounds.as_slice() {
                    [end] => (0, end, 1),
                    [start, end] => (start, end, 1),
                    [start, end, step] if step != 0 => (start, end, step),
                    _ => return None,
                };
                let length = end.checked_sub(start)?.checked_div(step)?;
                if length > MAX_LENGTH {
                    return None;
                }
                let mut items = Vec::new();
                let mut at = start;
                while (step > 0 && at < end) || (step < 0 && at > end) {
                    items.push(Py::Int(at));
                    at = at.checked_add(step)?;
                }
                Py::list(items)
            }
            ("len", Some(Py::List(items))) => Py::Int(items.borrow().len() as i64),
            ("len", Some(Py::Object(_) | Py::Tuple(_) | Py::Dict(_) | Py::Str(_))) => {
                Py::Int(first?.items()?.len() as i64)
            }
            ("enumerate", Some(items)) => {
                let start = positional
                    .get(1)
                    .or(keyword(keywords, "start"))
                    .map_or(Some(0), Py::as_int)?;
                let pairs = items.items()?.into_iter().zip(start..);
                Py::list(pairs.map(|(item, i)| Py::tuple(vec![Py::Int(i), item])).collect())
            }
            ("zip", Some(_)) => {
                let columns: Vec<Vec<Py>> = positional.iter().map(Py::items).collect::<Option<_>>()?;
                let length = columns.iter().map(Vec::len).min()?;
                let row = |i: usize| Py::tuple(columns.iter().filter_map(|column| column.get(i).cloned()).collect());
                Py::list((0..length).map(row).collect())
            }
            ("reversed", Some(items)) => Py::list(items.items()?.into_iter().rev().collect()),
            ("sorted", Some(items)) if keywords.is_empty() => Py::list(ordered(items.items()?)?),
            ("min", Some(_)) if keywords.is_empty() => ordered(all_or_first()?)?.first()?.clone(),
            ("max", Some(_)) if keywords.is_empty() => ordered(all_or_first()?)?.last()?.clone(),
            ("sum", Some(items)) => {
                let items = items.items()?;
                match items.iter().map(Py::as_int).collect::<Option<Vec<i64>>>() {
                    Some(ints) => Py::Int(ints.iter().try_fold(0i64, |a, &b| a.checked_add(b))?),
                    None => Py::Float(items.iter().map(Py::as_f64).sum::<Option<f64>>()?),
                }
            }
            ("copy.deepcopy", Some(value)) => deep_copy(value, &mut Vec::new(), 0)?,
            ("copy.copy", Some(value @ Py::List(_))) => Py::list(value.items()?),
            ("abs", Some(Py::Int(i))) => Py::Int(i.checked_abs()?),
            ("abs", Some(Py::Float(f))) => Py::Float(f.abs()),
            ("round", Some(number)) if positional.len() == 1 => Py::Int(number.as_f64()?.round_ties_even() as i64),
            ("any", Some(items)) => Py::Bool(items.items()?.iter().any(Py::truth)),
            ("all", Some(items)) => Py::Bool(items.items()?.iter().all(Py::truth)),
            ("int", Some(Py::Str(text))) => Py::Int(text.trim().parse().ok()?),
            ("int", Some(number)) => Py::Int(number.as_int().or_else(|| number.as_f64().map(|f| f.trunc() as i64))?),
            ("float", Some(Py::Str(text))) => Py::Float(text.trim().parse().ok()?),
            ("float", Some(number)) => Py::Float(number.as_f64()?),
            ("bool", Some(value)) => Py::Bool(value.truth()),
            ("str", Some(value)) => Py::str(value.text()),
            ("list", None) => Py::list(Vec::new()),
            ("list", Some(items)) => Py::list(items.items()?),
            ("tuple", None) => Py::tuple(Vec::new()),
            ("tuple", Some(items)) => Py::tuple(items.items()?),
            ("dict" | "OrderedDict" | "collections.OrderedDict", None) => {
                let pairs = keywords.iter().map(|(name, value)| (Py::str(name), value.clone()));
                Py::Dict(Rc::new(RefCell::new(pairs.collect())))
            }
            ("dict" | "OrderedDict" | "collections.OrderedDict", Some(items)) => {
                let pairs: Vec<(Py, Py)> = match items {
                    Py::Dict(items) => items.borrow().clone(),
                    other => {
                        let pair = |item: Py| match item.items()?.as_slice() {
                            [key, value] => Some((key.clone(), value.clone())),
                            _ => None,
                        };
                        other.items()?.into_iter().map(pair).collect::<Option<_>>()?
                    }
                };
                Py::Dict(Rc::new(RefCell::new(pairs)))
            }
            ("print", _) => Py::None,
            ("isinstance", Some(value)) => {
                let mut is = |class: &Py| match class {
                    Py::Path(path) => Some(match &**path {
                        "int" => matches!(value, Py::Int(_) | Py::Bool(_)),
                        "torch.Tensor" => matches!(value, Py::Tensor(_) | Py::Parameter(_)),
                        "torch.nn.Parameter" | "torch.nn.parameter.Parameter" => matches!(value, Py::Parameter(_)),
                        "torch.nn.Module" => matches!(value, Py::Object(_)),
                        name => is_known(name).then(|| value.type_name() == name)?,
                    }),
                    Py::Class(class) => Some(match value {
                        Py::Object(object) => {
                            let made_of = object.borrow().class.clone();
                            let chain = super::ancestry(self.program, &made_of).ok()??;
                            chain.iter().any(|base| base.is(class))
                        }
                        _ => false,
                    }),
                    _ => None,
                };
                match positional.get(1)? {
                    Py::Tuple(classes) => {
                        let found: Vec<bool> = classes.iter().map(is).collect::<Option<_>>()?;
                        Py::Bool(found.contains(&true))
                    }
                    class => Py::Bool(is(class)?),
                }
            }
            ("hasattr", Some(Py::Object(object))) => {
                Py::Bool(object.borrow().attributes.contains_key(&positional.get(1)?.text()))
            }
            ("getattr", Some(Py::Object(object))) => {
                let found = object
                    .borrow()
                    .attributes
                    .get(&positional.get(1)?.text())
                    .map(|a| a.value.clone());
                found.or_else(|| positional.get(2).cloned())?
            }
            ("setattr", Some(Py::Object(object))) => {
                let value = positional.get(2)?.clone();
                super::exec::set_attribute(&mut object.borrow_mut(), &positional.get(1)?.text(), value);
                Py::None
            }
            _ => return None,
        })
    }

    /// `torch.zeros` and the other functions that make tensors of nothing but numbers.
    fn factory(&mut self, name: &str, positional: &[Py], keywords: &[(String, Py)]) -> Option<Py> {
        let dtype = keyword(keywords, "dtype").filter(|dtype| !matches!(dtype, Py::None));
        let dtype = match dtype {
            Some(dtype) => Some(dtype_of(dtype)?),
            None => None,
        };
        let float = dtype.unwrap_or(DType::Float);
        let sizes = |arguments: &[Py]| -> Option<Vec<i64>> {
            match (arguments, keyword(keywords, "size")) {
                ([], Some(size)) => size.ints(),
                ([Py::Int(_), ..], _) => arguments.iter().map(Py::as_int).collect(),
                ([list], _) => list.ints(),
                ([], None) => Some(Vec::new()),
                _ => None,
            }
        };
        let like = || match positional.first()? {
            Py::Tensor(tensor) | Py::Parameter(tensor) => Some(tensor.clone()),
            _ => None,
        };
        if let Some(f) = super::elements::unary(name) {
            let x = like()?;
            return x.map(super::operators::float_of(&x), f).map(Py::Tensor);
        }
        let tensor = match name {
            "triu" | "tril" => {
                let diagonal = positional.get(1).or(keyword(keywords, "diagonal"));
                like()?.triangle(name == "triu", diagonal.map_or(Some(0), Py::as_int)?)?
            }
            "zeros" | "empty" => HostTensor::new(float, sizes(positional)?, |_| 0.0)?,
            "ones" => HostTensor::new(float, sizes(positional)?, |_| 1.0)?,
            "rand" => HostTensor::new(float, sizes(positional)?, |_| self.random.uniform())?,
            "randn" => HostTensor::new(float, sizes(positional)?, |_| self.random.normal())?,
            "full" => {
                let value = positional.get(1).or(keyword(keywords, "fill_value"))?;
                let default = match value {
                    Py::Int(_) => DType::Long,
                    Py::Bool(_) => DType::Bool,
                    _ => DType::Float,
                };
                let value = value.as_f64()?;
                HostTensor::new(dtype.unwrap_or(default), positional.first()?.ints()?, |_| value)?
            }
            "zeros_like" => like()?.map(dtype.unwrap_or(like()?.dtype), |_| 0.0)?,
            "ones_like" => like()?.map(dtype.unwrap_or(like()?.dtype), |_| 1.0)?,
            "tensor" | "as_tensor" => literal(positional.first()?, dtype)?,
            "Tensor" | "FloatTensor" => literal(positional.first()?, Some(DType::Float))?,
            "LongTensor" => literal(positional.first()?, Some(DType::Long))?,
            "eye" => {
                let rows = positional.first()?.as_int()?;
                let columns = positional.get(1).map_or(Some(rows), Py::as_int)?;
                HostTensor::new(float, vec![rows, columns], |i| {
                    f64::from(u8::from(i as i64 / columns.max(1) == i as i64 % columns.max(1)))
                })?
            }
            "arange" => {
                let bounds: Vec<f64> = positional.iter().map(Py::as_f64).collect::<Option<_>>()?;
                let (start, end, step) = match *bounds.as_slice() {
                    [end] => (0.0, end, 1.0),
                    [start, end] => (start, end, 1.0),
                    [start, end, step] if step != 0.0 => (start, end, step),
                    _ => return None,
                };
                let length = ((end - start) / step).ceil().max(0.0) as i64;
                let whole = positional.iter().all(|bound| matches!(bound, Py::Int(_)));
                let default = if whole { DType::Long } else { DType::Float };
                HostTensor::new(dtype.unwrap_or(default), vec![length], |i| start + step * i as f64)?
            }
            "linspace" => {
                let [start, end, steps] = positional else { return None };
                let (start, end, steps) = (start.as_f64()?, end.as_f64()?, steps.as_int()?);
                let step = (end - start) / (steps - 1).max(1) as f64;
                HostTensor::new(float, vec![steps], |i| start + step * i as f64)?
            }
            _ => return None,
        };
        Some(Py::Tensor(tensor))
    }

    /// `torch.nn.init`: fills a tensor in place.
    fn initialise(&mut self, name: &str, positional: &[Py], keywords: &[(String, Py)]) -> Option<Py> {
        let (Py::Tensor(tensor) | Py::Parameter(tensor)) = positional.first()? else {
            return None;
        };
        let number = |at: usize, name: &str, default: f64| {
            positional
                .get(at)
                .or(keyword(keywords, name))
                .map_or(Some(default), Py::as_f64)
        };
        let outputs = tensor.sizes.first().copied().unwrap_or(1).max(1);
        let inputs = (tensor.data.borrow().len() as i64 / outputs).max(1) as f64;
        let outputs = outputs as f64;
        match name {
            "zeros_" => tensor.fill(|_| 0.0),
            "ones_" => tensor.fill(|_| 1.0),
            "constant_" => {
                let value = number(1, "val", 0.0)?;
                tensor.fill(|_| value);
            }
            "uniform_" => {
                let (low, high) = (number(1, "a", 0.0)?, number(2, "b", 1.0)?);
                tensor.fill(|_| low + (high - low) * self.random.uniform());
            }
            "normal_" | "trunc_normal_" => {
                let (mean, deviation) = (number(1, "mean", 0.0)?, number(2, "std", 1.0)?);
                tensor.fill(|_| mean + deviation * self.random.normal());
            }
            "kaiming_uniform_" => {
                let slope = number(1, "a", 0.0)?;
                let bound = (6.0 / ((1.0 + slope * slope) * inputs)).sqrt();
                tensor.fill(|_| bound * (2.0 * self.random.uniform() - 1.0));
            }
            "kaiming_normal_" => {
                let slope = number(1, "a", 0.0)?;
                let deviation = (2.0 / ((1.0 + slope * slope) * inputs)).sqrt();
                tensor.fill(|_| deviation * self.random.normal());
            }
            "xavier_uniform_" => {
                let bound = number(1, "gain", 1.0)? * (6.0 / (inputs + outputs)).sqrt();
                tensor.fill(|_| bound * (2.0 * self.random.uniform() - 1.0));
            }
            "xavier_normal_" => {
                let deviation = number(1, "gain", 1.0)? * (2.0 / (inputs + outputs)).sqrt();
                tensor.fill(|_| deviation * self.random.normal());
            }
            _ => return None,
        }
        positional.first().cloned()
    }
}

fn math(name: &str, positional: &[Py]) -> Option<Py> {
    let x = positional.first()?.as_f64()?;
    Some(match (name, positional.get(1).map(Py::as_f64)) {
        ("sqrt", None) => Py::Float(x.sqrt()),
        ("exp", None) => Py::Float(x.exp()),
        ("log", None) => Py::Float(x.ln()),
        ("log2", None) => Py::Float(x.log2()),
        ("log10", None) => Py::Float(x.log10()),
        ("sin", None) => Py::Float(x.sin()),
        ("cos", None) => Py::Float(x.cos()),
        ("floor", None) => Py::Int(x.floor() as i64),
        ("ceil", None) => Py::Int(x.ceil() as i64),
        ("log", Some(Some(base))) => Py::Float(x.ln() / base.ln()),
        ("pow", Some(Some(y))) => Py::Float(x.powf(y)),
        ("prod", None) => return None,
        _ => return None,
    })
}

/// A copy of a value and all that it holds, in which what was one thing is one again. `known` holds what has been copied so far.
fn deep_copy(value: &Py, known: &mut Vec<(Py, Py)>, depth: usize) -> Option<Py> {
    if depth > MAX_DEPTH {
        return None;
    }
    let same = |a: &Py, b: &Py| match (a, b) {
        (Py::Object(a), Py::Object(b)) => Rc::ptr_eq(a, b),
        (Py::List(a), Py::List(b)) => Rc::ptr_eq(a, b),
        (Py::Dict(a), Py::Dict(b)) => Rc::ptr_eq(a, b),
        (Py::Tensor(a) | Py::Parameter(a), Py::Tensor(b) | Py::Parameter(b)) => Rc::ptr_eq(&a.data, &b.data),
        _ => false,
    };
    if let Some((_, copy)) = known.iter().find(|(original, _)| same(original, value)) {
        return Some(copy.clone());
    }
    let copy = match value {
        Py::Tensor(tensor) => Py::Tensor(tensor.map(tensor.dtype, |x| x)?),
        Py::Parameter(tensor) => Py::Parameter(tensor.map(tensor.dtype, |x| x)?),
        Py::List(items) => {
            let items: Option<Vec<Py>> = items.borrow().iter().map(|i| deep_copy(i, known, depth + 1)).collect();
            Py::list(items?)
        }
        Py::Tuple(items) => {
            let items: Option<Vec<Py>> = items.iter().map(|i| deep_copy(i, known, depth + 1)).collect();
            Py::tuple(items?)
        }
        Py::Dict(items) => {
            let items: Option<Vec<(Py, Py)>> = items
                .borrow()
                .iter()
                .map(|(key, item)| Some((key.clone(), deep_copy(item, known, depth + 1)?)))
                .collect();
            Py::Dict(Rc::new(RefCell::new(items?)))
        }
        Py::Object(object) => {
            let copy = PyObject {
                class: object.borrow().class.clone(),
                attributes: IndexMap::new(),
                transient: object.borrow().transient.clone(),
                hooks: object.borrow().hooks.clone(),
                scripted: object.borrow().scripted.clone(),
            };
            let copy = Rc::new(RefCell::new(copy));
            known.push((value.clone(), Py::Object(Rc::clone(&copy))));
            for (name, attribute) in &object.borrow().attributes {
                let attribute = Attribute {
                    value: deep_copy(&attribute.value, known, depth + 1)?,
                    kind: attribute.kind,
                };
                copy.borrow_mut().attributes.insert(name.clone(), attribute);
            }
            return Some(Py::Object(copy));
        }
        other => return Some(other.clone()),
    };
    known.push((value.clone(), copy.clone()));
    Some(copy)
}
