//! Parameters of a traced module: tensors with dotted names, which become attributes of objects.

use super::function_of;
use crate::eager::{Ops, Var};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::script_module::join;
use crate::session::Session;
use frazil_ir::{
    AttributeKind, ClassDef, ClassKind, CompilationUnit, Constant, Context, Graph, Module, Object, SymbolId, TypeId,
    types,
};
use frazil_runtime::export::Exporter;
use frazil_runtime::value::TensorCell;
use frazil_runtime::{Tensor, Value};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum nesting of submodules.
const MAX_DEPTH: usize = 100;

/// Parameters and buffers by dotted path: `layer1.0.weight` is attribute `weight` of submodule `0` of submodule `layer1`.
///
/// ```
/// # use frazil::{Session, Tensor, trace::{Method, Parameters, TraceOptions}};
/// let mut parameters = Parameters::new("Net");
/// parameters.parameter("embed.weight", Tensor::from_f32(&[2.0], &[1])?).buffer("calls", Tensor::from_i64(&[0], &[1])?);
/// parameters.share("head.weight", "embed.weight")?;
/// assert!(parameters.share("tail.weight", "nothing").is_err());
/// # let x = [Tensor::from_f32(&[1.0], &[1])?];
/// # let forward = Method { name: "forward", function: &|p, x| Ok((&x[0] * p.get("head.weight")?)?.into()), inputs: &x };
/// # let model = Session::new().trace_module(&parameters, &[forward], &TraceOptions::default())?.to_model();
/// // of a model that was traced with them:
/// assert!(model.state_dict()?.keys().eq(["calls", "embed.weight", "head.weight"]));
/// assert_eq!(model.root().named_parameters(&frazil::MemberOptions::default())?.len(), 1); // one tensor under two names
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone)]
pub struct Parameters {
    name: String,
    entries: IndexMap<String, (TensorCell, AttributeKind)>,
}

impl Parameters {
    /// Returns an empty set of parameters for a module whose class is called `name`.
    ///
    /// See [`Parameters`] for an example.
    pub fn new(name: &str) -> Parameters {
        Parameters {
            name: name.to_owned(),
            entries: IndexMap::new(),
        }
    }

    /// Adds a parameter. [`Parameters::share`] adds a second path for a tensor.
    ///
    /// See [`Parameters`] for an example.
    pub fn parameter(&mut self, path: &str, tensor: Tensor) -> &mut Parameters {
        self.add(path, TensorCell::new(tensor), AttributeKind::Parameter)
    }

    /// Adds a buffer to the module, at the dotted path `path`.
    ///
    /// See [`Parameters`] for an example.
    pub fn buffer(&mut self, path: &str, tensor: Tensor) -> &mut Parameters {
        self.add(path, TensorCell::new(tensor), AttributeKind::Buffer)
    }

    /// Adds a second path, `path`, for the parameter or buffer at `other`.
    ///
    /// See [`Parameters`] for an example.
    ///
    /// # Errors
    /// If there is none.
    pub fn share(&mut self, path: &str, other: &str) -> Result<&mut Parameters> {
        let (cell, kind) = self.entries.get(other).cloned().ok_or_else(|| missing(other))?;
        Ok(self.add(path, cell, kind))
    }

    fn add(&mut self, path: &str, cell: TensorCell, kind: AttributeKind) -> &mut Parameters {
        self.entries.insert(path.to_owned(), (cell, kind));
        self
    }

    /// Returns the paths of the root (`""`) and of all submodules, parents first.
    fn modules(&self) -> Vec<&str> {
        let mut paths = vec![""];
        let mut known = std::collections::HashSet::from([""]);
        for path in self.entries.keys() {
            for (i, _) in path.match_indices('.') {
                if known.insert(&path[..i]) {
                    paths.push(&path[..i]);
                }
            }
        }
        paths
    }

    fn class_name(&self, path: &str) -> String {
        // A Python attribute cannot have a number as its name.
        let word = |name: &str| match name.bytes().all(|b| b.is_ascii_digit()) {
            true => format!(".Module_{name}"),
            false => format!(".{name}"),
        };
        let owners: String = path.split('.').filter(|name| !name.is_empty()).map(word).collect();
        match owners.as_str() {
            "" => format!("__torch__.{}", self.name),
            _ => format!(
                "__torch__.{}_{}",
                self.name,
                owners.trim_start_matches('.').replace('.', "_")
            ),
        }
    }

    /// Returns the class types of the root and of all submodules, by path.
    pub(super) fn classes(&self, ctx: &Context) -> HashMap<String, TypeId> {
        let paths = self.modules().into_iter();
        paths
            .map(|path| (path.to_owned(), ctx.class(&self.class_name(path))))
            .collect()
    }

    /// Returns a module with these parameters and buffers, in evaluation mode, whose methods are the given graphs.
    pub(super) fn model(
        &self,
        session: &Session,
        mut unit: CompilationUnit,
        methods: Vec<(&str, Graph)>,
    ) -> Result<Model> {
        let ctx = session.ctx();
        let mut exporter = Exporter::new();
        let mut slots: IndexMap<&str, Vec<Constant>> = IndexMap::new();
        let mut classes: IndexMap<&str, ClassDef> = IndexMap::new();
        for path in self.modules() {
            if path.split('.').count() > MAX_DEPTH {
                return Err(Error::Attribute(format!(
                    "submodules are nested more than {MAX_DEPTH} deep"
                )));
            }
            let mut class = ClassDef::new(ctx.symbol(&self.class_name(path)), ClassKind::Module);
            class.add_attribute(ctx.symbol("training"), types::BOOL, AttributeKind::Plain);
            classes.insert(path, class);
            slots.insert(path, vec![Constant::Bool(false)]);
        }
        for (path, (cell, kind)) in &self.entries {
            let (owner, name) = path.rsplit_once('.').unwrap_or(("", path));
            let name = self.free_name(ctx, &classes, owner, name)?;
            if let (Some(class), Some(slots)) = (classes.get_mut(owner), slots.get_mut(owner)) {
                class.add_attribute(name, types::TENSOR, *kind);
                slots.push(exporter.constant(&Value::Tensor(cell.clone()))?);
            }
        }
        let root_class = ctx.symbol(&self.class_name(""));
        let mut module = Module::new(Arc::clone(ctx), CompilationUnit::default(), root_class, Vec::new());
        let mut objects = HashMap::from([("", module.root)]);
        // Parents come first, so their objects exist when submodules are attached.
        for path in self.modules().into_iter().skip(1) {
            let class = ctx.symbol(&self.class_name(path));
            let object = module.add_object(Object {
                class,
                slots: Vec::new(),
            });
            objects.insert(path, object);
            let (owner, name) = path.rsplit_once('.').unwrap_or(("", path));
            let name = self.free_name(ctx, &classes, owner, name)?;
            if let (Some(class_of_owner), Some(slots)) = (classes.get_mut(owner), slots.get_mut(owner)) {
                class_of_owner.add_attribute(name, ctx.class(&self.class_name(path)), AttributeKind::Plain);
                slots.push(Constant::Object(object));
            }
        }
        for (path, slots) in slots {
            if let Some(&object) = objects.get(path) {
                module.object_mut(object).slots = slots;
            }
        }
        for (name, graph) in methods {
            let function = function_of(graph, &format!("{}.{name}", self.class_name("")));
            let id = unit.add_function(function);
            if let Some(root) = classes.get_mut("") {
                root.methods.insert(ctx.symbol(name), id);
            }
        }
        unit.classes
            .extend(classes.into_values().map(|class| (class.name, class)));
        module.unit = unit;
        Ok(Model::of(session.clone(), module))
    }

    /// Returns `name` as a symbol.
    ///
    /// # Errors
    /// If the name is empty, or the module at the path `owner` already has an attribute of this name.
    fn free_name(
        &self,
        ctx: &Context,
        classes: &IndexMap<&str, ClassDef>,
        owner: &str,
        name: &str,
    ) -> Result<SymbolId> {
        let symbol = ctx.symbol(name);
        let taken = classes
            .get(owner)
            .is_some_and(|class| class.attributes.contains_key(&symbol));
        match name.is_empty() || taken {
            true => Err(Error::Attribute(format!(
                "`{}` is no name for an attribute, or names two",
                join(owner, name)
            ))),
            false => Ok(symbol),
        }
    }
}

/// The parameters of a module, for use in its methods.
///
/// ```
/// # use frazil::{Session, Tensor, eager::Var, trace::{Method, Outputs, Parameters, Scope, TraceOptions}};
/// fn linear(p: &Scope, x: &Var) -> frazil::Result<Var> {
///     x.mul(&p.get("weight")?).call()
/// }
/// let forward = |p: &Scope, x: &[Var]| {
///     assert!(p.ops().is_tracing());
///     Ok(Outputs::from(linear(&p.sub("layers.0"), &x[0])?))
/// };
/// # let mut parameters = Parameters::new("Net");
/// # parameters.parameter("layers.0.weight", Tensor::from_f32(&[2.0], &[1])?);
/// # let x = [Tensor::from_f32(&[1.0], &[1])?];
/// let method = Method { name: "forward", function: &forward, inputs: &x };
/// let trace = Session::new().trace_module(&parameters, &[method], &TraceOptions::default())?;
/// assert_eq!(trace.call("forward", &x)?[0].to_vec(), [2.0]);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone)]
pub struct Scope {
    ops: Ops,
    prefix: String,
    entries: Arc<IndexMap<String, TensorCell>>,
}

impl Scope {
    /// Returns the parameters with these operators. Each trace has separate variables, so that writes in a trace are not visible in other traces.
    pub(super) fn of(parameters: Option<&Parameters>, ops: &Ops) -> Result<Scope> {
        let mut copies: HashMap<usize, TensorCell> = HashMap::new();
        let mut entries = IndexMap::new();
        for (path, (cell, _)) in parameters.into_iter().flat_map(|p| &p.entries) {
            let copy = match copies.get(&cell.address()) {
                Some(copy) => copy.clone(),
                None => {
                    let copy = TensorCell::new(cell.get().deep_copy_preserving_strides()?);
                    ops.record(|r| r.attribute(&copy, path));
                    copies.insert(cell.address(), copy.clone());
                    copy
                }
            };
            entries.insert(path.clone(), copy);
        }
        Ok(Scope {
            ops: ops.clone(),
            prefix: String::new(),
            entries: Arc::new(entries),
        })
    }

    /// Returns the operators, by which the method can create tensors.
    ///
    /// See [`Scope`] for an example.
    pub fn ops(&self) -> &Ops {
        &self.ops
    }

    /// Returns the parameters of the submodule at the dotted path `path`.
    ///
    /// See [`Scope`] for an example.
    #[must_use]
    pub fn sub(&self, path: &str) -> Scope {
        Scope {
            prefix: join(&self.prefix, path),
            ..self.clone()
        }
    }

    /// Returns the parameter or buffer at a dotted path.
    ///
    /// See [`Scope`] for an example.
    ///
    /// # Errors
    /// If there is none.
    pub fn get(&self, path: &str) -> Result<Var> {
        let path = join(&self.prefix, path);
        let cell = self.entries.get(&path).ok_or_else(|| missing(&path))?;
        Ok(self.ops.wrap(cell.clone()))
    }
}

fn missing(path: &str) -> Error {
    Error::Attribute(format!("there is no parameter `{path}`"))
}
