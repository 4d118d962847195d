//! A tiny IR: a graph is a list of numbers, and a program is a list of named graphs. The environment is the largest valid number.

use frazil_pass_manager::ir::Function;
use frazil_pass_manager::registry::OptionKind;
use frazil_pass_manager::{Analysis, GraphPass, Ir, IrModule, ModulePass, OptionInfo, StandardPasses};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The marker of the IR.
#[derive(Clone, Copy, Debug)]
pub struct Numbers;

/// A graph.
pub type Graph = Vec<u64>;

/// Functions by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program(pub Vec<(String, Graph)>);

/// The number is larger than the environment allows.
#[derive(Debug, thiserror::Error)]
#[error("{0} is larger than {1}")]
pub struct TooLarge(pub u64, pub u64);

/// An error of a pass that only this IR has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the graph has no numbers")]
pub struct Empty;

impl Ir for Numbers {
    type Graph = Graph;
    type Module = Program;
    type Environment = u64;
    type Lookups = ();
    type VerifyError = TooLarge;
    type Error = Empty;

    fn verify(graph: &Graph, largest: &u64) -> Result<(), TooLarge> {
        match graph.iter().find(|n| *n > largest) {
            Some(n) => Err(TooLarge(*n, *largest)),
            None => Ok(()),
        }
    }

    fn node_count(graph: &Graph) -> usize {
        graph.len()
    }

    fn revision(graph: &Graph) -> u64 {
        let mut hasher = DefaultHasher::new();
        graph.hash(&mut hasher);
        hasher.finish()
    }
}

impl IrModule<Numbers> for Program {
    fn functions(&self) -> impl Iterator<Item = Function<'_, &Graph>> {
        self.0.iter().zip(0..).map(|((name, graph), id)| Function {
            id,
            name: Cow::from(name),
            graph,
        })
    }

    fn functions_mut(&mut self) -> impl Iterator<Item = Function<'_, &mut Graph>> {
        self.0.iter_mut().zip(0..).map(|((name, graph), id)| Function {
            id,
            name: Cow::Borrowed(name.as_str()),
            graph,
        })
    }

    fn revision(&self) -> u64 {
        self.0.len() as u64
    }
}

/// Declarations of passes, types of contexts and errors for this IR.
pub type AnyPass = frazil_pass_manager::AnyPass<Numbers>;
pub type PassContext<'a> = frazil_pass_manager::PassContext<'a, Numbers>;
pub type PassError = frazil_pass_manager::PassError<Numbers>;
pub type PassInfo = frazil_pass_manager::PassInfo<Numbers>;
pub type PassManager = frazil_pass_manager::PassManager<Numbers>;
pub type PassRegistry = frazil_pass_manager::PassRegistry<Numbers>;

static PASSES: &[&PassInfo] = &[
    &PassInfo {
        name: "halve",
        summary: "Halves even numbers other than 0.",
        before: "4",
        after: "2",
        options: &[],
        build: |_| AnyPass::graph(Halve),
    },
    &PassInfo {
        name: "add",
        summary: "Adds to each number.",
        before: "4",
        after: "5",
        options: &[
            OptionInfo {
                name: "by",
                kind: OptionKind::Int,
                default: "1",
                doc: "The summand.",
            },
            OptionInfo {
                name: "skip-zeros",
                kind: OptionKind::Bool,
                default: "false",
                doc: "Leaves zeros.",
            },
        ],
        build: |options| {
            AnyPass::graph(Add {
                by: u64::try_from(options.int("by")).unwrap_or(0),
                skip_zeros: options.bool("skip-zeros"),
            })
        },
    },
    &PassInfo {
        name: "double-length",
        summary: "Appends a copy of all numbers.",
        before: "4",
        after: "4 4",
        options: &[],
        build: |_| AnyPass::graph(DoubleLength),
    },
    &PassInfo {
        name: "append-sum",
        summary: "Appends the sum of all numbers.",
        before: "4 5",
        after: "4 5 9",
        options: &[],
        build: |_| AnyPass::graph(AppendSum),
    },
    &PassInfo {
        name: "drop-functions",
        summary: "Removes functions without numbers.",
        before: "",
        after: "",
        options: &[],
        build: |_| AnyPass::module(DropFunctions),
    },
    &PassInfo {
        name: "panic",
        summary: "Panics.",
        before: "",
        after: "",
        options: &[],
        build: |_| AnyPass::graph(Panics),
    },
];

impl StandardPasses for Numbers {
    fn passes() -> &'static [&'static PassInfo] {
        PASSES
    }
}

struct Halve;

impl GraphPass<Numbers> for Halve {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        for n in graph.iter_mut().filter(|n| **n > 0 && n.is_multiple_of(2)) {
            if !cx.rewrite("numbers halved") {
                break;
            }
            *n /= 2;
        }
        Ok(())
    }
}

struct Add {
    by: u64,
    skip_zeros: bool,
}

impl GraphPass<Numbers> for Add {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        for n in graph.iter_mut().filter(|n| !self.skip_zeros || **n > 0) {
            *n += self.by;
            cx.count("numbers increased", 1);
        }
        Ok(())
    }
}

struct DoubleLength;

impl GraphPass<Numbers> for DoubleLength {
    fn run(&self, graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
        graph.extend_from_within(..);
        Ok(())
    }
}

/// The sum of the numbers of a graph.
pub struct Sum(pub u64);

impl Analysis<Numbers> for Sum {
    fn compute(graph: &Graph, cx: &mut PassContext<'_>) -> Sum {
        cx.count("sums computed", 1);
        Sum(graph.iter().sum())
    }
}

struct AppendSum;

impl GraphPass<Numbers> for AppendSum {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        if graph.is_empty() {
            return Err(PassError::Ir(Empty));
        }
        let sum = cx.analysis::<Sum>(graph);
        graph.push(sum.0);
        Ok(())
    }
}

struct DropFunctions;

impl ModulePass<Numbers> for DropFunctions {
    fn run(&self, module: &mut Program, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        module
            .0
            .retain(|(_, graph)| !graph.is_empty() || !cx.rewrite("functions dropped"));
        Ok(())
    }
}

struct Panics;

impl GraphPass<Numbers> for Panics {
    fn run(&self, _graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
        panic!("out of cheese");
    }
}

/// Returns the manager of a pipeline of these passes.
pub fn pipeline(text: &str) -> PassManager {
    PassManager::from_pipeline(&PassRegistry::standard(), text).unwrap()
}

/// Returns a program with these functions.
pub fn program(functions: &[(&str, &[u64])]) -> Program {
    let functions = functions
        .iter()
        .map(|(name, graph)| ((*name).to_owned(), graph.to_vec()));
    Program(functions.collect())
}
