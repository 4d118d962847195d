//! The registry of passes. Each pass is declared once, for the parser of pipelines, help texts and documentation.

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
    /// The name of the pass in pipelines, in kebab case.
    pub name: &'static str,
    /// The effect of the pass in one sentence, for lists of passes.
    pub summary: &'static str,
    /// An example: the text of the IR before the pass; empty if there is no example.
    pub before: &'static str,
    /// The text of the example after the pass.
    pub after: &'static str,
    /// The options of the pass.
    pub options: &'static [OptionInfo],
    /// Constructs the pass. The options contain a value for each of `options`.
    pub build: fn(&PassOptions) -> AnyPass<I>,
}

/// An option of a pass.
#[derive(Debug)]
pub struct OptionInfo {
    /// The name of the option in pipelines, in kebab case.
    pub name: &'static str,
    /// The type of its value.
    pub kind: OptionKind,
    /// The default, in the notation of pipelines.
    pub default: &'static str,
    /// The meaning of the option, for help texts.
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
    /// Strings, separated by commas.
    List,
}

impl OptionKind {
    /// Returns a description for messages, such as "`true` or `false`".
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
    /// A list of strings.
    List(Vec<String>),
}

impl OptionValue {
    /// Parses `text` as a value of type `kind`; returns `None` if it is not valid.
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
    /// Sets the option `name`.
    pub fn set(&mut self, name: &'static str, value: OptionValue) {
        self.0.insert(name, value);
    }

    /// Returns the value of the option `name`; `None` if it is not set.
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
    /// Returns the options with their defaults.
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
    /// The constructor that is called in place of [`PassInfo::build`].
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
    /// Constructs the pass. `options` must contain a value for each of [`PassInfo::options`].
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

/// The passes that a pipeline can name. Embedders can add passes.
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

/// An IR with standard passes, which [`PassRegistry::standard`] contains.
pub trait StandardPasses: Ir {
    /// Returns the declarations of the standard passes.
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

    /// Adds a pass. It replaces a pass of the same name.
    pub fn add(&mut self, info: &'static PassInfo<I>) {
        self.passes.insert(info.name, info.into());
    }

    /// Adds a pass that the closure `build` constructs. The closure may have state: a table, a cost model, settings of the embedder. The pass replaces a pass of the
    /// same name.
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

    /// Returns all passes in the order in which they were added.
    pub fn passes(&self) -> impl Iterator<Item = &RegisteredPass<I>> {
        self.passes.values()
    }
}

/// A placeholder for [`PassInfo::build`] in declarations whose pass is constructed by a closure, and in those of [`PassInfo::STEPS`], which the manager
/// implements. It is never run.
pub(crate) struct Unused;

impl<I: Ir> GraphPass<I> for Unused {
    fn run(&self, _graph: &mut I::Graph, _cx: &mut PassContext<'_, I>) -> Result<(), PassError<I>> {
        Ok(())
    }
}
