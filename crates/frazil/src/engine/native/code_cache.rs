//! Compiled methods on disk: another process maps the code without freezing or compiling.
//!
//! A file's name is a hash of its key. The key contains everything on which the code depends:
//! - the compiler: the file and state of the program or library that contains it;
//! - the archive's file and state, and the members that freezing kept;
//! - the method, the arguments, and the processor.
//!
//! A method is not stored if it calls kernels of this program, or if JSON cannot represent its result.
//!
//! The folder is private to the user, its files are authenticated, and its size is bounded ([`CacheFolder`]). A file that fails verification is ignored ([`Package::read`]).

use crate::engine::native::signature::Argument;
use crate::engine::options::EngineOptions;
use frazil_executor::Package;
use frazil_ir::{Context, TypeId, TypeKind, types};
use frazil_planner::ResultSpec;
use frazil_planner::specialise::PathStep;
use frazil_runtime::Value;
use frazil_runtime::marks::Marks;
use frazil_syntax::{CacheFolder, FileIdentity};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use tracing::warn;

/// A persistent cache of the compiled methods of one model.
pub(crate) struct CodeCache {
    folder: CacheFolder,
    /// The common prefix of the keys of all methods.
    prefix: String,
}

/// Returns the folder for stored code, or the reason why it cannot be used. Without a folder, a warning is emitted and everything is compiled. All users
/// share one folder, so that a later failure is reported only once.
pub(super) fn usable_folder(options: &EngineOptions) -> (Option<CacheFolder>, Option<String>) {
    let Some(folder) = options.compile.cache() else {
        return (None, None);
    };
    match folder.prepare() {
        Ok(()) => (Some(folder), None),
        Err(e) => {
            let refusal = format!("no code is kept in {}: {e}", folder.path().display());
            warn!(target: "frazil::cache", "{refusal}");
            (None, Some(refusal))
        }
    }
}

/// The structure of a method's result: its parts as outputs of the code, inputs, or constants.
#[derive(Serialize, Deserialize)]
enum Shape {
    Tensor(u32),
    /// A strided view of an output: index of the output, sizes and strides.
    Strided(u32, Vec<i64>, Vec<i64>),
    None,
    Bool(bool),
    Int(i64),
    /// A float, by the bits of its IEEE double.
    Float(u64),
    Str(String),
    List(Element, Vec<Shape>),
    Tuple(Vec<Shape>),
    /// A NamedTuple of the method's declared result type.
    Named(Vec<Shape>),
    Input(u32),
    /// A tensor in the memory of an output: index of the output, number of the variable, sizes, strides and offset (in elements).
    Part(u32, u32, Vec<i64>, Vec<i64>, i64),
    /// A view of an input: index of the input, sizes, strides and offset (in elements).
    View(u32, Vec<i64>, Vec<i64>, i64),
    /// A view of an input: index of the input, and the view operations that lead to the result.
    Window(u32, Vec<PathStep>),
}

/// Numbers of input and output tensors of a method's code.
#[derive(Clone, Copy)]
struct Counts {
    inputs: usize,
    outputs: usize,
}

/// The type of a list's elements.
#[derive(Serialize, Deserialize)]
enum Element {
    Tensor,
    Bool,
    Int,
    Float,
    Str,
    Optional(Box<Element>),
    List(Box<Element>),
    Tuple(Vec<Element>),
    /// Any other type, which follows from the method's declared result type.
    Declared,
}

impl CodeCache {
    /// Opens the store in `folder` for the model that was loaded from `model` and frozen with the names `preserve`. Returns `None` if the file that contains
    /// this code cannot be identified.
    pub fn new(folder: CacheFolder, model: &FileIdentity, preserve: &[String], target: &str) -> Option<CodeCache> {
        let program = FileIdentity::of_this_code()?;
        let prefix = format!("{program:?}\n{model:?}\n{preserve:?}\n{target}");
        Some(CodeCache { folder, prefix })
    }

    /// Returns the key for a method and call signature, and the name of the file with its code.
    fn key(&self, method: &str, arguments: &[Argument]) -> (String, String) {
        let key = format!("{}\n{method}\n{arguments:?}", self.prefix);
        // The hash is used by one program only, so it need not be stable; collisions are detected by the key.
        let mut hasher = std::hash::DefaultHasher::new();
        key.hash(&mut hasher);
        let name = format!("{:016x}.method", hasher.finish());
        (key, name)
    }

    /// Returns the stored code of `method` for these arguments, and the specification of its results. `types` are the types of the results. If they are
    /// unknown, code whose results contain lists of declared types is not found.
    pub fn get(
        &self,
        method: &str,
        arguments: &[Argument],
        ctx: &Context,
        types: Option<&[TypeId]>,
    ) -> Option<(Package, Vec<ResultSpec>)> {
        let (key, name) = self.key(method, arguments);
        let (package, note) = Package::read(&self.folder, &name, &key)?;
        let shapes: Vec<Shape> = serde_json::from_value(note).ok()?;
        if types.is_some_and(|types| types.len() != shapes.len()) {
            return None;
        }
        let declared = |i: usize| types.and_then(|types| types.get(i).copied());
        let counts = Counts {
            inputs: package.input_count(),
            outputs: package.result_count(),
        };
        let results = shapes.iter().enumerate().map(|(i, s)| s.spec(ctx, declared(i), counts));
        Some((package, results.collect::<Option<_>>()?))
    }

    /// Stores the code of `method`. Failure is not an error: the method is compiled again later.
    pub fn put(
        &self,
        method: &str,
        arguments: &[Argument],
        ctx: &Context,
        types: &[TypeId],
        package: &Package,
        results: &[ResultSpec],
    ) {
        if results.len() != types.len() {
            return;
        }
        let shapes: Option<Vec<Shape>> = results
            .iter()
            .zip(types)
            .map(|(r, &ty)| Shape::of(r, ctx, ty))
            .collect();
        let Some(note) = shapes.and_then(|s| serde_json::to_value(s).ok()) else {
            return;
        };
        let (key, name) = self.key(method, arguments);
        self.folder
            .keep(&name, |file, secret| package.write(secret, &key, note, file));
    }
}

impl Shape {
    /// Returns the structure of a result. `None` for results that are not stored: unsupported values, and lists of another type than the declared one.
    fn of(result: &ResultSpec, ctx: &Context, ty: TypeId) -> Option<Shape> {
        let parts = components(ctx, ty);
        Some(match (result, parts) {
            (ResultSpec::Tensor(i), _) => Shape::Tensor(*i),
            (ResultSpec::Strided(i, sizes, strides), _) => Shape::Strided(*i, sizes.clone(), strides.clone()),
            (ResultSpec::Value(Value::None), _) => Shape::None,
            (ResultSpec::Value(Value::Bool(b)), _) => Shape::Bool(*b),
            (ResultSpec::Value(Value::Int(i)), _) => Shape::Int(*i),
            (ResultSpec::Value(Value::Float(f)), _) => Shape::Float(f.to_bits()),
            (ResultSpec::Value(Value::Str(s)), _) => Shape::Str(s.to_string()),
            (ResultSpec::List(element, items), Components::List(declared)) if *element == declared => Shape::List(
                Element::of(ctx, declared).unwrap_or(Element::Declared),
                items
                    .iter()
                    .map(|r| Shape::of(r, ctx, declared))
                    .collect::<Option<_>>()?,
            ),
            (ResultSpec::Tuple(named, items), Components::Tuple(types)) if items.len() == types.len() => {
                let items = items.iter().zip(types).map(|(r, ty)| Shape::of(r, ctx, ty));
                let items = items.collect::<Option<_>>()?;
                match named {
                    Some(named) if named_tuple(ctx, ty) == Some(*named) => Shape::Named(items),
                    Some(_) => return None,
                    None => Shape::Tuple(items),
                }
            }
            (ResultSpec::Input(n), _) => Shape::Input(*n),
            (
                ResultSpec::Part {
                    output,
                    variable,
                    sizes,
                    strides,
                    offset,
                },
                _,
            ) => Shape::Part(*output, *variable, sizes.clone(), strides.clone(), *offset),
            (ResultSpec::View(n, sizes, strides, offset, marks), _) if *marks == Marks::default() => {
                Shape::View(*n, sizes.clone(), strides.clone(), *offset)
            }
            (ResultSpec::Window(n, path, marks), _) if *marks == Marks::default() => Shape::Window(*n, path.clone()),
            _ => return None,
        })
    }

    /// Converts the structure back to a result specification. `ty` is the declared type of the result, if it is known.
    fn spec(&self, ctx: &Context, ty: Option<TypeId>, counts: Counts) -> Option<ResultSpec> {
        let value = |v: Value| Some(ResultSpec::Value(v));
        let parts = ty.map_or(Components::None, |ty| components(ctx, ty));
        match self {
            Shape::Tensor(i) => ((*i as usize) < counts.outputs).then_some(ResultSpec::Tensor(*i)),
            Shape::Strided(i, sizes, strides) => {
                ((*i as usize) < counts.outputs).then(|| ResultSpec::Strided(*i, sizes.clone(), strides.clone()))
            }
            Shape::Part(output, variable, sizes, strides, offset) => {
                ((*output as usize) < counts.outputs).then(|| ResultSpec::Part {
                    output: *output,
                    variable: *variable,
                    sizes: sizes.clone(),
                    strides: strides.clone(),
                    offset: *offset,
                })
            }
            Shape::Input(n) => ((*n as usize) < counts.inputs).then_some(ResultSpec::Input(*n)),
            Shape::View(n, sizes, strides, offset) => ((*n as usize) < counts.inputs)
                .then(|| ResultSpec::View(*n, sizes.clone(), strides.clone(), *offset, Marks::default())),
            Shape::Window(n, path) => {
                ((*n as usize) < counts.inputs).then(|| ResultSpec::Window(*n, path.clone(), Marks::default()))
            }
            Shape::None => value(Value::None),
            Shape::Bool(b) => value(Value::Bool(*b)),
            Shape::Int(i) => value(Value::Int(*i)),
            Shape::Float(bits) => value(Value::Float(f64::from_bits(*bits))),
            Shape::Str(s) => value(Value::Str(s.as_str().into())),
            Shape::List(element, items) => {
                let declared = match parts {
                    Components::List(declared) => Some(declared),
                    _ => None,
                };
                let element = element.id(ctx).or(declared)?;
                let items = items
                    .iter()
                    .map(|s| s.spec(ctx, declared, counts))
                    .collect::<Option<_>>()?;
                Some(ResultSpec::List(element, items))
            }
            Shape::Tuple(items) | Shape::Named(items) => {
                let named = match self {
                    // Only the model declares the names of its fields.
                    Shape::Named(_) => Some(named_tuple(ctx, ty?)?),
                    _ => None,
                };
                let declared = match parts {
                    Components::Tuple(types) => types,
                    _ => Vec::new(),
                };
                let items = items.iter().enumerate();
                let items = items.map(|(i, s)| s.spec(ctx, declared.get(i).copied(), counts));
                Some(ResultSpec::Tuple(named, items.collect::<Option<_>>()?))
            }
        }
    }
}

/// Returns the NamedTuple type that is `ty` itself, or the element type of the optional type `ty`.
fn named_tuple(ctx: &Context, ty: TypeId) -> Option<TypeId> {
    match ctx.type_kind(ty) {
        TypeKind::Optional(inner) => named_tuple(ctx, inner),
        TypeKind::NamedTuple(..) => Some(ty),
        _ => None,
    }
}

impl Element {
    /// Returns the element type for `ty`; `None` for types that have no representation in files.
    fn of(ctx: &Context, ty: TypeId) -> Option<Element> {
        let boxed = |ty| Some(Box::new(Element::of(ctx, ty)?));
        Some(match ty {
            types::TENSOR => Element::Tensor,
            types::BOOL => Element::Bool,
            types::INT => Element::Int,
            types::FLOAT => Element::Float,
            types::STR => Element::Str,
            _ => match ctx.type_kind(ty) {
                TypeKind::Optional(inner) => Element::Optional(boxed(inner)?),
                TypeKind::List(inner) => Element::List(boxed(inner)?),
                TypeKind::Tuple(items) => {
                    let items = ctx.types(items).iter().map(|&ty| Element::of(ctx, ty));
                    Element::Tuple(items.collect::<Option<_>>()?)
                }
                _ => return None,
            },
        })
    }

    fn id(&self, ctx: &Context) -> Option<TypeId> {
        Some(match self {
            Element::Tensor => types::TENSOR,
            Element::Bool => types::BOOL,
            Element::Int => types::INT,
            Element::Float => types::FLOAT,
            Element::Str => types::STR,
            Element::Optional(inner) => ctx.optional_of(inner.id(ctx)?),
            Element::List(inner) => ctx.list_of(inner.id(ctx)?),
            Element::Tuple(items) => {
                let items: Vec<TypeId> = items.iter().map(|e| e.id(ctx)).collect::<Option<_>>()?;
                ctx.tuple_of(&items)
            }
            Element::Declared => return None,
        })
    }
}

/// The component types of a declared type. An optional type has the components of its element type.
enum Components {
    List(TypeId),
    Tuple(Vec<TypeId>),
    None,
}

fn components(ctx: &Context, ty: TypeId) -> Components {
    match ctx.type_kind(ty) {
        TypeKind::Optional(inner) => components(ctx, inner),
        TypeKind::List(element) => Components::List(element),
        TypeKind::Tuple(types) | TypeKind::NamedTuple(_, _, types) => Components::Tuple(ctx.types(types).to_vec()),
        _ => Components::None,
    }
}
