//! Detection of calls without side effects: operators, functions that only compute, and modules whose methods set nothing.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::AttributeKind;
use ruff_python_ast::{Stmt, StmtClassDef, StmtFunctionDef};

use super::globals::modules;
use super::maker::{MAX_DEPTH, Maker};
use super::mentions::{Callee, Mentions};
use super::value::{FunctionRef, ObjectRef, Py};
use crate::error::Result;
use crate::names::ancestry;
use crate::source::{SourceFile, dotted};

/// Functions without an effect on the definitions. A statement that calls such a function is skipped after its arguments have been evaluated.
const HARMLESS: &[&str] = &[
    "print",
    "torch.save",
    "torch.jit.save",
    "torch.onnx.export",
    "torch.manual_seed",
    "torch.seed",
    "torch.set_printoptions",
    "torch.set_num_threads",
    "torch.set_num_interop_threads",
    "torch.set_float32_matmul_precision",
    "torch.set_flush_denormal",
    "torch.set_grad_enabled",
    "torch.set_warn_always",
    "torch.set_deterministic_debug_mode",
    "torch.use_deterministic_algorithms",
    "torch.autograd.set_detect_anomaly",
    "torch.random.",
    "torch.cuda.",
    "torch.backends.",
    "warnings.",
    "logging.",
    "sys.",
    "os.",
    "time.",
    "gc.",
    "random.seed",
    "numpy.random.seed",
    "numpy.set_printoptions",
];

/// Functions that end the Python process.
const EXITS: &[&str] = &["sys.exit", "os._exit", "os.abort", "exit", "quit"];

/// Builtin functions of Python without side effects, apart from those of functions that they get as arguments.
const PURE_BUILTINS: &[&str] = &[
    "abs",
    "all",
    "any",
    "bin",
    "bool",
    "bytes",
    "callable",
    "chr",
    "complex",
    "dict",
    "divmod",
    "enumerate",
    "filter",
    "float",
    "format",
    "frozenset",
    "getattr",
    "hasattr",
    "hash",
    "hex",
    "id",
    "input",
    "int",
    "isinstance",
    "issubclass",
    "len",
    "list",
    "map",
    "max",
    "min",
    "oct",
    "open",
    "ord",
    "pow",
    "print",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "slice",
    "sorted",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
];

/// Further builtin names of Python, and names that a text may use without an import.
const OTHER_BUILTINS: &[&str] = &[
    "Any",
    "Callable",
    "Dict",
    "Ellipsis",
    "Enum",
    "Final",
    "IntEnum",
    "List",
    "NamedTuple",
    "Optional",
    "OrderedDict",
    "Sequence",
    "Set",
    "Tensor",
    "Tuple",
    "Union",
    "classmethod",
    "delattr",
    "iter",
    "next",
    "object",
    "property",
    "setattr",
    "staticmethod",
];

/// Modules of Python's standard library, and `numpy`, whose functions do not modify their arguments.
const PURE_MODULES: &[&str] = &[
    "argparse",
    "base64",
    "calendar",
    "collections",
    "copy",
    "csv",
    "datetime",
    "decimal",
    "fractions",
    "glob",
    "hashlib",
    "inspect",
    "io",
    "json",
    "math",
    "numpy",
    "pathlib",
    "platform",
    "pprint",
    "re",
    "socket",
    "statistics",
    "string",
    "struct",
    "tempfile",
    "textwrap",
    "typing",
    "typing_extensions",
    "urllib",
    "uuid",
    "zlib",
];

/// Functions of `numpy` that write to their arguments.
const NUMPY_WRITES: &[&str] = &[
    "shuffle",
    "copyto",
    "put",
    "place",
    "putmask",
    "fill_diagonal",
    "put_along_axis",
];

/// Functions and classes of `torch` that store, modify or call their arguments.
const IMPURE: &[&str] = &[
    "torch.nn.utils.",
    "torch.nn.init.",
    "torch.nn.functional.batch_norm",
    "torch.nn.functional.instance_norm",
    "torch.batch_norm",
    "torch.instance_norm",
    "torch.native_batch_norm",
    "torch.optim.",
    "torch.utils.",
    "torch.hub.",
    "torch.jit.trace",
    "torch.quantization.",
    "torch.ao.",
    "torch.fx.",
    "torch.export.",
    "torch.compile",
    "torch.func.",
    "torch.autograd.",
    "torch.distributed.",
    "torch.multiprocessing.",
    "torch.set_default",
];

/// Methods that modify lists or dictionaries, and share a name with an operator or a tensor method.
const MUTATORS: &[&str] = &[
    "Delete",
    "add",
    "append",
    "backward",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "set_data",
    "setdefault",
    "sort",
    "update",
];

/// Methods that modify a module, and have the same name as an operator.
const CONVERSIONS: &[&str] = &[
    "to", "float", "double", "half", "bfloat16", "cpu", "cuda", "type", "train", "eval",
];

/// Methods without side effects that are not operators.
const READS: &[&str] = &[
    "buffers",
    "children",
    "copy",
    "count",
    "dim",
    "endswith",
    "find",
    "format",
    "get",
    "item",
    "items",
    "join",
    "keys",
    "lower",
    "modules",
    "named_buffers",
    "named_children",
    "named_modules",
    "named_parameters",
    "numel",
    "numpy",
    "parameters",
    "size",
    "split",
    "startswith",
    "state_dict",
    "strip",
    "tolist",
    "upper",
    "values",
];

/// Special methods of Python that are only called by name, not by operators.
const CALLED_BY_NAME: &[&str] = &[
    "init",
    "new",
    "del",
    "call",
    "enter",
    "exit",
    "getstate",
    "setstate",
    "reduce",
    "repr",
    "str",
    "post_init",
];

/// Returns whether calls of `path` cannot affect the definitions of the program.
pub(super) fn is_harmless(path: &str) -> bool {
    !ends_program(path)
        && HARMLESS.iter().any(|harmless| match harmless.ends_with('.') {
            true => path.starts_with(harmless),
            false => path == *harmless,
        })
}

/// Returns whether calling `path` ends the Python process.
pub(super) fn ends_program(path: &str) -> bool {
    EXITS.contains(&path)
}

/// Returns whether every function that the dotted name `path` may denote is without side effects.
pub(super) fn is_pure_path(path: &str) -> bool {
    if is_harmless(path) {
        return true;
    }
    if path.starts_with("torch.") {
        return !path.ends_with('_') && !IMPURE.iter().any(|prefix| path.starts_with(prefix));
    }
    match path.split_once('.') {
        Some((head, rest)) => {
            PURE_MODULES.contains(&head) && !NUMPY_WRITES.contains(&rest.rsplit('.').next().unwrap_or(rest))
        }
        None => PURE_BUILTINS.contains(&path) || path.ends_with("Error") || path.ends_with("Exception"),
    }
}

/// Returns whether `name` is not a builtin name of Python.
pub(super) fn is_unknown_name(name: &str) -> bool {
    let is_known = PURE_BUILTINS.contains(&name) || OTHER_BUILTINS.contains(&name) || name.ends_with("Error");
    !is_known && !name.ends_with("Exception") && !name.ends_with("Warning") && !name.starts_with("__")
}

/// Code that has been analysed: functions by file, statement and method, and methods of modules by address and name.
type Seen = HashSet<(usize, String)>;

impl Maker<'_> {
    /// Returns whether a statement has no side effects: it assigns only variables, and all of its callees are known to have none.
    pub(super) fn is_pure(&mut self, file: &SourceFile, mentions: &Mentions) -> Result<bool> {
        self.is_pure_code(file, mentions, None, &mut Seen::new())
    }

    /// Returns [`Self::is_pure`] for code in a method of `this` or a submodule of `this`. Other methods that the code calls are analysed, too.
    fn is_pure_code(
        &mut self,
        file: &SourceFile,
        mentions: &Mentions,
        this: Option<&ObjectRef>,
        seen: &mut Seen,
    ) -> Result<bool> {
        if mentions.writes || mentions.is_wild {
            return Ok(false);
        }
        for callee in &mentions.calls {
            if callee.writes || !self.is_pure_callee(file, callee, this, seen)? {
                return Ok(false);
            }
        }
        // Attributes and operators may call properties and special methods of the text's classes.
        let place = Arc::as_ptr(&file.text).cast::<()>() as usize;
        for class in file.classes() {
            for method in class.body.iter().filter_map(Stmt::as_function_def_stmt) {
                let key = (place, format!("{} {}", class.name, method.name));
                if !is_called_unseen(method, &mentions.attributes) || !seen.insert(key) {
                    continue;
                }
                let inner = Mentions::of_body(&method.body, &method.parameters);
                if !self.is_pure_code(file, &inner, this, seen)? {
                    return Ok(false);
                }
            }
        }
        // Functions that are read and not called here may be called by other code.
        for name in &mentions.loaded {
            if let Some(Ok(Py::Function(function))) = self.globals.names.get(name).map(|binding| &binding.value) {
                let function = function.clone();
                if !self.is_pure_function(&function, this, seen)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn is_pure_function(&mut self, function: &FunctionRef, this: Option<&ObjectRef>, seen: &mut Seen) -> Result<bool> {
        let file = Arc::clone(&function.file);
        let place = (
            Arc::as_ptr(&file).cast::<()>() as usize,
            format!("{} {:?}", function.statement, function.method),
        );
        if !function.file.rules.is_source() || !seen.insert(place) {
            return Ok(true);
        }
        let Some(def) = function.def().filter(|_| seen.len() < MAX_DEPTH) else {
            return Ok(false);
        };
        let mentions = Mentions::of_body(&def.body, &def.parameters);
        self.is_pure_code(&file, &mentions, this, seen)
    }

    fn is_pure_callee(
        &mut self,
        file: &SourceFile,
        callee: &Callee,
        this: Option<&ObjectRef>,
        seen: &mut Seen,
    ) -> Result<bool> {
        let method = callee.method.as_deref();
        let Some(path) = &callee.path else {
            return self.is_pure_method(file, method, this);
        };
        let (head, rest) = match path.split_once('.') {
            Some((head, rest)) => (head, Some(rest)),
            None => (path.as_str(), None),
        };
        if callee.is_local {
            // A local variable that is called in a method is a layer. The layers of the module are checked separately.
            return match method {
                None => Ok(this.is_some()),
                method => self.is_pure_method(file, method, this),
            };
        }
        if callee.is_element {
            return Ok(false);
        }
        let value = self.globals.names.get(head).map(|binding| binding.value.clone());
        match (value, rest) {
            (Some(Ok(Py::Function(function))), None) => self.is_pure_function(&function, this, seen),
            (Some(Ok(Py::Class(class))), None) => {
                let methods = |def: &StmtClassDef| def.body.iter().any(Stmt::is_function_def_stmt);
                Ok(!class.file.rules.is_source() || class.def().is_some_and(|def| !methods(def)))
            }
            (Some(Ok(Py::Path(head))), None) => Ok(is_pure_path(&head)),
            (Some(Ok(Py::Path(head))), Some(rest)) => Ok(is_pure_path(&format!("{head}.{rest}"))),
            (Some(Ok(Py::Object(object))), rest) => self.is_pure_member(file, object, rest, seen),
            (Some(_), None) => Ok(false),
            (Some(_), Some(_)) => self.is_pure_method(file, method, None),
            (None, _) => Ok(is_pure_path(&file.expand(path))),
        }
    }

    /// Returns whether calling a module, or its member `path`, has no side effects.
    fn is_pure_member(
        &mut self,
        file: &SourceFile,
        object: ObjectRef,
        path: Option<&str>,
        seen: &mut Seen,
    ) -> Result<bool> {
        let mut object = object;
        let mut names = path.iter().flat_map(|path| path.split('.')).peekable();
        while let Some(name) = names.next() {
            let held = object
                .borrow()
                .attributes
                .get(name)
                .map(|attribute| attribute.value.clone());
            object = match held {
                Some(Py::Object(held)) => held,
                Some(Py::Function(function)) => return self.is_pure_function(&function, None, seen),
                Some(Py::Path(path)) => return Ok(is_pure_path(&path)),
                Some(_) => return self.is_pure_method(file, names.last(), None),
                None if names.peek().is_some() => return Ok(false),
                None if matches!(name, "forward" | "__call__") => break,
                None => {
                    let chain = ancestry(self.names, &object.borrow().class.clone())?.unwrap_or_default();
                    let own = chain.iter().filter(|class| class.file.rules.is_source());
                    let own = own.into_iter().any(|class| class.method(name).is_some());
                    return match own {
                        true => self.is_pure_module(&object, name, seen),
                        false => Ok(READS.contains(&name)),
                    };
                }
            };
        }
        self.is_pure_module(&object, "forward", seen)
    }

    /// Returns whether a method of tensors, lists and the like has no side effects. A method of that name in a class of the text makes it unknown, unless the
    /// class is that of `this`.
    fn is_pure_method(&mut self, file: &SourceFile, name: Option<&str>, this: Option<&ObjectRef>) -> Result<bool> {
        let Some(name) = name else { return Ok(false) };
        if let Some(this) = this
            && self.has_member(this, name)?
        {
            return Ok(true);
        }
        let operator = self.names.ctx().symbol(&format!("aten::{name}"));
        let is_known = READS.contains(&name) || self.names.catalogue().contains(operator);
        let changes = name.ends_with('_')
            || MUTATORS.contains(&name) && !(name == "add" && this.is_some())
            || this.is_none() && CONVERSIONS.contains(&name);
        let is_own = |class: &StmtClassDef| class.body.iter().any(|member| is_method(member, name));
        Ok(is_known && !changes && !file.classes().any(is_own))
    }

    /// Returns whether the module or a submodule has a child, function or method called `name`.
    fn has_member(&mut self, this: &ObjectRef, name: &str) -> Result<bool> {
        for module in modules(this) {
            let held = module
                .borrow()
                .attributes
                .get(name)
                .map(|attribute| attribute.value.clone());
            let class = module.borrow().class.clone();
            let found = match held {
                Some(Py::Object(_) | Py::Function(_)) => true,
                Some(Py::Path(path)) => is_pure_path(&path),
                Some(_) => false,
                None => {
                    let chain = ancestry(self.names, &class)?.unwrap_or_default();
                    chain
                        .iter()
                        .any(|class| class.file.rules.is_source() && class.method(name).is_some())
                }
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether the method `name` of the module has no side effects: no reachable method sets anything, and no layer updates statistics.
    fn is_pure_module(&mut self, root: &ObjectRef, name: &str, seen: &mut Seen) -> Result<bool> {
        if !seen.insert((Rc::as_ptr(root).cast::<()>() as usize, name.to_owned())) {
            return Ok(true);
        }
        let mut names: Vec<String> = vec![name.to_owned(), "forward".to_owned(), "__call__".to_owned()];
        let mut known: HashSet<String> = names.iter().cloned().collect();
        let modules = modules(root);
        let mut chains = Vec::new();
        for module in &modules {
            let module = module.borrow();
            let is_training = module
                .attributes
                .get("training")
                .is_none_or(|a| a.value.truth() != Some(false));
            let has_buffers = module
                .attributes
                .values()
                .any(|a| a.kind == AttributeKind::Buffer && matches!(a.value, Py::Tensor(_)));
            let class = module.class.clone();
            let hooks: Vec<FunctionRef> = module.hooks.iter().map(|hook| hook.function.clone()).collect();
            let functions = module.attributes.values().filter_map(|a| match &a.value {
                Py::Function(function) => Some(function.clone()),
                _ => None,
            });
            let functions: Vec<FunctionRef> = functions.chain(hooks).collect();
            drop(module);
            let chain = ancestry(self.names, &class)?.unwrap_or_default();
            // Layers with statistics update them while they are trained.
            if is_training && has_buffers && chain.iter().any(|class| !class.file.rules.is_source()) {
                return Ok(false);
            }
            for function in functions {
                if !self.is_pure_function(&function, Some(root), seen)? {
                    return Ok(false);
                }
            }
            chains.extend(chain.into_iter().filter(|class| class.file.rules.is_source()));
        }
        while let Some(name) = names.pop() {
            for class in &chains {
                let Some(method) = class.method(&name) else { continue };
                let Some(def) = method.def() else { continue };
                let mentions = Mentions::of_body(&def.body, &def.parameters);
                let further = mentions.attributes.iter().filter(|name| *name != "__init__");
                let further: Vec<String> = further.filter(|name| known.insert((*name).clone())).cloned().collect();
                names.extend(further);
                if !self.is_pure_function(&method, Some(root), seen)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Returns whether a method is called implicitly: as a property among `attributes`, or as an operator.
fn is_called_unseen(method: &StmtFunctionDef, attributes: &BTreeSet<String>) -> bool {
    let name = method.name.as_str();
    let mut decorators = method.decorator_list.iter().filter_map(|d| dotted(&d.expression));
    match name.strip_prefix("__").and_then(|name| name.strip_suffix("__")) {
        Some(operator) => !CALLED_BY_NAME.contains(&operator),
        None => attributes.contains(name) && decorators.any(|decorator| decorator == "property"),
    }
}

fn is_method(member: &Stmt, name: &str) -> bool {
    matches!(member, Stmt::FunctionDef(def) if def.name.as_str() == name)
}
