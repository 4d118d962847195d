//! Passes by name: each has one declaration for pipelines, help texts and documents.

use crate::context::PassContext;
use crate::error::PassError;
use crate::ir::Ir;
use crate::pass::{AnyPass, GraphPass};
use indexmap::IndexMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The declaration of a pass.
#[derive(Debug)]
pub struct PassInfo<I: Ir> {
    /// Its name in pipelines, in kebab case.
    pub name: &'static str,
    /// One sentence for lists of passes.
    pub summary: &'static str,
    /// IR before it, as text.
    pub before: &'static str,
    /// IR after it, as text.
    pub after: &'static str,
    /// The options of the pass.
    pub options: &'static [OptionInfo],
    /// Makes the pass from options that contain a value for each of `options`.
    pub build: fn(&PassOptions) -> AnyPass<I>,
}

/// An option of a pass.
#[derive(Debug)]
pub struct OptionInfo {
    /// Its name in pipelines, in kebab case.
    pub name: &'static str,
    /// The type of its value.
    pub kind: OptionKind,
    /// Its default, as written in a pipeline.
    pub default: &'static str,
    /// One sentence for help texts.
    pub doc: &'static str,
}

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// `true` or `false`.
    Bool,
    /// An integer.
    Int,
    /// An integer of at least 1.
    Count,
    /// Texts with commas between them.
    List,
}

impl OptionKind {
    /// Returns a description for messages: "`true` or `false`".
    pub fn describe(self) -> &'static str {
        match self {
            OptionKind::Bool => "`true` or `false`",
            OptionKind::Int => "an integer",
            OptionKind::Count => "an integer from 1 on",
            OptionKind::List => "a list with commas between its elements",
        }
    }
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A list of texts.
    List(Vec<String>),
}

impl OptionValue {
    /// Reads `text` as a value of `kind`.
    pub fn parse(kind: OptionKind, text: &str) -> Option<OptionValue> {
        Some(match kind {
            OptionKind::Bool => OptionValue::Bool(text.parse().ok()?),
            OptionKind::Int => OptionValue::Int(text.parse().ok()?),
            OptionKind::Count => OptionValue::Int(text.parse().ok().filter(|count| *count > 0)?),
            OptionKind::List => {
                let items = text.split(',').map(str::trim).filter(|s| !s.is_empty());
                OptionValue::List(items.map(str::to_owned).collect())
            }
        })
    }
}

/// The options of one pass in a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassOptions(IndexMap<&'static str, OptionValue>);

impl PassOptions {
    /// Sets option `name`.
    pub fn set(&mut self, name: &'static str, value: OptionValue) {
        self.0.insert(name, value);
    }

    /// Returns the value of `name`, if the pass declares it.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.0.get(name)
    }

    /// Returns the value of a bool option; false if it does not exist or is of another type.
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.get(name), Some(OptionValue::Bool(true)))
    }

    /// Returns the value of an integer option; 0 if it does not exist or is of another type.
    pub fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(OptionValue::Int(i)) => *i,
            _ => 0,
        }
    }

    /// Returns the value of a list option; empty if it does not exist or is of another type.
    pub fn list(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some(OptionValue::List(items)) => items,
            _ => &[],
        }
    }
}

impl<I: Ir> PassInfo<I> {
    /// Returns the declared defaults.
    pub fn default_options(&self) -> PassOptions {
        let mut options = PassOptions::default();
        for o in self.options {
            if let Some(value) = OptionValue::parse(o.kind, o.default) {
                options.set(o.name, value);
            }
        }
        options
    }
}

/// A pass of a registry: its declaration, and its constructor.
#[derive(Clone)]
pub struct RegisteredPass<I: Ir> {
    info: Declaration<I>,
    /// Makes the pass in place of [`PassInfo::build`].
    closure: Option<BuildClosure<I>>,
}

/// A constructor of a pass with state.
type BuildClosure<I> = Arc<dyn Fn(&PassOptions) -> AnyPass<I> + Send + Sync>;

#[derive(Clone)]
enum Declaration<I: Ir> {
    Static(&'static PassInfo<I>),
    Shared(Arc<PassInfo<I>>),
}

impl<I: Ir> RegisteredPass<I> {
    /// Makes the pass from options that contain a value for each of [`PassInfo::options`].
    pub fn build(&self, options: &PassOptions) -> AnyPass<I> {
        match &self.closure {
            Some(closure) => closure(options),
            None => (self.info.build)(options),
        }
    }
}

impl<I: Ir> Deref for RegisteredPass<I> {
    type Target = PassInfo<I>;

    fn deref(&self) -> &PassInfo<I> {
        &self.info
    }
}

impl<I: Ir> Deref for Declaration<I> {
    type Target = PassInfo<I>;

    fn deref(&self) -> &PassInfo<I> {
        match self {
            Declaration::Static(info) => info,
            Declaration::Shared(info) => info,
        }
    }
}

impl<I: Ir> From<&'static PassInfo<I>> for RegisteredPass<I> {
    fn from(info: &'static PassInfo<I>) -> RegisteredPass<I> {
        RegisteredPass {
            info: Declaration::Static(info),
            closure: None,
        }
    }
}

impl<I: Ir> fmt::Debug for RegisteredPass<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// The passes that pipelines can refer to. An embedder adds its own.
#[derive(Clone, Debug)]
pub struct PassRegistry<I: Ir> {
    passes: IndexMap<&'static str, RegisteredPass<I>>,
}

impl<I: Ir> Default for PassRegistry<I> {
    fn default() -> PassRegistry<I> {
        PassRegistry {
            passes: IndexMap::new(),
        }
    }
}

/// An IR with a list of passes that every registry of a compiler for it should contain.
pub trait StandardPasses: Ir {
    /// Returns the declarations of these passes.
    fn passes() -> &'static [&'static PassInfo<Self>];
}

impl<I: StandardPasses> PassRegistry<I> {
    /// Returns a registry with the standard passes of the IR.
    pub fn standard() -> PassRegistry<I> {
        let mut registry = PassRegistry::new();
        for info in I::passes() {
            registry.add(info);
        }
        registry
    }
}

impl<I: Ir> PassRegistry<I> {
    /// Returns a registry without passes.
    pub fn new() -> PassRegistry<I> {
        PassRegistry::default()
    }

    /// Adds a pass, which replaces an existing one of its name.
    pub fn add(&mut self, info: &'static PassInfo<I>) {
        self.passes.insert(info.name, info.into());
    }

    /// Adds a pass that `build` makes, which may have state: a table, a cost model, settings of the embedder. It replaces an existing pass of
    /// its name.
    pub fn add_closure(
        &mut self,
        name: &'static str,
        summary: &'static str,
        options: &'static [OptionInfo],
        build: impl Fn(&PassOptions) -> AnyPass<I> + Send + Sync + 'static,
    ) {
        let info = PassInfo {
            name,
            summary,
            before: "",
            after: "",
            options,
            build: |_| AnyPass::graph(Unused),
        };
        let pass = RegisteredPass {
            info: Declaration::Shared(Arc::new(info)),
            closure: Some(Arc::new(build)),
        };
        self.passes.insert(name, pass);
    }

    /// Returns the pass called `name`.
    pub fn find(&self, name: &str) -> Option<&RegisteredPass<I>> {
        self.passes.get(name)
    }

    /// Returns all passes in the order of their addition.
    pub fn passes(&self) -> impl Iterator<Item = &RegisteredPass<I>> {
        self.passes.values()
    }
}

/// A placeholder in declarations whose pass is made by a closure, or by the manager.
pub(crate) struct Unused;

impl<I: Ir> GraphPass<I> for Unused {
    fn run(&self, _graph: &mut I::Graph, _cx: &mut PassContext<'_, I>) -> Result<(), PassError<I>> {
        Ok(())
    }
}
