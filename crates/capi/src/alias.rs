//! Questions to the alias analysis.

use crate::memory::{get, give, give_text, put, text};
use crate::{FrazilError, FrazilModel, error::guarded};
use frazil::Aliases;
use std::ffi::c_char;
use std::mem::MaybeUninit;

/// Alias analysis of the graph of a method. Values are named as in the graph's text, with or without the percent sign.
pub struct FrazilAliases(Aliases);

/// Analyses the graph of a method; for a model that is a graph, analyses this graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_aliases_new(
    model: Option<&FrazilModel>,
    method: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilAliases>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let method = unsafe { text(method, "the method") }?;
        give(out, || Ok(FrazilAliases(model.0.aliases(method)?)))
    })
}

/// Frees an analysis.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_aliases_free(aliases: Option<Box<FrazilAliases>>) {
    drop(aliases);
}

/// Checks that the graph has a value called `name`, and returns the name.
fn known<'n>(aliases: &Aliases, name: &'n str) -> Result<&'n str, FrazilError> {
    match aliases.value(name) {
        Ok(_) => Ok(name),
        Err(error) => Err(FrazilError::input(&error)),
    }
}

/// Evaluates a predicate on two values.
///
/// # Safety
/// The caller follows the rules.
unsafe fn about_two(
    aliases: Option<&FrazilAliases>,
    names: [*const c_char; 2],
    out: Option<&mut MaybeUninit<bool>>,
    ask: fn(&Aliases, &str, &str) -> frazil::Result<bool>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let aliases = get(aliases, "the analysis")?;
        // SAFETY: the caller follows the rules.
        let [a, b] = names.map(|name| unsafe { text(name, "the name of a value") });
        let (a, b) = (known(&aliases.0, a?)?, known(&aliases.0, b?)?);
        put(out, ask(&aliases.0, a, b)?)
    })
}

/// Evaluates a predicate on one value.
///
/// # Safety
/// The caller follows the rules.
unsafe fn about_one(
    aliases: Option<&FrazilAliases>,
    name: *const c_char,
    out: Option<&mut MaybeUninit<bool>>,
    ask: fn(&Aliases, &str) -> frazil::Result<bool>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let aliases = get(aliases, "the analysis")?;
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name of a value") }?;
        put(out, ask(&aliases.0, known(&aliases.0, name)?)?)
    })
}

/// Returns whether two values may be one object, or tensors on one storage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_aliases_may_alias(
    aliases: Option<&FrazilAliases>,
    a: *const c_char,
    b: *const c_char,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    // SAFETY: the caller follows the rules.
    unsafe { about_two(aliases, [a, b], out, Aliases::may_alias) }
}

/// Returns whether some object may be reached from both values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_aliases_may_contain_alias(
    aliases: Option<&FrazilAliases>,
    a: *const c_char,
    b: *const c_char,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    // SAFETY: the caller follows the rules.
    unsafe { about_two(aliases, [a, b], out, Aliases::may_contain_alias) }
}

/// Returns whether some node may write to a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_aliases_has_writers(
    aliases: Option<&FrazilAliases>,
    value: *const c_char,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    // SAFETY: the caller follows the rules.
    unsafe { about_one(aliases, value, out, Aliases::has_writers) }
}

/// Returns whether a value may be held outside of the graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_aliases_may_alias_wildcard(
    aliases: Option<&FrazilAliases>,
    value: *const c_char,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    // SAFETY: the caller follows the rules.
    unsafe { about_one(aliases, value, out, Aliases::may_alias_wildcard) }
}

/// Returns whether a value, or something in it, may be reachable from outside once the graph has run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_aliases_escapes(
    aliases: Option<&FrazilAliases>,
    value: *const c_char,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    // SAFETY: the caller follows the rules.
    unsafe { about_one(aliases, value, out, Aliases::escapes) }
}

/// Returns the whole alias analysis of a model as text, in PyTorch's layout, and the reason why each attribute that freezing keeps is kept.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_alias_text(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        give_text(out, || Ok(model.0.alias_db_text() + &model.0.kept_attributes_text()))
    })
}
