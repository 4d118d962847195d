//! Signatures: arguments and results of methods.

use crate::memory::{c_string, get, give, put, text};
use crate::{FrazilError, FrazilModel, FrazilValue, error::guarded};
use frazil::ir::TypeId;
use frazil::ir::schema::Argument;
use frazil::ir::types::{TypeStyle, display_type};
use frazil::runtime::Signature;
use frazil::runtime::import::Importer;
use frazil::{Loaded, Model, Value};
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

/// The signature of a method: its arguments without `self`, and its results.
pub struct FrazilSignature {
    declaration: CString,
    arguments: Vec<Port>,
    results: Vec<Port>,
}

/// An argument or a result.
struct Port {
    name: CString,
    ty: CString,
    default: Option<Value>,
    by_name_only: bool,
}

impl FrazilSignature {
    fn of(model: &Model, method: &str) -> Result<FrazilSignature, FrazilError> {
        let graph = model.graph(method)?;
        let (module, ctx) = (model.module(), model.session().ctx());
        let Some((receiver, id)) = module.method_at(method) else {
            return Err(FrazilError::input(&format!("the module has no method `{method}`")));
        };
        let schema = &module.unit.function(id).schema;
        let show = |ty: TypeId| c_string(&display_type(ctx, ty, TypeStyle::Annotation).to_string());
        let port = |name: &str, argument: &Argument| -> Result<Port, FrazilError> {
            let default = argument.default.as_ref();
            let default = default.map(|value| Importer::new().value(value, Some(&**module)));
            Ok(Port {
                name: c_string(name),
                ty: show(argument.ty),
                default: default.transpose().map_err(frazil::Error::from)?,
                by_name_only: argument.keyword_only,
            })
        };
        let arguments = schema.arguments.iter().skip(1).map(|a| port(ctx.name(a.name), a));
        let arguments = arguments.collect::<Result<_, _>>()?;
        // Results of Python functions have no names, so those of the returned variables are used.
        let returned: Vec<_> = graph.outputs().collect();
        let results = schema.returns.iter().enumerate().map(|(i, result)| {
            let variable = returned.get(i).and_then(|&value| graph.value_name(value));
            let variable = variable.map_or("", |name| ctx.name(name.word()));
            match ctx.name(result.name) {
                "" => port(variable, result),
                own => port(own, result),
            }
        });
        Ok(FrazilSignature {
            declaration: c_string(&Signature::of_function(module, receiver, id).declaration().to_string()),
            arguments,
            results: results.collect::<Result<_, _>>()?,
        })
    }
}

/// Returns the signature of a method; the methods of submodules are named by dotted path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_signature(
    model: Option<&FrazilModel>,
    method: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilSignature>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = match &get(model, "the model")?.0 {
            Loaded::Model(model) => model.clone(),
            other => other.runnable()?,
        };
        // SAFETY: the caller follows the rules.
        let method = unsafe { text(method, "the method") }?;
        give(out, || FrazilSignature::of(&model, method))
    })
}

/// Frees a signature.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_free(signature: Option<Box<FrazilSignature>>) {
    drop(signature);
}

/// Returns the signature as PyTorch prints it, which lives as long as the signature: `forward(__torch__.Net self, Tensor x, int n=3) -> Tensor`. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_text(signature: Option<&FrazilSignature>) -> *const c_char {
    signature.map_or(std::ptr::null(), |s| s.declaration.as_ptr())
}

/// Returns the number of arguments that the method takes; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_argument_count(signature: Option<&FrazilSignature>) -> usize {
    signature.map_or(0, |s| s.arguments.len())
}

fn argument(signature: Option<&FrazilSignature>, index: usize) -> Option<&Port> {
    signature.and_then(|s| s.arguments.get(index))
}

fn result(signature: Option<&FrazilSignature>, index: usize) -> Option<&Port> {
    signature.and_then(|s| s.results.get(index))
}

/// Returns the name of argument number `index`, which lives as long as the signature; NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_argument_name(signature: Option<&FrazilSignature>, index: usize) -> *const c_char {
    argument(signature, index).map_or(std::ptr::null(), |a| a.name.as_ptr())
}

/// Returns the type of argument number `index`, as annotations write it: `Optional[List[int]]`. It lives as long as the signature; NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_argument_type(signature: Option<&FrazilSignature>, index: usize) -> *const c_char {
    argument(signature, index).map_or(std::ptr::null(), |a| a.ty.as_ptr())
}

/// Returns whether argument number `index` may be given by name only.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_argument_by_name_only(signature: Option<&FrazilSignature>, index: usize) -> bool {
    argument(signature, index).is_some_and(|a| a.by_name_only)
}

/// Returns whether argument number `index` may be left out.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_argument_has_default(signature: Option<&FrazilSignature>, index: usize) -> bool {
    argument(signature, index).is_some_and(|a| a.default.is_some())
}

/// Returns the default of argument number `index`.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_argument_default(
    signature: Option<&FrazilSignature>,
    index: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        get(signature, "the signature")?;
        let default = argument(signature, index).and_then(|a| a.default.clone());
        let default = default.ok_or_else(|| FrazilError::argument(&format!("argument {index} has no default")))?;
        give(out, || Ok(FrazilValue(default)))
    })
}

/// Returns the number of results that the method has; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_result_count(signature: Option<&FrazilSignature>) -> usize {
    signature.map_or(0, |s| s.results.len())
}

/// Returns the name of the variable in result number `index`, which lives as long as the signature; empty if it has none, NULL if there is no such result.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_result_name(signature: Option<&FrazilSignature>, index: usize) -> *const c_char {
    result(signature, index).map_or(std::ptr::null(), |r| r.name.as_ptr())
}

/// Returns the type of result number `index`, which lives as long as the signature; NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_signature_result_type(signature: Option<&FrazilSignature>, index: usize) -> *const c_char {
    result(signature, index).map_or(std::ptr::null(), |r| r.ty.as_ptr())
}

/// Returns the position of the argument called `name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_signature_find_argument(
    signature: Option<&FrazilSignature>,
    name: *const c_char,
    out: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let signature = get(signature, "the signature")?;
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name") }?;
        let found = signature
            .arguments
            .iter()
            .position(|a| a.name.to_bytes() == name.as_bytes());
        put(
            out,
            found.ok_or_else(|| FrazilError::input(&format!("there is no argument `{name}`")))?,
        )
    })
}
