//! Operators that are called by name: on tensors, and in traced functions, where calls are recorded.

use crate::memory::{get, give, null, optional_text, put, text, texts};
use crate::value::values;
use crate::{FrazilError, FrazilModel, FrazilSession, FrazilValue, error::guarded};
use frazil::eager::{Arg, Ops, Var};
use frazil::trace::{Outputs, Scope};
use frazil::{Loaded, Value};
use std::ffi::c_char;
use std::mem::MaybeUninit;

/// The operators of a session. In a traced function they also record: the compiler passes them to the function, which does not free them.
pub struct FrazilOps {
    pub(crate) ops: Ops,
    /// The parameters of a traced module.
    pub(crate) scope: Option<Scope>,
}

/// Maximum nesting of lists and tuples in the results of traced functions.
const MAX_DEPTH: usize = 64;

impl FrazilOps {
    /// Returns the results of a traced function, from the value that it returned.
    pub(crate) fn outputs(&self, value: &Value, depth: usize) -> Result<Outputs, FrazilError> {
        if depth > MAX_DEPTH {
            return Err(FrazilError::argument("the result of a traced function nests too deep"));
        }
        let each = |items: &[Value]| -> Result<Vec<Outputs>, FrazilError> {
            items.iter().map(|item| self.outputs(item, depth + 1)).collect()
        };
        match value {
            Value::Tensor(_) => Ok(Outputs::Tensor(self.var(value)?)),
            Value::Tuple(tuple) => Ok(Outputs::Tuple(each(&tuple.items)?)),
            Value::List(list) => Ok(Outputs::List(each(&list.items())?)),
            Value::Dict(dict) => {
                let entries: Vec<(Value, Value)> =
                    dict.with(|entries| entries.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect());
                let named = entries.iter().map(|(key, item)| {
                    let key = key.as_str().ok_or_else(not_traced)?;
                    Ok((key.to_owned(), self.outputs(item, depth + 1)?))
                });
                Ok(Outputs::Dict(named.collect::<Result<_, FrazilError>>()?))
            }
            _ => Err(not_traced()),
        }
    }

    fn var(&self, value: &Value) -> Result<Var, FrazilError> {
        let var = self.ops.var_of(value);
        var.ok_or_else(|| FrazilError::argument("the value is no tensor"))
    }
}

fn not_traced() -> FrazilError {
    FrazilError::argument("a traced function gives tensors, and tuples, lists and dictionaries by strings of them")
}

/// Returns a value as an argument of an operator; the operator's schema decides on its conversion.
fn arg(value: &Value) -> Arg<'static> {
    match value {
        Value::List(list) => Arg::List(list.items().iter().map(arg).collect()),
        other => Arg::Value(other.clone()),
    }
}

fn of_outputs(outputs: &Outputs) -> Value {
    match outputs {
        Outputs::Tensor(var) => var.to_value(),
        Outputs::Tuple(items) | Outputs::List(items) => Value::tuple(items.iter().map(of_outputs).collect()),
        Outputs::Dict(entries) => Value::tuple(entries.iter().map(|(_, item)| of_outputs(item)).collect()),
    }
}

/// Returns the operators of a session, to be called on tensors.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_ops_new(
    session: Option<&FrazilSession>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilOps>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ops = get(session, "the session")?.session().eager();
        give(out, || Ok(FrazilOps { ops, scope: None }))
    })
}

/// Frees operators of `frazil_ops_new`.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_ops_free(ops: Option<Box<FrazilOps>>) {
    drop(ops);
}

/// Calls an operator by its name with namespace, `aten::add`, with arguments by position and `named_len` more by name. The overload is chosen by the
/// arguments, as in PyTorch; element types are passed by their numbers. A tensor that an in-place operator changes is changed for all values that share
/// it. Returns a tuple for several results, and `None` for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_ops_call(
    ops: Option<&FrazilOps>,
    operator: *const c_char,
    arguments: *const Option<&FrazilValue>,
    len: usize,
    names: *const *const c_char,
    named: *const Option<&FrazilValue>,
    named_len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ops = get(ops, "the operators")?;
        // SAFETY: the caller follows the rules.
        let (operator, arguments, names, named) = unsafe {
            let names = texts(names, named_len, "the names")?;
            let operator = text(operator, "the operator")?;
            (operator, values(arguments, len)?, names, values(named, named_len)?)
        };
        give(out, || {
            let mut call = ops.ops.start(operator);
            for argument in &arguments {
                call = call.positional(arg(argument));
            }
            for (name, argument) in names.iter().zip(&named) {
                call = call.with(name, arg(argument));
            }
            let mut results = call.call_values()?;
            Ok(FrazilValue(match results.len() {
                0 => Value::None,
                1 => results.remove(0),
                _ => Value::tuple(results),
            }))
        })
    })
}

/// Calls a function of a model, such as one of source, on tensors. In a traced function the call itself is recorded, with the control flow that the function has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_ops_call_function(
    ops: Option<&FrazilOps>,
    functions: Option<&FrazilModel>,
    name: *const c_char,
    arguments: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ops = get(ops, "the operators")?;
        let Loaded::Graphs(functions) = &get(functions, "the functions")?.0 else {
            return Err(FrazilError::argument("the model is a module: functions are wanted"));
        };
        // SAFETY: the caller follows the rules.
        let (name, arguments) = unsafe { (text(name, "the name")?, values(arguments, len)?) };
        let vars = arguments
            .iter()
            .map(|value| ops.var(value))
            .collect::<Result<Vec<_>, _>>()?;
        let vars: Vec<&Var> = vars.iter().collect();
        give(out, || {
            Ok(FrazilValue(of_outputs(&functions.call(name, &ops.ops, &vars)?)))
        })
    })
}

/// Returns the parameter or buffer at a dotted path of a traced method.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_ops_parameter(
    ops: Option<&FrazilOps>,
    path: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ops = get(ops, "the operators")?;
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        let scope = ops.scope.as_ref();
        let scope = scope.ok_or_else(|| FrazilError::argument("there are no parameters: no module is traced"))?;
        give(out, || Ok(FrazilValue(scope.get(path)?.to_value())))
    })
}

/// Sets the source location of the following calls, for the graph that is being recorded and for warnings: a file of the caller and a line in it. If `file` is
/// NULL, the calls have no location, as before the first call of this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_ops_set_place(
    ops: Option<&FrazilOps>,
    file: *const c_char,
    line: u32,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ops = get(ops, "the operators")?;
        // SAFETY: the caller follows the rules.
        let file = unsafe { optional_text(file, "the file") }?;
        ops.ops.set_place(file.map(|file| (file, line)));
        Ok(())
    })
}

/// Returns true if calls are recorded, that is, in a traced function.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_ops_is_tracing(
    ops: Option<&FrazilOps>,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    guarded(|| put(out, get(ops, "the operators")?.ops.is_tracing()))
}

/// Gives a tensor a name in the graph that is being recorded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_ops_name(
    ops: Option<&FrazilOps>,
    tensor: Option<&FrazilValue>,
    name: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let (ops, tensor) = (get(ops, "the operators")?, get(tensor, "the tensor")?);
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name") }?;
        let _ = ops.var(&tensor.0)?.named(name);
        Ok(())
    })
}

/// Returns the size of dimension `dim` as a 0-d tensor. A negative `dim` counts from the end. A graph that is being recorded computes the size at run time. In
/// contrast, the integer that `frazil_tensor_size` returns becomes a constant of the graph.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_ops_size(
    ops: Option<&FrazilOps>,
    tensor: Option<&FrazilValue>,
    dim: i64,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let (ops, tensor) = (get(ops, "the operators")?, get(tensor, "the tensor")?);
        let var = ops.var(&tensor.0)?;
        give(out, || Ok(FrazilValue(var.size(dim)?.to_value())))
    })
}

/// Returns the only element of a tensor, as a number or bool. In a graph that is being recorded, the element becomes a constant, and a warning is issued.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_ops_item(
    ops: Option<&FrazilOps>,
    tensor: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let (ops, tensor) = (get(ops, "the operators")?, tensor.ok_or_else(|| null("the tensor"))?);
        let var = ops.var(&tensor.0)?;
        give(out, || Ok(FrazilValue(var.item()?.into())))
    })
}
