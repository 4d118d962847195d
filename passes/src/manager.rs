//! The pass manager: runs passes over a module or a graph, and watches them.
//!
//! A [`GraphPass`] works on one graph and runs on every function of a module; a [`ModulePass`] sees the module whole. The manager
//! verifies between passes, prints through an [`IrPrinter`] that the caller gives (this crate knows no text form), measures, and counts what passes
//! did. Analyses are kept between passes as long as the graph's revision stands.

use crate::alias_db::AliasDb;
use crate::pipeline::{PipelineError, parse_pipeline};
use crate::registry::PassRegistry;
use crate::support::operators::Operators;
use crate::{inline, support};
use frazil_ir::verify::VerifyError;
use frazil_ir::{Graph, Module};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A pass over one graph.
pub trait GraphPass: Send + Sync {
    /// Rewrites `graph`, which is valid before and after.
    ///
    /// # Errors
    /// When the pass cannot do its work; the graph may then be half rewritten.
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError>;
}

/// A pass over a module.
pub trait ModulePass: Send + Sync {
    /// Rewrites `module`.
    ///
    /// # Errors
    /// When the pass cannot do its work; the module may then be half rewritten.
    fn run(&self, module: &mut Module, cx: &mut PassContext<'_>) -> Result<(), PassError>;

    /// What the pass does to a graph that belongs to no module. By default that is an error.
    ///
    /// # Errors
    /// When the pass needs a module.
    fn run_on_graph(&self, _graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
        Err(PassError::NeedsModule)
    }
}

/// A pass of either kind.
pub enum AnyPass {
    /// Over one graph.
    Graph(Box<dyn GraphPass>),
    /// Over a module.
    Module(Box<dyn ModulePass>),
}

impl AnyPass {
    /// A pass over graphs.
    pub fn graph(pass: impl GraphPass + 'static) -> AnyPass {
        AnyPass::Graph(Box::new(pass))
    }

    /// A pass over modules.
    pub fn module(pass: impl ModulePass + 'static) -> AnyPass {
        AnyPass::Module(Box::new(pass))
    }
}

/// Why a pipeline stopped.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The pass needs a module and was given a graph.
    #[error("the pass works on modules, and this is a graph without one")]
    NeedsModule,
    /// A pass left a graph that is not valid; a bug of the pass.
    #[error("in function {function}: {source}")]
    Verify {
        /// Which function.
        function: String,
        /// What is wrong.
        #[source]
        source: VerifyError,
    },
    /// See [`inline::InlineError`].
    #[error(transparent)]
    Inline(#[from] inline::InlineError),
    /// See [`FreezeError`](crate::FreezeError).
    #[error(transparent)]
    Freeze(#[from] crate::FreezeError),
    /// Within a pass of a pipeline.
    #[error("pass `{pass}` failed: {source}")]
    In {
        /// The pass, as the pipeline names it.
        pass: String,
        /// Why.
        #[source]
        source: Box<PassError>,
    },
}

impl PassError {
    /// The error without the names of the passes around it.
    pub fn root(&self) -> &PassError {
        let mut error = self;
        while let PassError::In { source, .. } = error {
            error = source;
        }
        error
    }
}

/// What passes see besides the graph: operators, analyses, counters.
pub struct PassContext<'a> {
    /// Schemas and evaluation of operators.
    pub operators: &'a dyn Operators,
    /// Numbers that the pass counts, by name: "nodes removed".
    statistics: IndexMap<&'static str, u64>,
    /// Which function is worked on; analyses are kept by it.
    current: Option<usize>,
    alias_dbs: HashMap<usize, (u64, Rc<AliasDb>)>,
}

impl<'a> PassContext<'a> {
    /// A context without analyses.
    pub fn new(operators: &'a dyn Operators) -> PassContext<'a> {
        PassContext {
            operators,
            statistics: IndexMap::new(),
            current: None,
            alias_dbs: HashMap::new(),
        }
    }

    /// Adds `n` to the statistic `name`.
    pub fn count(&mut self, name: &'static str, n: usize) {
        if n > 0 {
            *self.statistics.entry(name).or_default() += n as u64;
        }
    }

    /// The alias information of `graph`, computed anew unless what is known of the function at work is of this revision.
    pub fn alias_db(&mut self, graph: &Graph) -> Rc<AliasDb> {
        if let Some((revision, db)) = self.current.and_then(|f| self.alias_dbs.get(&f))
            && *revision == graph.revision()
        {
            return db.clone();
        }
        let db = Rc::new(AliasDb::new(graph, self.operators.catalogue()));
        if let Some(f) = self.current {
            self.alias_dbs.insert(f, (graph.revision(), db.clone()));
        }
        db
    }

    /// Runs `pass` on a graph of which nothing is known yet: for passes made of passes.
    ///
    /// # Errors
    /// Those of `pass`.
    pub fn run(&mut self, pass: &dyn GraphPass, graph: &mut Graph) -> Result<(), PassError> {
        let outer = self.current.take();
        let result = pass.run(graph, self);
        self.current = outer;
        result
    }
}

/// A module or a function of one, to be printed.
#[derive(Clone, Copy)]
pub enum IrRef<'a> {
    /// A module.
    Module(&'a Module),
    /// A graph and the qualified name of its function, empty for a bare graph.
    Graph(&'a str, &'a Graph),
}

/// Prints IR between passes; given by the caller, which knows a text form and where to write.
pub trait IrPrinter: Send + Sync {
    /// Prints `ir` under `header`: `IR after dce`.
    fn print(&self, header: &str, ir: IrRef<'_>);
}

/// When IR is printed.
#[derive(Clone, Debug, Default)]
pub struct PrintOptions {
    /// Before these passes.
    pub before: Vec<String>,
    /// After these passes.
    pub after: Vec<String>,
    /// Before every pass.
    pub before_all: bool,
    /// After every pass.
    pub after_all: bool,
    /// After-printing only when the pass changed something.
    pub only_on_change: bool,
    /// What a pass that fails leaves behind.
    pub on_failure: bool,
}

/// Time spent in a pass, and below it by function.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// What was timed.
    pub name: String,
    /// How long.
    pub time: Duration,
    /// Its parts.
    pub children: Vec<Timing>,
}

/// What a run of a pipeline has to tell.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The tree of times: the pipeline, its passes, their functions.
    pub timing: Timing,
    /// What passes counted: pass, name, number.
    pub statistics: Vec<(String, &'static str, u64)>,
}

struct Entry {
    name: String,
    pass: AnyPass,
}

/// A pipeline ready to run. See the [module documentation](self).
#[derive(Default)]
pub struct PassManager {
    entries: Vec<Entry>,
    verify_each: bool,
    print: PrintOptions,
    printer: Option<Box<dyn IrPrinter>>,
}

/// What a pipeline runs over.
enum Target<'m> {
    Module(&'m mut Module),
    Graph(&'m mut Graph),
}

impl Target<'_> {
    fn as_ref(&self) -> IrRef<'_> {
        match self {
            Target::Module(m) => IrRef::Module(m),
            Target::Graph(g) => IrRef::Graph("", g),
        }
    }

    /// Something that differs when a pass changed anything.
    fn fingerprint(&self) -> Vec<(u32, u64)> {
        match self {
            Target::Graph(g) => vec![(0, g.revision())],
            Target::Module(m) => {
                let functions = m.unit.functions().map(|(id, f)| (id.as_u32(), f.graph.revision()));
                functions
                    .chain([(m.unit.classes.len() as u32, m.object_count() as u64)])
                    .collect()
            }
        }
    }
}

impl PassManager {
    /// A pipeline without passes.
    pub fn new() -> PassManager {
        PassManager::default()
    }

    /// The pipeline that `text` describes; see [`crate::pipeline`].
    ///
    /// # Errors
    /// When the text names what there is not, or is malformed.
    pub fn from_pipeline(registry: &PassRegistry, text: &str) -> Result<PassManager, PipelineError> {
        let mut manager = PassManager::new();
        for entry in parse_pipeline(registry, text)? {
            let pass = (entry.info.build)(&entry.options);
            manager.entries.push(Entry { name: entry.text, pass });
        }
        Ok(manager)
    }

    /// Appends a pass; `name` is for messages.
    #[must_use]
    pub fn with(mut self, name: &str, pass: AnyPass) -> PassManager {
        self.add(name, pass);
        self
    }

    /// Appends a pass; `name` is for messages.
    pub fn add(&mut self, name: &str, pass: AnyPass) {
        self.entries.push(Entry {
            name: name.to_owned(),
            pass,
        });
    }

    /// Verifies every graph after every pass, schemas included.
    pub fn verify_each(&mut self, on: bool) {
        self.verify_each = on;
    }

    /// Prints IR with `printer` when `options` say so.
    pub fn print_ir(&mut self, options: PrintOptions, printer: Box<dyn IrPrinter>) {
        self.print = options;
        self.printer = Some(printer);
    }

    /// Names of the passes, with their options.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.entries.iter().map(|e| e.name.as_str())
    }

    /// Runs the pipeline on a module.
    ///
    /// # Errors
    /// That of the first pass that fails, or of verification.
    pub fn run(&self, module: &mut Module, operators: &dyn Operators) -> Result<Report, PassError> {
        self.run_on(Target::Module(module), operators)
    }

    /// Runs the pipeline on a graph that belongs to no module.
    ///
    /// # Errors
    /// That of the first pass that fails, or of verification; [`PassError::NeedsModule`] for passes over modules.
    pub fn run_on_graph(&self, graph: &mut Graph, operators: &dyn Operators) -> Result<Report, PassError> {
        self.run_on(Target::Graph(graph), operators)
    }

    fn run_on(&self, mut target: Target<'_>, operators: &dyn Operators) -> Result<Report, PassError> {
        let mut report = Report::default();
        report.timing.name = "pipeline".to_owned();
        let mut cx = PassContext::new(operators);
        let start = Instant::now();
        for entry in &self.entries {
            let short = entry.name.split('{').next().unwrap_or_default();
            let _span = tracing::info_span!("pass", name = short).entered();
            let named = |names: &[String]| names.iter().any(|n| n == short);
            if self.print.before_all || named(&self.print.before) {
                self.show("before", &entry.name, &target);
            }
            let old = target.fingerprint();
            let mut timing = Timing {
                name: entry.name.clone(),
                ..Timing::default()
            };
            let pass_start = Instant::now();
            let result = run_entry(entry, &mut target, &mut cx, &mut timing).and_then(|()| {
                if self.verify_each {
                    verify(&target, operators)
                } else {
                    Ok(())
                }
            });
            timing.time = pass_start.elapsed();
            report.timing.children.push(timing);
            for (name, n) in cx.statistics.drain(..) {
                report.statistics.push((entry.name.clone(), name, n));
            }
            if let Err(source) = result {
                if self.print.on_failure {
                    self.show("after failure of", &entry.name, &target);
                }
                return Err(PassError::In {
                    pass: entry.name.clone(),
                    source: Box::new(source),
                });
            }
            let wanted = self.print.after_all || named(&self.print.after);
            if wanted && (!self.print.only_on_change || target.fingerprint() != old) {
                self.show("after", &entry.name, &target);
            }
        }
        report.timing.time = start.elapsed();
        Ok(report)
    }

    fn show(&self, when: &str, pass: &str, target: &Target<'_>) {
        if let Some(printer) = &self.printer {
            printer.print(&format!("IR {when} {pass}"), target.as_ref());
        }
    }
}

fn run_entry(
    entry: &Entry,
    target: &mut Target<'_>,
    cx: &mut PassContext<'_>,
    timing: &mut Timing,
) -> Result<(), PassError> {
    match (&entry.pass, target) {
        (AnyPass::Graph(pass), Target::Graph(graph)) => {
            cx.current = Some(0);
            pass.run(graph, cx)
        }
        (AnyPass::Graph(pass), Target::Module(module)) => {
            let ctx = module.ctx().clone();
            for (id, function) in module.unit.functions_mut() {
                let start = Instant::now();
                cx.current = Some(id.as_u32() as usize);
                pass.run(&mut function.graph, cx)?;
                timing.children.push(Timing {
                    name: ctx.name(function.name).to_owned(),
                    time: start.elapsed(),
                    children: Vec::new(),
                });
            }
            Ok(())
        }
        (AnyPass::Module(pass), target) => {
            // Functions may be renumbered.
            cx.current = None;
            cx.alias_dbs.clear();
            match target {
                Target::Module(module) => pass.run(module, cx),
                Target::Graph(graph) => pass.run_on_graph(graph, cx),
            }
        }
    }
}

fn verify(target: &Target<'_>, operators: &dyn Operators) -> Result<(), PassError> {
    let check = |name: &str, graph: &Graph| {
        let result = support::subgraphs_and_self(graph).try_for_each(|g| g.verify(Some(operators.catalogue())));
        result.map_err(|source| PassError::Verify {
            function: name.to_owned(),
            source,
        })
    };
    match target {
        Target::Graph(graph) => check("", graph),
        Target::Module(module) => {
            let ctx = module.ctx();
            module
                .unit
                .functions()
                .try_for_each(|(_, f)| check(ctx.name(f.name), &f.graph))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::schema::Catalogue;
    use frazil_ir::{Builder, Context, types};
    use std::sync::{Arc, Mutex};

    struct AddsConstant;
    impl GraphPass for AddsConstant {
        fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
            let root = graph.root();
            Builder::at_end(graph, root).constant(1);
            cx.count("constants added", 1);
            Ok(())
        }
    }

    struct Breaks;
    impl GraphPass for Breaks {
        fn run(&self, graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
            let root = graph.root();
            let v = Builder::at_end(graph, root).constant(1);
            graph.set_type(v, types::STR);
            Ok(())
        }
    }

    #[derive(Clone, Default)]
    struct Headers(Arc<Mutex<Vec<String>>>);
    impl IrPrinter for Headers {
        fn print(&self, header: &str, _ir: IrRef<'_>) {
            self.0.lock().unwrap().push(header.to_owned());
        }
    }

    fn setting() -> (Catalogue, Graph) {
        let ctx = Arc::new(Context::new());
        (Catalogue::new(ctx.clone()), Graph::new(ctx))
    }

    #[test]
    fn verification_names_the_pass_that_broke_the_graph() {
        let (catalogue, mut graph) = setting();
        let mut manager = PassManager::new()
            .with("good", AnyPass::graph(AddsConstant))
            .with("bad", AnyPass::graph(Breaks));
        assert!(manager.run_on_graph(&mut graph.clone(), &catalogue).is_ok());
        manager.verify_each(true);
        let error = manager.run_on_graph(&mut graph, &catalogue).unwrap_err();
        assert!(
            error.to_string().starts_with("pass `bad` failed: in function"),
            "{error}"
        );
        assert!(matches!(error.root(), PassError::Verify { .. }));
    }

    #[test]
    fn printing_on_change_and_statistics() {
        let (catalogue, mut graph) = setting();
        let headers = Headers::default();
        let mut manager = PassManager::new()
            .with("add", AnyPass::graph(AddsConstant))
            .with("dce", AnyPass::graph(crate::dce::DeadCodeElimination::default()))
            .with("dce", AnyPass::graph(crate::dce::DeadCodeElimination::default()));
        let options = PrintOptions {
            after_all: true,
            only_on_change: true,
            ..PrintOptions::default()
        };
        manager.print_ir(options, Box::new(headers.clone()));
        let report = manager.run_on_graph(&mut graph, &catalogue).unwrap();
        assert_eq!(*headers.0.lock().unwrap(), ["IR after add", "IR after dce"]);
        assert_eq!(report.statistics[0], ("add".to_owned(), "constants added", 1));
        assert_eq!(report.timing.children.len(), 3);
    }
}
