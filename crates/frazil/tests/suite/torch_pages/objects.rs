//! The objects of steps: values, modules, graphs, and containers of them.

use std::fmt;
use std::path::Path;

use super::containers;
pub use super::helpers::helper;
pub use super::module::Module;
use super::steps::{Lambda, applied};
use frazil::ir::{DType, Graph};
use frazil::runtime::value::{DictValue, Key, ListValue};
use frazil::{CallError, EngineKind, EngineOptions, Error, Session, StateHookId, TensorInfo, Value};
use frazil_recorded::value::common_type;
use indexmap::IndexMap;

/// Arguments by name.
pub type Kwargs = Vec<(String, Object)>;

/// The value of an expression, or the reason why it has none.
pub type Outcome = Result<Object, Failure>;

/// The reason why an expression has no value here.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(text: String) -> Failure {
        Failure(text)
    }

    /// Returns the failure for `what`, which our interface does not have.
    pub fn lacks(what: &str) -> Failure {
        Failure(format!("our interface has no counterpart of {what}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(error.to_string())
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        Failure(error.to_string())
    }
}

/// The value of an expression of a step.
#[derive(Clone)]
pub enum Object {
    Value(Value),
    /// A module, a function, or a method of a module.
    Module(Module),
    Graph(Box<Graph>),
    List(Vec<Object>),
    Tuple(Vec<Object>),
    Dict(Vec<(Object, Object)>),
    DType(String),
    MemoryFormat(String),
    Function(Lambda),
    /// A hook that can be removed.
    Handle(Module, usize),
    /// A hook of all modules.
    HandleOfAll(usize),
    /// A hook of state dictionaries that can be removed.
    StateHandle(Module, StateHookId),
    /// A tensor without elements.
    Meta(TensorInfo),
    /// A name of PyTorch, or of a helper.
    Name(String),
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::Value(value) => write!(f, "{value:?}"),
            Object::Module(module) => write!(f, "module {}", module.original_name()),
            Object::Graph(_) => f.write_str("graph"),
            Object::List(items) | Object::Tuple(items) => f.debug_list().entries(items).finish(),
            Object::Dict(pairs) => f.debug_map().entries(pairs.iter().map(|(k, v)| (k, v))).finish(),
            Object::DType(name) | Object::MemoryFormat(name) | Object::Name(name) => f.write_str(name),
            Object::Function(_) => f.write_str("lambda"),
            Object::HandleOfAll(_) | Object::Handle(..) | Object::StateHandle(..) => f.write_str("handle"),
            Object::Meta(info) => write!(f, "{info:?}"),
        }
    }
}

impl Object {
    /// Returns a string.
    pub fn str(text: impl AsRef<str>) -> Object {
        Object::Value(Value::str(text))
    }

    /// Returns a list of integers.
    pub fn ints(items: &[i64]) -> Object {
        Object::List(items.iter().map(|n| Object::Value(Value::Int(*n))).collect())
    }

    /// Returns the pairs of names and objects, as PyTorch's iterators return them.
    pub fn pairs(pairs: impl IntoIterator<Item = (String, Object)>) -> Object {
        let pairs = pairs
            .into_iter()
            .map(|(name, object)| Object::Tuple(vec![Object::str(name), object]));
        Object::List(pairs.collect())
    }

    /// Returns the object as a value of TorchScript.
    pub fn value(&self) -> Result<Value, Failure> {
        let all = |items: &[Object]| items.iter().map(Object::value).collect::<Result<Vec<Value>, Failure>>();
        Ok(match self {
            Object::Value(value) => value.clone(),
            Object::Tuple(items) => Value::tuple(all(items)?),
            Object::List(items) => {
                let items = all(items)?;
                Value::List(ListValue::new(common_type(&items), items))
            }
            Object::Dict(pairs) => {
                let keys = pairs
                    .iter()
                    .map(|(key, _)| key.value())
                    .collect::<Result<Vec<_>, _>>()?;
                let values = pairs
                    .iter()
                    .map(|(_, value)| value.value())
                    .collect::<Result<Vec<_>, _>>()?;
                let (key, value) = (common_type(&keys), common_type(&values));
                let entries: IndexMap<Key, Value> = keys.into_iter().map(Key).zip(values).collect();
                Value::Dict(DictValue::new(key, value, entries))
            }
            _ => return Err(Failure(format!("{self:?} is no value"))),
        })
    }

    /// Returns the text of a string, a graph or a module (`str(...)`).
    pub fn text(&self) -> Result<String, Failure> {
        match self {
            Object::Value(Value::Str(text)) => Ok(text.to_string()),
            Object::Graph(graph) => Ok(frazil_syntax::print_graph(graph)),
            Object::Module(module) => module.text(),
            _ => Err(Failure(format!("{self:?} is no text"))),
        }
    }

    /// Returns whether the object is true in Python.
    pub fn is_true(&self) -> bool {
        match self {
            Object::Value(value) => value.as_bool().unwrap_or(!matches!(value, Value::None)),
            other => other.items().is_none_or(|items| !items.is_empty()),
        }
    }

    /// Returns the elements of a container; the pairs of a dictionary.
    pub fn items(&self) -> Option<Vec<Object>> {
        match self {
            Object::List(items) | Object::Tuple(items) => Some(items.clone()),
            Object::Dict(pairs) => {
                let pairs = pairs.iter().map(|(k, v)| Object::Tuple(vec![k.clone(), v.clone()]));
                Some(pairs.collect())
            }
            Object::Value(Value::Dict(dict)) => {
                let pair =
                    |(k, v): (&Key, &Value)| Object::Tuple(vec![Object::Value(k.0.clone()), Object::Value(v.clone())]);
                Some(dict.with(|entries| entries.iter().map(pair).collect()))
            }
            Object::Value(value) => Some(value.items()?.into_iter().map(Object::Value).collect()),
            _ => None,
        }
    }

    /// Returns the value of `object[at]`.
    pub fn item(&self, at: &Object) -> Outcome {
        let at = at.value()?;
        if let (Object::Module(module), Some(index)) = (self, at.as_int()) {
            return module.attribute(&index.to_string());
        }
        if let Object::Value(dict @ Value::Dict(_)) = self {
            let found = containers::method(dict, "__getitem__", &[Object::Value(at)]);
            return found.unwrap_or_else(|| Err(Failure::lacks("this key")));
        }
        if let Object::Dict(pairs) = self {
            let found = pairs
                .iter()
                .find(|(key, _)| key.value().is_ok_and(|key| key.as_str() == at.as_str()));
            return found
                .map(|(_, value)| value.clone())
                .ok_or_else(|| Failure(format!("no key {at:?}")));
        }
        let items = self.items().unwrap_or_default();
        let index = at.as_int().and_then(|i| usize::try_from(i).ok());
        index
            .and_then(|i| items.get(i).cloned())
            .ok_or_else(|| Failure(format!("no element {at:?}")))
    }

    /// Returns the value of `object.name`.
    pub fn attribute(&self, name: &str) -> Outcome {
        match (self, name) {
            (Object::Module(module), _) => module.attribute(name),
            (Object::Tuple(keys), "missing_keys") => Ok(keys[0].clone()),
            (Object::Tuple(keys), "unexpected_keys") => Ok(keys[1].clone()),
            (Object::Dict(_), _) => self.item(&Object::str(name)),
            (Object::Meta(info), _) => Ok(match name {
                "dtype" => Object::str(info.dtype.to_string()),
                "device" => Object::str(info.device.to_string()),
                "requires_grad" => Object::Value(Value::Bool(info.requires_grad)),
                "is_meta" => Object::Value(Value::Bool(true)),
                "shape" => Object::ints(&info.sizes),
                _ => return Err(Failure::lacks(name)),
            }),
            (Object::Value(Value::Tensor(_)), "is_meta") => Ok(Object::Value(Value::Bool(false))),
            (Object::Value(Value::Tensor(cell)), "requires_grad") => {
                Ok(Object::Value(Value::Bool(cell.get().requires_grad())))
            }
            (Object::Value(Value::Tensor(cell)), "dtype") => Ok(Object::str(cell.get().dtype().to_string())),
            (Object::Value(value @ Value::Tensor(_)), "device") => {
                let device = computed("str(a.device)", std::slice::from_ref(value))?;
                Ok(Object::Value(device))
            }
            (Object::Value(value), _) => Ok(Object::Value(computed(
                &format!("a.{name}"),
                std::slice::from_ref(value),
            )?)),
            (Object::Name(of), _) => Ok(Object::Name(format!("{of}.{name}"))),
            _ => Err(Failure::lacks(name)),
        }
    }

    /// Calls `object.name(args)`.
    pub fn call_method(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Outcome {
        match (self, name) {
            (Object::Module(module), _) => module.call_method(name, args, kwargs),
            (Object::HandleOfAll(hook), "remove") => {
                super::calls::remove_hook(*hook);
                Ok(Object::Value(Value::None))
            }
            (Object::Handle(module, hook), "remove") => {
                module.remove_hook(*hook);
                Ok(Object::Value(Value::None))
            }
            (Object::Name(of), _) => helper(&format!("{of}.{name}"), args.to_vec(), kwargs.clone()),
            (Object::Dict(pairs), "keys") => Ok(Object::List(pairs.iter().map(|(k, _)| k.clone()).collect())),
            (Object::Meta(info), "stride") => Ok(Object::ints(&info.strides)),
            (Object::Meta(info), "size") => Ok(Object::ints(&info.sizes)),
            (Object::StateHandle(module, hook), "remove") => {
                module.remove_state_hook(*hook)?;
                Ok(Object::Value(Value::None))
            }
            (Object::Value(value), _) => {
                if let Some(result) = containers::method(value, name, args) {
                    return result;
                }
                let values: Result<Vec<Value>, Failure> =
                    std::iter::once(self).chain(args).map(Object::value).collect();
                let names: Vec<&str> = NAMES[1..=args.len()].to_vec();
                Ok(Object::Value(computed(
                    &format!("a.{name}({})", names.join(", ")),
                    &values?,
                )?))
            }
            _ => Err(Failure::lacks(name)),
        }
    }

    /// Calls `object(args)`.
    pub fn call(&self, args: &[Object], kwargs: &Kwargs) -> Outcome {
        match self {
            Object::Module(module) => module.call(args, kwargs),
            Object::Function(tree) => applied(tree, args.to_vec()),
            _ => Err(Failure(format!("{self:?} cannot be called"))),
        }
    }

    /// Returns the dtype in an expression of a step.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Object::DType(name) => DType::ALL
                .into_iter()
                .find(|dtype| dtype.python_name() == name.as_str()),
            _ => None,
        }
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Evaluates an expression of `a`, `b`, `c`, `d` as TorchScript.
pub fn computed(expression: &str, values: &[Value]) -> Result<Value, Failure> {
    let ty = |value: &Value| match value {
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Str(_) => "str",
        Value::Tensor(_) => "Tensor",
        _ => "Any",
    };
    let parameters: Vec<String> = values
        .iter()
        .zip(NAMES)
        .map(|(v, name)| format!("{name}: {}", ty(v)))
        .collect();
    let source = format!("def f({}):\n    return {expression}\n", parameters.join(", "));
    let loaded = Session::new().script(Path::new("expression.py"), &source, &[])?;
    let options = EngineOptions::default().kind(EngineKind::Interpreter);
    Ok(loaded.to_model("f")?.engine(&options)?.call("forward", values)?)
}
