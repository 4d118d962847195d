//! Objects of classes with `__getstate__` and `__setstate__`, the methods that define an object's state in archives.
//!
//! An archive contains the result of `__getstate__`, and PyTorch passes it to `__setstate__` during loading. A module stores it as [`Module::state`];
//! [`restore`] converts it to attributes, and [`store`] is the inverse. Both run the program, with a limited number of steps.

use super::{Interpreter, lock};
use crate::error::TensorError;
use crate::error::{ErrorKind, ExecError};
use crate::operator::registry::Registry;
use crate::value::export::{ExportError, Exporter};
use crate::value::{ObjectValue, Value};
use frazil_ir::types::{TypeStyle, display_type, is_subtype};
use frazil_ir::{Constant, FunctionId, Module, ObjectId, TypeId, TypeKind, types};
use std::collections::HashSet;
use std::sync::Arc;

/// Step limit for all `__setstate__` or `__getstate__` calls of a module together.
const MAX_STEPS: u64 = 10_000_000;

/// The reason why objects cannot be restored or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A `__getstate__` or `__setstate__` method has the wrong signature.
    #[error("class `{class}`: {reason}")]
    Signature {
        /// The qualified name of the class.
        class: String,
        /// The reason why the signature is wrong, in PyTorch's words.
        reason: String,
    },
    /// A `__getstate__` or `__setstate__` method raised an exception or could not be run.
    #[error("{method} of class `{class}`: {source}")]
    Run {
        /// The qualified name of the class.
        class: String,
        /// The name of the method: `__getstate__` or `__setstate__`.
        method: &'static str,
        /// The error of the call.
        #[source]
        source: ExecError,
    },
    /// A required attribute has no value after `__setstate__`.
    #[error(
        "class `{class}`: The field '{attribute}' was left uninitialized after '__setstate__', but expected a value of type '{ty}'"
    )]
    Unset {
        /// The qualified name of the class.
        class: String,
        /// The name of the attribute.
        attribute: String,
        /// The type of the attribute.
        ty: String,
    },
    /// A value of an attribute or state is of a kind that modules cannot contain.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The elements of a tensor are not within its storage.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl StateError {
    /// Returns true if the program uses something that is not supported; false if the program itself is invalid.
    fn lacks_semantics(&self) -> bool {
        match self {
            StateError::Run { source, .. } => matches!(source.kind, ErrorKind::Missing(_) | ErrorKind::Unsupported(_)),
            StateError::Tensor(_) => true,
            StateError::Signature { .. } | StateError::Unset { .. } | StateError::Export(_) => false,
        }
    }
}

/// Returns a copy of `module` with restored objects: `__setstate__` of each was called with its state, inner objects first. `None` if there are no such
/// objects. Objects of classes that C++ code registers keep their states.
///
/// # Errors
/// When a `__setstate__` raises, cannot be run or leaves an attribute unset.
pub fn restore(module: &Arc<Module>, registry: &Arc<Registry>) -> Result<Option<Module>, StateError> {
    try_restore(module, registry, &HashSet::new()).map_err(|failure| failure.error)
}

/// Restores objects as [`restore`] does. Objects whose `__setstate__` uses operators without semantics (as in quantised layers), and objects that contain
/// such objects, keep their pending states.
///
/// # Errors
/// When a `__setstate__` raises or leaves an attribute unset.
pub fn restore_known(module: &Arc<Module>, registry: &Arc<Registry>) -> Result<Option<Module>, StateError> {
    let mut unknown: HashSet<FunctionId> = HashSet::new();
    loop {
        // What ran before the failure may have changed objects; so all is done again. Each turn knows one more method.
        match try_restore(module, registry, &unknown) {
            Err(failure)
                if failure.error.lacks_semantics() && failure.method.is_some_and(|method| unknown.insert(method)) => {}
            result => return result.map_err(|failure| failure.error),
        }
    }
}

/// The error of [`try_restore`], with the `__setstate__` that failed.
struct Failure {
    method: Option<FunctionId>,
    error: StateError,
}

impl<E: Into<StateError>> From<E> for Box<Failure> {
    fn from(error: E) -> Self {
        Box::new(Failure {
            method: None,
            error: error.into(),
        })
    }
}

/// Restores all objects except objects whose `__setstate__` is in `unknown`, and objects whose state contains such an object.
fn try_restore(
    module: &Arc<Module>,
    registry: &Arc<Registry>,
    unknown: &HashSet<FunctionId>,
) -> Result<Option<Module>, Box<Failure>> {
    if !module.states().any(|(id, _)| module.class_of(id).is_some()) {
        return Ok(None);
    }
    let interpreter = Interpreter::with_module(registry.clone(), module.clone())?.with_step_limit(MAX_STEPS);
    let mut restored = Vec::new();
    let mut kept: HashSet<ObjectId> = HashSet::new();
    for (id, state) in module.states() {
        let Some(methods) = Methods::of(module, id)? else {
            continue;
        };
        if unknown.contains(&methods.set) || reaches(module, state, &kept) {
            kept.insert(id);
            continue;
        }
        methods.restore(&interpreter, module, id, state).map_err(|error| {
            Box::new(Failure {
                method: Some(methods.set),
                error,
            })
        })?;
        restored.push(id);
    }
    if restored.is_empty() {
        return Ok(None);
    }
    let mut out = Module::clone(module);
    Exporter::of_module(module, &lock(&interpreter.importer)).objects(&mut out)?;
    for id in restored {
        out.set_state(id, None);
    }
    Ok(Some(out))
}

/// Returns whether one of `objects` is reachable from `state`.
fn reaches(module: &Module, state: &Constant, objects: &HashSet<ObjectId>) -> bool {
    if objects.is_empty() {
        return false;
    }
    let mut seen: HashSet<ObjectId> = HashSet::new();
    let mut pending: Vec<ObjectId> = Vec::new();
    state.visit_objects(&mut |inner| pending.push(inner));
    while let Some(id) = pending.pop() {
        if objects.contains(&id) {
            return true;
        }
        if seen.insert(id) {
            let slots = module.object(id).slots.iter().chain(module.state(id));
            slots.for_each(|slot| slot.visit_objects(&mut |inner| pending.push(inner)));
        }
    }
    false
}

/// Returns a copy of `module` in which the state of every reachable object with `__getstate__` is the result of that method. `None` if all such objects
/// already have a state.
///
/// # Errors
/// When a `__getstate__` raises or cannot be run.
pub fn store(module: &Arc<Module>, registry: &Arc<Registry>) -> Result<Option<Module>, StateError> {
    let ctx = module.ctx();
    if !module
        .unit
        .classes
        .values()
        .any(|class| class.restored_from(ctx, &module.unit).is_some())
    {
        return Ok(None);
    }
    let interpreter = Interpreter::with_module(registry.clone(), module.clone())?.with_step_limit(MAX_STEPS);
    let mut exporter = {
        let mut importer = lock(&interpreter.importer);
        for (id, _) in module.objects() {
            importer.object(id, module)?;
        }
        Exporter::of_module(module, &importer)
    };
    let mut out = Module::clone(module);
    let mut stored = Vec::new();
    let mut pending = vec![module.root];
    let mut seen = HashSet::from([module.root]);
    while let Some(id) = pending.pop() {
        if out.state(id).is_none()
            && let Some(methods) = Methods::of(&out, id)?
        {
            let Some(object) = exporter.find_object(id).cloned() else {
                continue;
            };
            let state = methods.run(&interpreter, "__getstate__", &[Value::Object(object)])?;
            let state = exporter.value(&state)?;
            exporter.objects(&mut out)?;
            out.set_state(id, Some(state));
            stored.push(id);
        }
        let mut visit = |inner: ObjectId| {
            if seen.insert(inner) {
                pending.push(inner);
            }
        };
        match out.state(id) {
            Some(state) => state.visit_objects(&mut visit),
            None => out
                .object(id)
                .slots
                .iter()
                .for_each(|slot| slot.visit_objects(&mut visit)),
        }
    }
    if stored.is_empty() {
        return Ok(None);
    }
    // Inner ones are restored first, so that their states have to stand first; they were found last.
    for id in stored.into_iter().rev() {
        let state = out.state(id).cloned();
        out.set_state(id, None);
        out.set_state(id, state);
    }
    Ok(Some(out))
}

/// The methods `__getstate__` and `__setstate__` of a class.
struct Methods {
    class: String,
    get: FunctionId,
    set: FunctionId,
}

impl Methods {
    /// Returns the methods `__getstate__` and `__setstate__` of object `id`'s class, if it has both. They must have the signatures that PyTorch requires:
    /// `__getstate__(self) -> T` and `__setstate__(self, state: T)`.
    fn of(module: &Module, id: ObjectId) -> Result<Option<Methods>, StateError> {
        let ctx = module.ctx();
        let method = |name| module.class_of(id)?.methods.get(&ctx.find_symbol(name)?).copied();
        let (Some(get), Some(set)) = (method("__getstate__"), method("__setstate__")) else {
            return Ok(None);
        };
        let class = ctx.name(module.object(id).class).to_owned();
        let (get_schema, set_schema) = (&module.unit.function(get).schema, &module.unit.function(set).schema);
        let shown = |ty: TypeId| display_type(ctx, ty, TypeStyle::Annotation).to_string();
        let reason = match (
            &*get_schema.arguments,
            &*get_schema.returns,
            &*set_schema.arguments,
            &*set_schema.returns,
        ) {
            (arguments, ..) if arguments.len() != 1 => format!(
                "'__getstate__' must have 'self' as its only argument, but found {} arguments",
                arguments.len()
            ),
            (_, returns, ..) if returns.len() != 1 => {
                format!("'__getstate__' must return 1 value, but found {}", returns.len())
            }
            (_, _, arguments, _) if arguments.len() != 2 => format!(
                "'__setstate__' must have 'self' and the state as its only arguments, but found {} arguments",
                arguments.len()
            ),
            (.., [returned]) if returned.ty != types::NONE => {
                format!(
                    "'__setstate__' must return None, but found value of type {}",
                    shown(returned.ty)
                )
            }
            (_, [given], [_, taken], _) if !is_subtype(ctx, given.ty, taken.ty) => format!(
                "'__getstate__'s return type ({}) does not match '__setstate__'s argument type ({})",
                shown(given.ty),
                shown(taken.ty)
            ),
            _ => return Ok(Some(Methods { class, get, set })),
        };
        Err(StateError::Signature { class, reason })
    }

    /// Calls `__setstate__` of the object `id` with `state`.
    fn restore(
        &self,
        interpreter: &Interpreter,
        module: &Module,
        id: ObjectId,
        state: &Constant,
    ) -> Result<(), StateError> {
        let (object, state) = {
            let mut importer = lock(&interpreter.importer);
            (importer.object(id, module)?, importer.value(state, Some(module))?)
        };
        self.run(interpreter, "__setstate__", &[Value::Object(object.clone()), state])?;
        self.check_set(module, &object)
    }

    fn run(&self, interpreter: &Interpreter, method: &'static str, args: &[Value]) -> Result<Value, StateError> {
        let function = if method == "__getstate__" { self.get } else { self.set };
        interpreter.function(function, args).map_err(|source| StateError::Run {
            class: self.class.clone(),
            method,
            source,
        })
    }

    /// Checks that every required attribute is set.
    fn check_set(&self, module: &Module, object: &ObjectValue) -> Result<(), StateError> {
        let ctx = module.ctx();
        let class = module.unit.class(object.class());
        let attributes = class.into_iter().flat_map(|class| &class.attributes);
        for ((name, attribute), value) in attributes.zip(object.slots()) {
            let may_be_none = matches!(
                ctx.type_kind(attribute.ty),
                TypeKind::Optional(_) | TypeKind::Union(_) | TypeKind::None | TypeKind::Any
            );
            if matches!(value, Value::None) && !may_be_none {
                return Err(StateError::Unset {
                    class: self.class.clone(),
                    attribute: ctx.name(*name).to_owned(),
                    ty: display_type(ctx, attribute.ty, TypeStyle::Annotation).to_string(),
                });
            }
        }
        Ok(())
    }
}
