//! The registry of passes. Each pass has one declaration, used for pipelines, help texts and documents.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError};
use frazil_ir::Graph;
use indexmap::IndexMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The declaration of a pass.
#[derive(Debug)]
pub struct PassInfo {
    /// The name of the pass in pipelines, in kebab case.
    pub name: &'static str,
    /// One sentence that describes the pass, for lists of passes.
    pub summary: &'static str,
    /// An example of IR before the pass, as text.
    pub before: &'static str,
    /// The IR of the example after the pass, as text.
    pub after: &'static str,
    /// The options of the pass.
    pub options: &'static [OptionInfo],
    /// Creates the pass from options that contain a value for each of `options`.
    pub build: fn(&PassOptions) -> AnyPass,
}

/// An option of a pass.
#[derive(Debug)]
pub struct OptionInfo {
    /// The name of the option in pipelines, in kebab case.
    pub name: &'static str,
    /// The type of the option's value.
    pub kind: OptionKind,
    /// The default of the option, as written in a pipeline.
    pub default: &'static str,
    /// One sentence that describes the option, for help texts.
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
    /// A list of strings, separated by commas.
    List,
}

impl OptionKind {
    /// Returns a description of the type for messages: "`true` or `false`".
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
    /// Parses `text` as a value of the type `kind`.
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

/// The values of a pass's options in a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassOptions(IndexMap<&'static str, OptionValue>);

impl PassOptions {
    /// Sets option `name`.
    pub fn set(&mut self, name: &'static str, value: OptionValue) {
        self.0.insert(name, value);
    }

    /// Returns the value of option `name`, if the pass declares it.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.0.get(name)
    }

    /// Returns the value of the bool option `name`; false if there is no bool option `name`.
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.get(name), Some(OptionValue::Bool(true)))
    }

    /// Returns the value of the integer option `name`; 0 if there is no integer option `name`.
    pub fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(OptionValue::Int(i)) => *i,
            _ => 0,
        }
    }

    /// Returns the value of the list option `name`; empty if there is no list option `name`.
    pub fn list(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some(OptionValue::List(items)) => items,
            _ => &[],
        }
    }
}

impl PassInfo {
    /// Returns the options of the pass with their declared defaults.
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
pub struct RegisteredPass {
    info: Declaration,
    /// Function that creates the pass in place of [`PassInfo::build`].
    closure: Option<BuildClosure>,
}

/// A function that creates a pass and may capture state.
type BuildClosure = Arc<dyn Fn(&PassOptions) -> AnyPass + Send + Sync>;

#[derive(Clone)]
enum Declaration {
    Static(&'static PassInfo),
    Shared(Arc<PassInfo>),
}

impl RegisteredPass {
    /// Creates the pass from options that contain a value for each of [`PassInfo::options`].
    pub fn build(&self, options: &PassOptions) -> AnyPass {
        match &self.closure {
            Some(closure) => closure(options),
            None => (self.info.build)(options),
        }
    }
}

impl Deref for RegisteredPass {
    type Target = PassInfo;

    fn deref(&self) -> &PassInfo {
        &self.info
    }
}

impl Deref for Declaration {
    type Target = PassInfo;

    fn deref(&self) -> &PassInfo {
        match self {
            Declaration::Static(info) => info,
            Declaration::Shared(info) => info,
        }
    }
}

impl From<&'static PassInfo> for RegisteredPass {
    fn from(info: &'static PassInfo) -> RegisteredPass {
        RegisteredPass {
            info: Declaration::Static(info),
            closure: None,
        }
    }
}

impl fmt::Debug for RegisteredPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// The passes that pipelines can name. An embedder can add its own.
#[derive(Clone, Debug, Default)]
pub struct PassRegistry {
    passes: IndexMap<&'static str, RegisteredPass>,
}

impl PassRegistry {
    /// Returns a registry without passes.
    pub fn new() -> PassRegistry {
        PassRegistry::default()
    }

    /// Adds a pass. It replaces an existing pass of the same name.
    pub fn add(&mut self, info: &'static PassInfo) {
        self.passes.insert(info.name, info.into());
    }

    /// Adds a pass that `build` creates, which may have state: a table, a cost model, settings of the embedder. It replaces an existing pass of the same name.
    ///
    /// ```
    /// use frazil_ir::Graph;
    /// use frazil_passes::{AnyPass, GraphPass, PassContext, PassError, PassRegistry};
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    ///
    /// /// Counts nodes of one kind.
    /// struct Count(String, Arc<AtomicUsize>);
    ///
    /// impl GraphPass for Count {
    ///     fn run(&self, graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
    ///         let nodes = graph.all_nodes();
    ///         let found = nodes.iter().filter(|&&node| graph.kind_name(node) == self.0);
    ///         self.1.fetch_add(found.count(), Ordering::Relaxed);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let count = Arc::new(AtomicUsize::new(0));
    /// let (kind, shared) = (String::from("aten::relu"), Arc::clone(&count));
    /// let mut passes = PassRegistry::standard();
    /// passes.add_closure("count", "Counts nodes.", &[], move |_| AnyPass::graph(Count(kind.clone(), Arc::clone(&shared))));
    /// assert!(passes.find("count").is_some());
    /// ```
    pub fn add_closure(
        &mut self,
        name: &'static str,
        summary: &'static str,
        options: &'static [OptionInfo],
        build: impl Fn(&PassOptions) -> AnyPass + Send + Sync + 'static,
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
    pub fn find(&self, name: &str) -> Option<&RegisteredPass> {
        self.passes.get(name)
    }

    /// Returns all passes in the order in which they were added.
    pub fn passes(&self) -> impl Iterator<Item = &RegisteredPass> {
        self.passes.values()
    }
}

/// Placeholder pass that does nothing. [`PassInfo::build`] returns it for declarations whose pass is created elsewhere: by a closure, or by the pass manager
/// (`methods`, `repeat`).
pub(crate) struct Unused;

impl GraphPass for Unused {
    fn run(&self, _graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_complete() {
        for info in PassRegistry::standard().passes() {
            assert!(
                info.name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            );
            assert!(!info.summary.is_empty() && info.summary.ends_with('.'), "{}", info.name);
            assert!(!info.before.is_empty() && !info.after.is_empty(), "{}", info.name);
            assert_eq!(
                info.default_options().0.len(),
                info.options.len(),
                "a default of {} does not parse",
                info.name
            );
            let _ = info.build(&info.default_options());
        }
    }
}
