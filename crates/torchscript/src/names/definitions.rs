//! The definitions of a program: the functions, classes and constants known so far, and the compilation settings.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use frazil_ir::schema::FunctionSchema;
use frazil_ir::{
    AttributeKind, ClassKind, CompilationUnit, Constant, Context, Function, FunctionId, Graph, SymbolId, TypeId,
};

use super::alternatives::{Alternatives, Choice};
use super::class::{Base, MethodTable};
use super::objects::Objects;
use super::top::Top;
use super::traced::Traces;
use super::union::union_of;
use crate::options::LoadOptions;
use crate::source::decorators::{self, Marker};
use crate::source::{DefPath, Rules, SourceFile, Stack};

/// The meaning of a qualified name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Global {
    Function(FunctionId),
    /// A class, interface, enumeration or NamedTuple.
    Type(TypeId),
    /// An overloaded function, of which the arguments of a call select one: index in [`Definitions::alternatives`].
    Alternatives(usize),
}

/// A function's body in the source, with its compilation state.
pub(crate) struct Body {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) path: DefPath,
    /// Whether the function has an annotated return type.
    pub(crate) declared: bool,
    /// Whether the function is a method. Methods may be mutually recursive.
    pub(crate) is_method: bool,
    pub(crate) state: BodyState,
}

/// The compilation state of a function's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyState {
    Waiting,
    Compiling,
    Done,
    /// Compilation failed. The error is in `SourceProgram::refusals`.
    Failed,
}

/// The definitions of a program that is being compiled, with settings of the compilation.
pub(crate) struct Definitions {
    pub(crate) ctx: Arc<Context>,
    /// See [`LoadOptions::operators_first`](crate::LoadOptions::operators_first).
    pub(crate) operators_first: bool,
    /// The format version in which the code was written.
    pub(crate) version: u64,
    /// The available stack of the compiling thread.
    pub(crate) stack: Stack,
    /// The rules by which the program is compiled: rules for source files and the library, or rules for archives.
    pub(crate) rules: Rules,
    pub(crate) unit: CompilationUnit,
    pub(crate) globals: HashMap<SymbolId, Global>,
    /// NamedTuples whose fields are being evaluated, so that one that contains itself is detected.
    pub(crate) defining: HashSet<String>,
    pub(crate) bodies: HashMap<FunctionId, Body>,
    /// The functions to be compiled, in the order of their definition.
    pub(crate) order: Vec<FunctionId>,
    /// Classes of the source text whose `__init__` is being compiled, in which assignments declare attributes.
    pub(crate) initialising: Vec<SymbolId>,
    /// Static methods, keyed by class and name.
    pub(crate) statics: HashMap<(SymbolId, SymbolId), FunctionId>,
    /// Classes of the modules that the source text creates, with their uncompiled methods.
    pub(crate) modules: HashMap<SymbolId, MethodTable>,
    /// The functions of each overloaded name, indexed by [`Global::Alternatives`].
    pub(crate) alternatives: Vec<Alternatives>,
    /// The number of class names that have been mangled so far.
    mangled: usize,
    /// The constants `CONSTANTS.c0`, `CONSTANTS.c1`, ...
    pub(crate) constants: Vec<Constant>,
    /// The objects of the archive.
    pub(crate) objects: Objects,
    /// The global variables of the source text after it has run; `None` before.
    pub(crate) top: Option<Top>,
    /// The bases of the classes of the source text, by the numbers of the class and of the base.
    pub(crate) bases: HashMap<(usize, usize), Base>,
    /// Functions of the source text that were passed to `torch.jit.script`, by statement index.
    pub(crate) scripted: HashSet<usize>,
    /// The functions and methods that `torch.jit.trace` records.
    pub(crate) traces: Traces,
}

impl Definitions {
    /// Returns empty definitions with the settings in `options`.
    pub(crate) fn new(options: &LoadOptions<'_>, stack: Stack) -> Definitions {
        Definitions {
            ctx: Arc::clone(options.ctx),
            operators_first: false,
            version: u64::MAX,
            stack,
            rules: Rules::Archive,
            unit: CompilationUnit::default(),
            globals: HashMap::new(),
            defining: HashSet::new(),
            bodies: HashMap::new(),
            order: Vec::new(),
            initialising: Vec::new(),
            statics: HashMap::new(),
            modules: HashMap::new(),
            alternatives: Vec::new(),
            mangled: 0,
            constants: Vec::new(),
            objects: Objects::default(),
            top: None,
            bases: HashMap::new(),
            scripted: HashSet::new(),
            traces: Traces::default(),
        }
    }

    /// Returns whether `class` is a class of modules.
    pub(crate) fn is_module(&self, class: SymbolId) -> bool {
        self.unit
            .class(class)
            .is_some_and(|class| class.kind == ClassKind::Module)
    }

    /// Returns the static method `name` of `class`.
    pub(crate) fn static_method(&self, class: SymbolId, name: SymbolId) -> Option<FunctionId> {
        self.statics.get(&(class, name)).copied()
    }

    /// Adds a function whose body has not been compiled.
    pub(crate) fn add_body(
        &mut self,
        file: &Arc<SourceFile>,
        path: DefPath,
        schema: FunctionSchema,
        is_method: bool,
    ) -> FunctionId {
        let declared = !schema.returns.is_empty();
        let graph = Graph::new(Arc::clone(&self.ctx));
        let name = schema.name;
        let id = self.unit.add_function(Function { name, schema, graph });
        self.bodies.insert(
            id,
            Body {
                file: Arc::clone(file),
                path,
                declared,
                is_method,
                state: BodyState::Waiting,
            },
        );
        self.order.push(id);
        id
    }

    /// Returns the location of function `id` in the text, if it is plain Python without a decorator that compiles it.
    pub(crate) fn python_function(&self, id: FunctionId) -> Option<(Arc<SourceFile>, DefPath)> {
        let body = self.bodies.get(&id).filter(|body| body.file.rules.is_source())?;
        let def = body.path.def(&body.file)?;
        let is_plain = !decorators::is_compiled(&body.file, def) && !self.scripted.contains(&body.path.statement);
        (is_plain && body.path.method.is_none()).then(|| (Arc::clone(&body.file), body.path))
    }

    /// Returns whether calls of function `id` are compiled to an exception (`@torch.jit.unused`).
    pub(crate) fn is_unused(&self, id: FunctionId) -> bool {
        let Some(body) = self.bodies.get(&id) else { return false };
        let marker = body.path.def(&body.file).map(|def| decorators::marker(&body.file, def));
        matches!(marker, Some(Ok(Marker::Unused)))
    }

    /// Returns the next number by which a class name is made unique.
    pub(crate) fn mangle(&mut self) -> usize {
        self.mangled += 1;
        self.mangled - 1
    }

    /// Registers a function under its qualified name.
    pub(crate) fn know_function(&mut self, qualified: &str, id: FunctionId) {
        let symbol = self.ctx.symbol(qualified);
        self.globals.insert(symbol, Global::Function(id));
    }

    /// Returns whether an assignment to attribute `name` declares the attribute: the first assignment in `__init__` of a class of source does.
    pub(crate) fn would_declare(&self, class: SymbolId, name: SymbolId) -> bool {
        self.initialising.last() == Some(&class)
            && self
                .unit
                .class(class)
                .is_some_and(|class| !class.attributes.contains_key(&name))
    }

    /// Returns the type of an attribute to which a value of type `given` is assigned. In `__init__` of a class of source, the assignment declares the
    /// attribute.
    pub(crate) fn attribute_to_set(&mut self, class: SymbolId, name: SymbolId, given: TypeId) -> Option<TypeId> {
        let declares = self.initialising.last() == Some(&class);
        let class = self.unit.classes.get_mut(&class)?;
        if let Some(attribute) = class.attributes.get(&name) {
            return Some(attribute.ty);
        }
        if !declares {
            return None;
        }
        class.add_attribute(name, given, AttributeKind::Plain);
        Some(given)
    }

    pub(crate) fn add_choice(&mut self, name: SymbolId, choice: Choice) -> Global {
        self.add_alternatives(name, Alternatives::Flag(choice))
    }

    pub(crate) fn add_alternatives(&mut self, name: SymbolId, alternatives: Alternatives) -> Global {
        let global = Global::Alternatives(self.alternatives.len());
        self.alternatives.push(alternatives);
        self.globals.insert(name, global);
        global
    }

    /// Returns true if a value of type `a` can be used where `b` is expected. Classes can be used as the interfaces that they implement.
    pub(crate) fn is_subtype(&self, a: TypeId, b: TypeId) -> bool {
        self.unit.is_subtype(&self.ctx, a, b)
    }

    /// Returns the union of `members`. The union of `None` and one type is an optional. `number` is replaced by its three kinds.
    pub(crate) fn union_of(&self, members: &[TypeId]) -> TypeId {
        union_of(&self.ctx, members)
    }
}
