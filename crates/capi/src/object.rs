//! Values whose class a model defines: objects, members of enumerations, named tuples.

use crate::memory::{get, give, give_text, put, text, texts};
use crate::value::values;
use crate::{FrazilError, FrazilModel, FrazilSession, FrazilValue, error::guarded};
use frazil::ir::types::{TypeStyle, display_type, is_subtype};
use frazil::ir::{ClassDef, ClassKind, CompilationUnit, Context, Module, SymbolId, TypeKind};
use frazil::runtime::import::Importer;
use frazil::runtime::value::{EnumMember, ObjectValue};
use frazil::{Loaded, Value};
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Returns the classes of a model, and the module that their constants may refer to.
fn classes(model: &FrazilModel) -> (&Context, &CompilationUnit, Option<&Module>) {
    match &model.0 {
        Loaded::Model(model) => (model.session().ctx(), &model.module().unit, Some(model.module())),
        Loaded::Graphs(graphs) => (graphs.session().ctx(), graphs.unit(), None),
    }
}

/// Returns the class called `name`, which is qualified (`__torch__.Point`) or the last part of exactly one class's name.
fn class_named<'m>(ctx: &Context, unit: &'m CompilationUnit, name: &str) -> Result<&'m ClassDef, FrazilError> {
    if let Some(class) = ctx.find_symbol(name).and_then(|name| unit.class(name)) {
        return Ok(class);
    }
    let mut found = unit
        .classes
        .values()
        .filter(|class| ctx.name(class.name).rsplit('.').next() == Some(name));
    match (found.next(), found.next()) {
        (Some(class), None) => Ok(class),
        (None, _) => Err(FrazilError::input(&format!("the model has no class `{name}`"))),
        (Some(_), Some(_)) => Err(FrazilError::input(&format!(
            "several classes are called `{name}`: the qualified name says which"
        ))),
    }
}

/// Returns the definition of the class of an object.
fn class_of<'m>(ctx: &Context, unit: &'m CompilationUnit, class: SymbolId) -> Result<&'m ClassDef, FrazilError> {
    let found = unit.class(class);
    found.ok_or_else(|| FrazilError::input(&format!("the model has no class `{}`", ctx.name(class))))
}

fn object(value: Option<&FrazilValue>) -> Result<&ObjectValue, FrazilError> {
    match &get(value, "the value")?.0 {
        Value::Object(object) => Ok(object),
        _ => Err(FrazilError::argument("the value is no object")),
    }
}

/// Returns the qualified name of the class of an object, a member of an enumeration or a named tuple.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_class(
    session: Option<&FrazilSession>,
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ctx = get(session, "the session")?.ctx();
        let class = match &get(value, "the value")?.0 {
            Value::Object(object) => Some(object.class()),
            Value::Enum(member) => Some(member.class),
            Value::Tuple(tuple) => match tuple.ty.map(|ty| ctx.type_kind(ty)) {
                Some(TypeKind::NamedTuple(name, ..)) => Some(name),
                _ => None,
            },
            _ => None,
        };
        let class = class.ok_or_else(|| FrazilError::argument("the value is of no class"))?;
        give_text(out, || Ok(ctx.name(class).to_owned()))
    })
}

/// Returns the name of field number `index` of a named tuple. Its items are accessed like those of tuples.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_field_name(
    session: Option<&FrazilSession>,
    value: Option<&FrazilValue>,
    index: usize,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ctx = get(session, "the session")?.ctx();
        let fields = match &get(value, "the value")?.0 {
            Value::Tuple(tuple) => match tuple.ty.map(|ty| ctx.type_kind(ty)) {
                Some(TypeKind::NamedTuple(_, fields, _)) => Some(ctx.symbols(fields)),
                _ => None,
            },
            _ => None,
        };
        let fields = fields.ok_or_else(|| FrazilError::argument("the value is no named tuple"))?;
        let field = fields
            .get(index)
            .ok_or_else(|| FrazilError::argument(&format!("there is no field {index}: there are {}", fields.len())))?;
        give_text(out, || Ok(ctx.name(*field).to_owned()))
    })
}

/// Returns the number of attributes that an object has. `model` is the model that the object came from, or one derived from it.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_attribute_count(
    model: Option<&FrazilModel>,
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let (ctx, unit, _) = classes(get(model, "the model")?);
        put(out, class_of(ctx, unit, object(value)?.class())?.attributes.len())
    })
}

/// Returns the name of attribute number `index` of an object.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_attribute_name(
    model: Option<&FrazilModel>,
    value: Option<&FrazilValue>,
    index: usize,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let (ctx, unit, _) = classes(get(model, "the model")?);
        let attributes = &class_of(ctx, unit, object(value)?.class())?.attributes;
        let (name, _) = attributes.get_index(index).ok_or_else(|| {
            FrazilError::argument(&format!(
                "there is no attribute {index}: there are {}",
                attributes.len()
            ))
        })?;
        give_text(out, || Ok(ctx.name(*name).to_owned()))
    })
}

/// Returns the attribute of an object with a given name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_attribute(
    model: Option<&FrazilModel>,
    value: Option<&FrazilValue>,
    name: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let (ctx, unit, _) = classes(get(model, "the model")?);
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name") }?;
        let object = object(value)?;
        let class = class_of(ctx, unit, object.class())?;
        let index = ctx
            .find_symbol(name)
            .and_then(|name| class.attributes.get_index_of(&name));
        let found = index
            .and_then(|index| object.slot(index))
            .ok_or_else(|| FrazilError::input(&format!("class {} has no attribute `{name}`", ctx.name(class.name))))?;
        give(out, || Ok(FrazilValue(found)))
    })
}

/// Returns a new object of a class of the model, with values for all of its attributes. Its `__init__` does not run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_object(
    model: Option<&FrazilModel>,
    class: *const c_char,
    names: *const *const c_char,
    items: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let (ctx, unit, _) = classes(get(model, "the model")?);
        // SAFETY: the caller follows the rules.
        let (class, names, mut items) = unsafe {
            let class = text(class, "the class")?;
            (class, texts(names, len, "the names")?, values(items, len)?)
        };
        let class = class_named(ctx, unit, class)?;
        if class.kind != ClassKind::Class {
            return Err(FrazilError::input(&format!(
                "{} is no class of objects",
                ctx.name(class.name)
            )));
        }
        let has = |name: &str| {
            ctx.find_symbol(name)
                .is_some_and(|name| class.attributes.contains_key(&name))
        };
        if let Some(unknown) = names.iter().find(|name| !has(name)) {
            let message = format!("class {} has no attribute `{unknown}`", ctx.name(class.name));
            return Err(FrazilError::input(&message));
        }
        let mut slots = Vec::with_capacity(class.attributes.len());
        for (name, attribute) in &class.attributes {
            let name = ctx.name(*name);
            let position = names.iter().position(|given| *given == name);
            let value = position
                .and_then(|position| items.get_mut(position))
                .map(std::mem::take);
            let value =
                value.ok_or_else(|| FrazilError::input(&format!("there is no value for attribute `{name}`")))?;
            let found = value.ty(ctx);
            if !is_subtype(ctx, found, attribute.ty) {
                let show = |ty| display_type(ctx, ty, TypeStyle::Annotation).to_string();
                return Err(FrazilError::input(&format!(
                    "attribute `{name}` is of type {}, and the value of type {}",
                    show(attribute.ty),
                    show(found)
                )));
            }
            slots.push(value);
        }
        give(out, || {
            Ok(FrazilValue(Value::Object(ObjectValue::new(class.name, slots))))
        })
    })
}

/// Returns a member of an enumeration of the model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_enum(
    model: Option<&FrazilModel>,
    class: *const c_char,
    member: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let (ctx, unit, module) = classes(get(model, "the model")?);
        // SAFETY: the caller follows the rules.
        let (class, member) = unsafe { (text(class, "the class")?, text(member, "the member")?) };
        let class = class_named(ctx, unit, class)?;
        let constant = ctx
            .find_symbol(member)
            .filter(|_| class.kind == ClassKind::Enum)
            .and_then(|member| class.constants.get(&member));
        let Some(constant) = constant else {
            let message = format!("{} has no member `{member}`", ctx.name(class.name));
            return Err(FrazilError::input(&message));
        };
        let value = Importer::new().value(constant, module).map_err(frazil::Error::from)?;
        give(out, || {
            Ok(FrazilValue(Value::Enum(Arc::new(EnumMember {
                class: class.name,
                name: Arc::from(member),
                value,
            }))))
        })
    })
}

fn member(value: Option<&FrazilValue>) -> Result<&EnumMember, FrazilError> {
    match &get(value, "the value")?.0 {
        Value::Enum(member) => Ok(member),
        _ => Err(FrazilError::argument("the value is no member of an enumeration")),
    }
}

/// Returns the name of a member of an enumeration.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_enum_name(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let member = member(value)?;
        give_text(out, || Ok(member.name.to_string()))
    })
}

/// Returns the value of a member of an enumeration.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_enum_value(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let member = member(value)?;
        give(out, || Ok(FrazilValue(member.value.clone())))
    })
}
