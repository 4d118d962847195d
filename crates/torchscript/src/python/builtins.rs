//! Evaluation of calls to functions of Python and `torch`, by dotted name.

use std::cmp::Ordering;
use std::sync::Arc;

use frazil_ir::{DType, Device};
use num_complex::Complex64;
use ruff_python_ast::ExprCall;

use super::arguments::Arguments;
use super::compare::order;
use super::copies::deep_copy;
use super::dtypes::bounds;
use super::known::is_function_path;
use super::maker::{MAX_LENGTH, Maker};
use super::sets::{elements, set_of};
use super::tensor_literals::literal_error;
use super::unknown::opaque_result;
use super::value::{Py, dtype_of, insert, iterator};
use crate::error::Result;
use crate::source::SourceFile;

/// Returns PyTorch's message for compiling or calling a module after the function `path` has changed it.
fn unscriptable(path: &str) -> Option<&'static str> {
    Some(match path {
        "torch.nn.utils.weight_norm" => "'WeightNorm' object has no attribute '__name__'",
        "torch.nn.utils.spectral_norm" => "'SpectralNorm' object has no attribute '__name__'",
        "torch.nn.utils.parametrizations.weight_norm" | "torch.nn.utils.parametrizations.orthogonal" => {
            "Parametrization is not working with scripting."
        }
        "torch.nn.utils.parametrizations.spectral_norm" => "Comprehension ifs are not supported yet",
        _ => return None,
    })
}

impl Maker<'_> {
    pub(super) fn call_path(
        &mut self,
        file: &Arc<SourceFile>,
        path: &str,
        arguments: &Arguments,
        call: &ExprCall,
    ) -> Result<Py> {
        if let Some(method) = path.strip_prefix("torch.nn.Module.")
            && let [Py::Object(object), rest @ ..] = arguments.positional()
        {
            let rest = Arguments::new(rest.to_vec(), arguments.keywords().to_vec());
            return self.module_method(file, object, method, &rest, call);
        }
        if let Some(reason) = unscriptable(path) {
            return self.fail(file, reason, call);
        }
        if let Some(reason) = refused(path, arguments) {
            return self.fail(file, reason, call);
        }
        let value = match path.strip_prefix("torch.") {
            _ if path.ends_with("namedtuple") || matches!(path, "NamedTuple" | "typing.NamedTuple") => {
                self.named_factory(path, arguments)
            }
            Some("nn.Parameter" | "nn.parameter.Parameter") => parameter(arguments),
            Some("jit.script") => match arguments.positional() {
                [value] => self.script(file, value, call)?,
                _ => None,
            },
            Some("jit.trace") => self.trace(file, arguments, call)?,
            Some("jit.trace_module") => self.trace_module(file, arguments, call)?,
            Some("no_grad" | "inference_mode" | "enable_grad" | "set_grad_enabled") => {
                arguments.positional();
                Some(Py::Opaque("context of gradients"))
            }
            Some("manual_seed") => {
                arguments.get(0, "seed");
                Some(Py::Opaque("generator of random numbers"))
            }
            Some("device") => match arguments.get(0, "device") {
                Some(Py::Str(text)) => Device::parse(text).map(Py::Device),
                Some(device @ Py::Device(_)) => Some(device.clone()),
                _ => None,
            },
            // Only the CPU is supported.
            Some("cuda.is_available" | "backends.mps.is_available" | "backends.cuda.is_built") => Some(Py::Bool(false)),
            // The limits of a dtype: `super::attributes` gives their names values.
            Some(limits @ ("finfo" | "iinfo")) => {
                let dtype = match arguments.get(0, "type") {
                    Some(dtype) => dtype_of(dtype),
                    None if limits == "finfo" => Some(DType::Float),
                    None => None,
                };
                dtype
                    .filter(|dtype| dtype.is_floating_point() == (limits == "finfo"))
                    .map(Py::Limits)
            }
            Some("Size") => arguments
                .first()
                .and_then(Py::items)
                .map(|items| Py::Size(items.into())),
            Some("is_tensor") => {
                let is_tensor = |value: &Py| Py::Bool(matches!(value, Py::Tensor(_) | Py::Parameter(_)));
                arguments.get(0, "obj").map(is_tensor)
            }
            Some(name) => match name.strip_prefix("nn.init.") {
                Some(initialiser) => self.initialise(initialiser, arguments),
                None => self.factory(name, arguments),
            },
            None if path == "logging.getLogger" => {
                arguments.get(0, "name");
                Some(Py::Path("logging.Logger".into()))
            }
            None => match path.strip_prefix("math.") {
                Some(name) => self.math(name, arguments),
                None => match path {
                    "hasattr" | "getattr" | "setattr" => self.by_name(file, path, arguments, call)?,
                    "isinstance" => self.is_instance(arguments)?,
                    "bool" | "any" | "all" => self.truths(file, path, arguments, call)?,
                    _ => self.python(path, arguments),
                },
            },
        };
        let value = value.or_else(|| opaque_result(path, arguments));
        self.finish(file, value, arguments, || format!("this call of `{path}`"), call)
    }

    /// Evaluates `hasattr`, `getattr` and `setattr`.
    fn by_name(
        &mut self,
        file: &Arc<SourceFile>,
        function: &str,
        arguments: &Arguments,
        call: &ExprCall,
    ) -> Result<Option<Py>> {
        let (Some(base), Some(Py::Str(name))) = (arguments.at(0), arguments.at(1)) else {
            return Ok(None);
        };
        if function == "setattr" {
            let (Py::Object(object), Some(value)) = (base, arguments.at(2)) else {
                return Ok(None);
            };
            self.set_member(file, object, name, value.clone(), call)?;
            return Ok(Some(Py::None));
        }
        let found = self.attribute_if_any(file, base, name, call)?;
        if function == "hasattr" {
            return Ok(Some(Py::Bool(found.is_some())));
        }
        match (found, arguments.at(2)) {
            (Some(value), _) => Ok(Some(value)),
            (None, Some(default)) => Ok(Some(default.clone())),
            (None, None) => self.attribute(file, base.clone(), name, call).map(Some),
        }
    }

    fn is_instance(&mut self, arguments: &Arguments) -> Result<Option<Py>> {
        let (Some(value), Some(class)) = (arguments.at(0), arguments.at(1)) else {
            return Ok(None);
        };
        let classes = match class {
            Py::Tuple(classes) => classes.to_vec(),
            class => vec![class.clone()],
        };
        let (mut found, mut known) = (false, true);
        for class in &classes {
            match self.is_of(value, class)? {
                Some(is) => found |= is,
                None => known = false,
            }
        }
        Ok((found || known).then_some(Py::Bool(found)))
    }

    /// Returns whether `value` is an instance of `class`; `None` if this is unknown.
    fn is_of(&mut self, value: &Py, class: &Py) -> Result<Option<bool>> {
        let path = match class {
            Py::Path(path) => &**path,
            Py::Class(class) => {
                if let Py::Named(named) = value {
                    return Ok(Some(self.is_named_of(named, class)?.unwrap_or(false)));
                }
                return Ok(Some(match value {
                    Py::Object(object) => self.chain(object)?.iter().any(|base| base.is(class)),
                    Py::Member(ty, _) => self.enum_type(class)? == Some(*ty),
                    // A function is no object of a class of modules or of an enumeration.
                    Py::Path(path) if is_function_path(path) => false,
                    Py::Opaque(_) | Py::Unknown(_) | Py::Path(_) => return Ok(None),
                    _ => false,
                }));
            }
            _ => return Ok(None),
        };
        // A function is no number, text or list.
        if let Py::Path(function) = value
            && is_function_path(function)
            && matches!(path, "str" | "int" | "float" | "bool" | "list" | "tuple" | "dict")
        {
            return Ok(Some(false));
        }
        if matches!(
            value,
            Py::Member(..) | Py::Opaque(_) | Py::Unknown(_) | Py::Path(_) | Py::Iterator(_) | Py::Keys(_)
        ) {
            return Ok(None);
        }
        Ok(Some(match path {
            "int" => matches!(value, Py::Int(_) | Py::Bool(_)),
            "torch.Tensor" => matches!(value, Py::Tensor(_) | Py::Parameter(_)),
            "torch.nn.Parameter" | "torch.nn.parameter.Parameter" => matches!(value, Py::Parameter(_)),
            "torch.nn.Module" | "torch.nn.modules.Module" | "torch.nn.modules.module.Module" => {
                matches!(value, Py::Object(_))
            }
            "torch.device" => matches!(value, Py::Device(_)),
            "type" => matches!(value, Py::Class(_)),
            "tuple" => matches!(value, Py::Tuple(_) | Py::Size(_) | Py::Named(_)),
            "str" | "float" | "bool" | "list" => value.type_name() == path,
            "dict" => matches!(value, Py::Dict(_)),
            "set" => matches!(value, Py::Set(_, false)),
            "frozenset" => matches!(value, Py::Set(_, true)),
            "complex" => matches!(value, Py::Complex(_)),
            _ => return Ok(None),
        }))
    }

    /// Evaluates `bool`, `any` and `all`.
    fn truths(
        &mut self,
        file: &Arc<SourceFile>,
        function: &str,
        arguments: &Arguments,
        call: &ExprCall,
    ) -> Result<Option<Py>> {
        let Some(value) = arguments.first() else {
            return Ok((function == "bool").then_some(Py::Bool(false)));
        };
        if function == "bool" {
            return self.truth(file, value, call).map(|truth| Some(Py::Bool(truth)));
        }
        let Some(items) = self.items(value) else {
            return Ok(None);
        };
        for item in items {
            if self.truth(file, &item, call)? == (function == "any") {
                return Ok(Some(Py::Bool(function == "any")));
            }
        }
        Ok(Some(Py::Bool(function == "all")))
    }

    fn python(&mut self, name: &str, arguments: &Arguments) -> Option<Py> {
        let first = arguments.first();
        Some(match (name, first) {
            ("range", Some(_)) => {
                let bounds: Vec<i64> = arguments.positional().iter().map(Py::as_int).collect::<Option<_>>()?;
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
            ("len", Some(value)) => Py::Int(self.length(value)?),
            ("enumerate", Some(items)) => {
                let start = arguments.int(1, "start", 0)?;
                let pairs = self.items(items)?.into_iter().zip(start..);
                iterator(pairs.map(|(item, i)| Py::tuple(vec![Py::Int(i), item])).collect())
            }
            ("zip", Some(_)) => {
                let columns: Vec<Vec<Py>> = arguments
                    .positional()
                    .iter()
                    .map(|column| self.items(column))
                    .collect::<Option<_>>()?;
                let length = columns.iter().map(Vec::len).min()?;
                let row = |i: usize| Py::tuple(columns.iter().filter_map(|column| column.get(i).cloned()).collect());
                iterator((0..length).map(row).collect())
            }
            ("reversed", Some(items)) => iterator(self.items(items)?.into_iter().rev().collect()),
            ("iter", Some(iterator @ Py::Iterator(_))) => iterator.clone(),
            ("iter", Some(items)) => iterator(self.items(items)?),
            ("next", Some(Py::Iterator(items))) => {
                let next = items.borrow_mut().as_mut()?.pop_front();
                match next {
                    Some(item) => item,
                    None => arguments.at(1).cloned()?,
                }
            }
            ("sorted", Some(items)) => {
                let reverse = arguments.named("reverse").map_or(Some(false), Py::truth)?;
                let items = match items {
                    Py::Set(..) => elements(items)?,
                    items => self.items(items)?,
                };
                Py::list(sorted(items, reverse)?)
            }
            ("min" | "max", Some(first)) => {
                let items = match arguments.positional() {
                    [set @ Py::Set(..)] => elements(set)?,
                    [_] => self.items(first)?,
                    many => many.to_vec(),
                };
                let wanted = if name == "min" {
                    Ordering::Less
                } else {
                    Ordering::Greater
                };
                let mut items = items.into_iter();
                let Some(mut best) = items.next() else {
                    return arguments.named("default").cloned();
                };
                arguments.named("default");
                for item in items {
                    if order(&item, &best)? == wanted {
                        best = item;
                    }
                }
                best
            }
            ("sum", Some(items)) => {
                let start = arguments.get(1, "start").cloned().unwrap_or(Py::Int(0));
                let items: Vec<Py> = std::iter::once(start).chain(self.items(items)?).collect();
                match items.iter().map(Py::as_int).collect::<Option<Vec<i64>>>() {
                    Some(ints) => Py::Int(ints.iter().try_fold(0i64, |a, &b| a.checked_add(b))?),
                    None => Py::Float(float_sum(&items.iter().map(Py::as_f64).collect::<Option<Vec<f64>>>()?)?),
                }
            }
            ("copy.deepcopy", Some(value)) => deep_copy(value)?,
            ("copy.copy", Some(value @ Py::List(_))) => Py::list(value.items()?),
            ("copy.copy", Some(Py::Dict(items))) => Py::dict(items.borrow().clone()),
            ("abs", Some(Py::Int(i))) => Py::Int(i.checked_abs()?),
            ("abs", Some(Py::Float(f))) => Py::Float(f.abs()),
            ("abs", Some(Py::Complex(number))) => Py::Float(number.norm()),
            ("complex", Some(Py::Str(text))) => Py::Complex(text.trim().parse().ok()?),
            ("complex", Some(real)) => {
                let imaginary = arguments.get(1, "imag").map_or(Some(Complex64::ZERO), Py::as_complex)?;
                Py::Complex(real.as_complex()? + imaginary * Complex64::I)
            }
            ("round", Some(number)) if arguments.count() == 1 => match number.as_int() {
                Some(int) => Py::Int(int),
                None => whole(number.as_f64()?.round_ties_even())?,
            },
            ("divmod", Some(Py::Int(a))) => match arguments.at(1)? {
                Py::Int(b) if *b > 0 => {
                    let (quotient, rest) = (a.div_euclid(*b), a.rem_euclid(*b));
                    Py::tuple(vec![Py::Int(quotient), Py::Int(rest)])
                }
                _ => return None,
            },
            ("int", None) => Py::Int(0),
            ("int", Some(Py::Str(text))) => Py::Int(text.trim().parse().ok()?),
            ("int", Some(number)) => match (number.as_int(), number) {
                (Some(int), _) => Py::Int(int),
                (None, Py::Tensor(tensor) | Py::Parameter(tensor)) => match tensor.values().as_slice() {
                    &[x] => whole(x.trunc())?,
                    _ => return None,
                },
                (None, number) => whole(number.as_f64()?.trunc())?,
            },
            ("float", Some(Py::Str(text))) => Py::Float(text.trim().parse().ok()?),
            ("float", Some(Py::Tensor(tensor) | Py::Parameter(tensor))) => match tensor.values().as_slice() {
                &[x] => Py::Float(x),
                _ => return None,
            },
            ("float", Some(number)) => Py::Float(number.as_f64()?),
            ("str", None) => Py::str(""),
            ("str", Some(value)) => Py::str(value.text()?),
            ("repr", Some(value)) => Py::str(value.repr()?),
            ("type", Some(value)) => match value {
                Py::Object(object) => Py::Class(object.borrow().class.clone()),
                Py::Tensor(_) => Py::Path("torch.Tensor".into()),
                Py::Parameter(_) => Py::Path("torch.nn.Parameter".into()),
                Py::Bool(_) | Py::Int(_) | Py::Float(_) | Py::Str(_) | Py::List(_) | Py::Tuple(_) => {
                    Py::Path(value.type_name().into())
                }
                _ => return None,
            },
            ("set" | "frozenset", None) => set_of(Vec::new(), name == "frozenset")?,
            ("set" | "frozenset", Some(items)) => {
                let items = match items {
                    Py::Set(..) => elements(items)?,
                    items => self.items(items)?,
                };
                set_of(items, name == "frozenset")?
            }
            ("list", None) => Py::list(Vec::new()),
            ("list", Some(items)) => Py::list(self.items(items)?),
            ("tuple", None) => Py::tuple(Vec::new()),
            ("tuple", Some(tuple @ Py::Tuple(_))) => tuple.clone(),
            ("tuple", Some(items)) => Py::tuple(self.items(items)?),
            ("dict" | "OrderedDict" | "collections.OrderedDict", items) => {
                let mut pairs: Vec<(Py, Py)> = Vec::new();
                let given = match items {
                    None => Vec::new(),
                    Some(Py::Dict(items)) => items.borrow().clone(),
                    Some(Py::Object(object)) => {
                        let held = self.held(object).ok()??;
                        held.into_iter().map(|(name, value)| (Py::str(name), value)).collect()
                    }
                    Some(other) => {
                        let pair = |item: Py| match item.items()?.as_slice() {
                            [key, value] => Some((key.clone(), value.clone())),
                            _ => None,
                        };
                        self.items(other)?.into_iter().map(pair).collect::<Option<_>>()?
                    }
                };
                let by_name = arguments
                    .keywords()
                    .iter()
                    .map(|(name, value)| (Py::str(name), value.clone()));
                for (key, value) in given.into_iter().chain(by_name) {
                    insert(&mut pairs, key, value);
                }
                Py::dict(pairs)
            }
            ("print", _) => {
                arguments.positional();
                arguments.keywords();
                Py::None
            }
            _ => return None,
        })
    }

    fn math(&mut self, name: &str, arguments: &Arguments) -> Option<Py> {
        let first = arguments.first()?;
        if name == "prod" {
            let items = self.items(first)?;
            return match items.iter().map(Py::as_int).collect::<Option<Vec<i64>>>() {
                Some(ints) => Some(Py::Int(ints.iter().try_fold(1i64, |a, &b| a.checked_mul(b))?)),
                None => Some(Py::Float(items.iter().map(Py::as_f64).product::<Option<f64>>()?)),
            };
        }
        if let ("gcd", Py::Int(a)) = (name, first) {
            let (mut a, mut b) = (a.unsigned_abs(), arguments.at(1)?.as_int()?.unsigned_abs());
            while b != 0 {
                (a, b) = (b, a % b);
            }
            return i64::try_from(a).ok().map(Py::Int);
        }
        let x = first.as_f64()?;
        let value = match (name, arguments.at(1)) {
            ("floor" | "ceil" | "trunc", None) => {
                return match (first.as_int(), name) {
                    (Some(int), _) => Some(Py::Int(int)),
                    (None, "floor") => whole(x.floor()),
                    (None, "ceil") => whole(x.ceil()),
                    (None, _) => whole(x.trunc()),
                };
            }
            ("isnan", None) => return Some(Py::Bool(x.is_nan())),
            ("isinf", None) => return Some(Py::Bool(x.is_infinite())),
            ("isfinite", None) => return Some(Py::Bool(x.is_finite())),
            ("isqrt", None) => return None,
            ("sqrt", None) => x.sqrt(),
            ("exp", None) => x.exp(),
            ("log", None) => x.ln(),
            ("log2", None) => x.log2(),
            ("log10", None) => x.log10(),
            ("sin", None) => x.sin(),
            ("cos", None) => x.cos(),
            ("tan", None) => x.tan(),
            ("tanh", None) => x.tanh(),
            ("atan", None) => x.atan(),
            ("fabs", None) => x.abs(),
            ("log", Some(base)) => {
                let base = base.as_f64().filter(|&base| base > 0.0 && base != 1.0)?;
                x.ln() / base.ln()
            }
            ("pow", Some(y)) => x.powf(y.as_f64()?),
            _ => return None,
        };
        // Python raises an error of domain or range.
        (value.is_finite() || !x.is_finite()).then_some(Py::Float(value))
    }
}

/// Returns the exception that PyTorch raises for the dtypes of a call's arguments, if it raises one.
fn refused(path: &str, arguments: &Arguments) -> Option<String> {
    let dtype = || arguments.named("dtype").and_then(dtype_of);
    match path {
        "torch.tensor" => literal_error(arguments.at(0)?, dtype()?),
        "torch.full" => {
            let dtype = dtype()?;
            let (least, greatest) = bounds(dtype)?;
            let least = if dtype == DType::Byte { -greatest } else { least };
            let value = arguments.get(1, "fill_value")?.as_f64()?;
            let name = match dtype {
                DType::Byte => "uint8_t",
                DType::Char => "int8_t",
                DType::Short => "int16_t",
                _ => "int",
            };
            (!(least..=greatest).contains(&value.trunc()))
                .then(|| format!("value cannot be converted to type {name} without overflow"))
        }
        "torch.nn.Parameter" | "torch.nn.parameter.Parameter" => {
            let (Py::Tensor(tensor) | Py::Parameter(tensor)) = arguments.get(0, "data")? else {
                return None;
            };
            let requires_grad = arguments.flag(1, "requires_grad", true)?;
            let may_require = tensor.dtype().is_floating_point() || tensor.dtype().is_complex();
            (requires_grad && !may_require)
                .then(|| "Only Tensors of floating point and complex dtype can require gradients".into())
        }
        _ => None,
    }
}

/// Evaluates `nn.Parameter(data, requires_grad)`, which returns a new tensor object with the storage of `data`.
fn parameter(arguments: &Arguments) -> Option<Py> {
    let (Py::Tensor(tensor) | Py::Parameter(tensor)) = arguments.get(0, "data")? else {
        return None;
    };
    let requires_grad = arguments.flag(1, "requires_grad", true)?;
    let parameter = tensor.alias();
    parameter.set_requires_grad(requires_grad);
    Some(Py::Parameter(parameter))
}

/// Returns a float without fractional part as an integer.
fn whole(x: f64) -> Option<Py> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (-LIMIT..LIMIT).contains(&x).then_some(Py::Int(x as i64))
}

/// Returns the sum of floats, if all versions of Python compute the same sum. (Newer versions compensate for rounding.)
fn float_sum(items: &[f64]) -> Option<f64> {
    let naive: f64 = items.iter().fold(0.0, |sum, x| sum + x);
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for &x in items {
        let next = sum + x;
        lost += if sum.abs() >= x.abs() {
            (sum - next) + x
        } else {
            (x - next) + sum
        };
        sum = next;
    }
    let compensated = if lost.is_finite() { sum + lost } else { sum };
    (naive == compensated || naive.is_nan()).then_some(naive)
}

/// Returns the items in ascending order, or in descending order for `reverse`. The sort is stable.
fn sorted(items: Vec<Py>, reverse: bool) -> Option<Vec<Py>> {
    let mut known = true;
    let mut items = items;
    items.sort_by(|a, b| {
        let (a, b) = if reverse { (b, a) } else { (a, b) };
        order(a, b).unwrap_or_else(|| {
            known = false;
            Ordering::Equal
        })
    });
    known.then_some(items)
}
