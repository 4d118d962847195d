//! Modules from source: `__init__` is run on a small part of Python, and what it leaves is the module.
//!
//! [`exec`] runs statements, [`eval`] expressions, [`builtins`] what Python and `torch` bring along; [`refuse`] follows statements that cannot be
//! run, [`purity`] tells which calls change nothing, [`root`] picks the module, [`scripted`] is `torch.jit.script`; [`lower`] turns the objects into a
//! [`Module`](frazil_ir::Module) whose methods the front end compiles. What a constructor does beyond that is an error that says so.

mod arguments;
mod attributes;
mod builtins;
mod compare;
mod complex;
mod containers;
mod copies;
mod declared;
mod dtypes;
mod elements;
mod eval;
mod exec;
mod factories;
mod globals;
mod instances;
mod lineage;
mod lower;
mod mentions;
mod methods;
mod named;
mod names;
mod operators;
mod purity;
mod refuse;
mod root;
mod scripted;
mod sets;
mod states;
mod tensor;
mod tensor_methods;
mod text;
mod toplevel;
mod traced;
mod unknown;
mod value;
mod value_methods;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use ruff_python_ast::Stmt;
use ruff_text_size::Ranged;

use super::objects::Objects;
use super::program::Program;
use super::source::{SourceError, SourceFile};
use super::{Result, library};
use globals::Globals;
use lineage::ancestry;
use tensor::Random;
use value::{FunctionRef, Py};

pub(crate) use lineage::is_script_module_path;
pub(crate) use lower::{MethodSource, MethodTable};
pub(crate) use value::ClassRef;

/// Most steps of statements and expressions that running a text may take, beside one for each byte of it.
const MAX_STEPS: usize = 500_000;

/// Most elements of lists, strings and tensors that expressions may give, in units of 16.
const MAX_WORK: u64 = 1 << 30;

/// Most bytes of the lists, strings and dictionaries that expressions make.
const MAX_BYTES: u64 = 1 << 29;

/// Most bytes of the tensors that expressions make; an element takes eight while the text runs.
const MAX_TENSOR_BYTES: u64 = 8 << 30;

/// Calls nested more deeply than this are taken for endless recursion.
const MAX_CALLS: usize = 100;

/// Expressions and calls nested more deeply than this are refused: they are evaluated recursively.
const MAX_DEPTH: usize = 2000;

/// Longest list, string or range that a constructor may make.
const MAX_LENGTH: i64 = 1 << 20;

/// Runs constructors.
struct Maker<'m, 'p> {
    program: &'m mut Program<'p>,
    random: Random,
    globals: Globals,
    /// The classes of objects in the order in which methods are looked up, by class.
    chains: HashMap<(Rc<str>, usize), Rc<[ClassRef]>>,
    /// The variables of functions of the text, by statement and method.
    locals: HashMap<(usize, Option<usize>), Rc<BTreeSet<String>>>,
    /// Values at the top level of files of the library.
    library_values: HashMap<String, Py>,
    /// Whether the text traces a module.
    has_traces: bool,
    steps: usize,
    max_steps: usize,
    /// Elements of values that expressions gave.
    work: u64,
    /// Bytes of lists, strings and dictionaries that expressions made.
    bytes: u64,
    /// Bytes of tensors that expressions made.
    tensor_bytes: u64,
    calls: usize,
    depth: usize,
}

/// The base of a class of a text by hand, as it was when the class was defined.
#[derive(Clone)]
pub(crate) enum Base {
    Class(ClassRef),
    /// The dotted name of something that the text does not define.
    Path(String),
}

/// The variables of a function that runs.
struct Scope {
    file: Arc<SourceFile>,
    variables: HashMap<String, Py>,
    /// The class whose method runs, for `super()`.
    class: Option<Rc<ClassRef>>,
    this: Option<Py>,
    /// Whether its variables are the globals.
    is_top: bool,
    /// Whether it is that of a class body.
    is_class: bool,
    /// Names that the function declares global.
    globals: HashSet<String>,
    /// The function of the text whose variables they are.
    function: Option<FunctionRef>,
}

impl Scope {
    /// The scope of a function of `file` without variables.
    fn new(file: &Arc<SourceFile>) -> Scope {
        Scope {
            file: Arc::clone(file),
            variables: HashMap::new(),
            class: None,
            this: None,
            is_top: false,
            is_class: false,
            globals: HashSet::new(),
            function: None,
        }
    }
}

/// Runs a text by hand, and gives the objects of its module if it makes one.
pub(crate) fn module(program: &mut Program<'_>, file: &Arc<SourceFile>) -> Result<Option<Objects>> {
    let mut maker = Maker {
        program,
        random: Random::new(),
        globals: Globals::default(),
        chains: HashMap::new(),
        locals: HashMap::new(),
        library_values: HashMap::new(),
        has_traces: false,
        steps: 0,
        max_steps: MAX_STEPS.saturating_add(file.text.len()),
        work: 0,
        bytes: 0,
        tensor_bytes: 0,
        calls: 0,
        depth: 0,
    };
    maker.run(file)?;
    let root = maker.root(file)?;
    if let Some(root) = &root {
        maker.evaluate(file, root)?;
    }
    maker.check_snapshots()?;
    if let Some(doubt) = root
        .as_ref()
        .and_then(|root| maker.globals.doubt_within(&Py::Object(Rc::clone(root))))
    {
        return Err(Box::new(doubt.clone()).into());
    }
    let (names, bound, constants) = (maker.top_names(file), maker.bound(), maker.top_constants());
    program.set_top(file, names, bound, constants);
    if let Some(root) = &root {
        globals::walk(&Py::Object(Rc::clone(root)), &mut |part| {
            if let Py::Object(module) = part {
                let mut module = module.borrow_mut();
                let training = module.mode.unwrap_or(false);
                attributes::set_mode(&mut module, training);
            }
        });
    }
    match root {
        Some(root) => lower::objects(program, file, &root).map(Some),
        None => Ok(None),
    }
}

/// Whether a class of `file` derives from `torch.nn.Module`, by whatever way.
pub(crate) fn is_module_class(program: &mut Program<'_>, file: &Arc<SourceFile>, statement: usize) -> Result<bool> {
    let class = match class_at(file, statement) {
        Some(class) => class,
        None => return Ok(false),
    };
    Ok(ancestry(program, &class)?.is_some())
}

fn class_at(file: &Arc<SourceFile>, statement: usize) -> Option<ClassRef> {
    let def = file.statement(statement)?.as_class_def_stmt()?;
    let qualified = format!("{}.{}", file.qualifier?, def.name);
    Some(ClassRef {
        file: Arc::clone(file),
        statement,
        qualified: qualified.into(),
    })
}

/// The class that `name` is in `file` or the library.
fn find_class(program: &mut Program<'_>, file: &Arc<SourceFile>, name: &str) -> Result<Option<ClassRef>> {
    let local = |file: &Arc<SourceFile>, name: &str| {
        let numbers = file.definitions(name).iter().rev();
        numbers.copied().find_map(|number| class_at(file, number))
    };
    if let Some(class) = local(file, name) {
        return Ok(Some(class));
    }
    let Some(qualified) = library::name_of(name) else {
        return Ok(None);
    };
    let Some((qualifier, simple)) = qualified.rsplit_once('.') else {
        return Ok(None);
    };
    Ok(program.file(qualifier)?.and_then(|file| local(&file, simple)))
}

impl Maker<'_, '_> {
    /// Sets evaluation mode as Python does, where the text has set no mode and a class has a `train` of its own.
    fn evaluate(&mut self, file: &Arc<SourceFile>, root: &value::ObjectRef) -> Result<()> {
        let modules = globals::modules(root);
        let mut has_own = false;
        for module in &modules {
            has_own |= self.defines(module, &["train"])?;
        }
        if !has_own || modules.iter().any(|module| module.borrow().mode.is_some()) {
            return Ok(());
        }
        self.set_training(file, root, false, &ruff_text_size::TextRange::default())
    }

    /// One step more, if that is allowed.
    fn step(&mut self, file: &SourceFile, node: &impl Ranged) -> Result<()> {
        self.steps += 1;
        if self.steps > self.max_steps {
            let message = format!("running the text takes more than {} steps", self.max_steps);
            return Err(file.error("budget", message, node).into());
        }
        Ok(())
    }

    /// Counts the elements and bytes of a value that an expression gave, if that is allowed.
    fn charge(&mut self, file: &SourceFile, value: &Py, node: &impl Ranged) -> Result<()> {
        self.charge_work(file, value.weight() / 16, node)?;
        if let Py::Tensor(tensor) | Py::Parameter(tensor) = value {
            self.tensor_bytes = self.tensor_bytes.saturating_add(tensor.fresh_bytes());
            if self.tensor_bytes > MAX_TENSOR_BYTES {
                let message = format!("running the text makes tensors of more than {MAX_TENSOR_BYTES} bytes");
                return Err(file.error("budget", message, node).into());
            }
        }
        self.charge_bytes(file, value.fresh_bytes(), node)
    }

    /// Counts units of work, if they are allowed.
    fn charge_work(&mut self, file: &SourceFile, units: u64, node: &impl Ranged) -> Result<()> {
        self.work = self.work.saturating_add(units);
        if self.work > MAX_WORK {
            let message = format!("running the text goes through more than {} elements", 16 * MAX_WORK);
            return Err(file.error("budget", message, node).into());
        }
        Ok(())
    }

    /// Counts bytes that a list, string or dictionary is about to take, if that is allowed.
    fn charge_bytes(&mut self, file: &SourceFile, bytes: u64, node: &impl Ranged) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES {
            let message = format!("running the text makes lists and strings of more than {MAX_BYTES} bytes");
            return Err(file.error("budget", message, node).into());
        }
        Ok(())
    }

    /// The error about something that would need Python.
    fn beyond<T>(&self, file: &SourceFile, what: impl AsRef<str>, node: &impl Ranged) -> Result<T> {
        Err(self.beyond_error(file, what, node).into())
    }

    fn beyond_error(&self, file: &SourceFile, what: impl AsRef<str>, node: &impl Ranged) -> Box<SourceError> {
        let message = format!("{} {}", what.as_ref(), unknown::BEYOND);
        file.error("construct", message, node)
    }

    /// An error that Python would raise, too.
    fn fail<T>(&self, file: &SourceFile, message: impl Into<String>, node: &impl Ranged) -> Result<T> {
        Err(file.error("construct", message, node).into())
    }

    /// An exception that the program raises. It ends the run, wherever it is raised.
    fn raise<T>(&self, file: &SourceFile, message: impl Into<String>, node: &impl Ranged) -> Result<T> {
        Err(file.error("raises", message, node).into())
    }

    /// The function `name` at the top level of a file of the library.
    fn function(&self, file: &Arc<SourceFile>, name: &str) -> Option<FunctionRef> {
        let mut numbers = file.definitions(name).iter().rev().copied();
        let statement = numbers.find(|&number| matches!(file.statement(number), Some(Stmt::FunctionDef(_))))?;
        Some(FunctionRef {
            file: Arc::clone(file),
            statement,
            method: None,
            class: None,
            scripted: false,
        })
    }
}
