//! Random programs that run in the interpreter and natively.
//!
//! [`Program::new`] writes TorchScript source from a seed: tensors of several dtypes (including empty and 0-d ones), broadcasting, views and writes
//! through them, run-time scalars, branches, loops and lists. The writer computes a bound on the rounding error of each tensor, so that a larger
//! difference is a bug of an engine. [`shrink`] makes a failing program small.

mod run;
mod shrink;
mod write;

pub use run::{Failure, Ran, check};
pub use shrink::shrink;

use frazil::ir::DType;
use std::fmt::Write as _;

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    /// One line.
    Line(String),
    /// A compound statement: headers such as `if n > 2:` with the statements below them.
    Compound(Vec<(String, Vec<Statement>)>),
}

/// A tensor argument.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) dtype: DType,
    pub(crate) sizes: Vec<i64>,
}

/// A variable, and the tolerances for its elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returned {
    pub(crate) name: String,
    pub(crate) tolerance: f64,
    /// The tolerance after a call of `change`.
    pub(crate) changed: f64,
}

/// A program: a method `f` of tensors, an integer `n` and a float `s`. It returns a list of tensors and a list of integers, and may set attributes. The method
/// `change` writes to these and returns them; so it also shows with which results and arguments they share memory.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) seed: u64,
    pub(crate) arguments: Vec<Argument>,
    /// The arguments, to which the call may write.
    pub(crate) written: Vec<Returned>,
    /// The attributes.
    pub(crate) attributes: Vec<Returned>,
    pub(crate) body: Vec<Statement>,
    pub(crate) tensors: Vec<Returned>,
    pub(crate) integers: Vec<String>,
}

impl Program {
    /// Returns the program of a seed.
    pub fn new(seed: u64) -> Program {
        write::program(seed)
    }

    /// Returns the seed that it was made from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of statements.
    pub fn len(&self) -> usize {
        fn count(body: &[Statement]) -> usize {
            let each = |s: &Statement| match s {
                Statement::Line(_) => 1,
                Statement::Compound(parts) => 1 + parts.iter().map(|(_, body)| count(body)).sum::<usize>(),
            };
            body.iter().map(each).sum()
        }
        count(&self.body)
    }

    /// Returns true if there are no statements.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Returns the source.
    pub fn source(&self) -> String {
        fn lines(body: &[Statement], depth: usize, out: &mut String) {
            let indent = "    ".repeat(depth);
            if body.is_empty() {
                let _ = writeln!(out, "{indent}pass");
            }
            for statement in body {
                match statement {
                    Statement::Line(text) => {
                        let _ = writeln!(out, "{indent}{text}");
                    }
                    Statement::Compound(parts) => {
                        for (header, body) in parts {
                            let _ = writeln!(out, "{indent}{header}");
                            lines(body, depth + 1, out);
                        }
                    }
                }
            }
        }
        let parameters: Vec<String> = (0..self.arguments.len()).map(|i| format!("x{i}: Tensor")).collect();
        let parameters = parameters.join(", ");
        let names: Vec<&str> = self.tensors.iter().map(|r| r.name.as_str()).collect();
        let results = format!("[{}], [{}]", names.join(", "), self.integers.join(", "));
        let attributes: Vec<&str> = self.attributes.iter().map(|a| a.name.as_str()).collect();
        let mut out = String::from("class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n");
        for name in &attributes {
            let _ = writeln!(out, "        {name} = torch.zeros(2)");
        }
        let _ = writeln!(
            out,
            "\n    @torch.jit.export\n    def f(self, {parameters}, n: int, s: float):"
        );
        for (i, a) in self.arguments.iter().enumerate() {
            let _ = writeln!(out, "        # x{i}: {} {:?}", a.dtype, a.sizes);
        }
        lines(&self.body, 2, &mut out);
        let _ = writeln!(out, "        return {results}");
        if !attributes.is_empty() {
            let _ = writeln!(out, "\n    @torch.jit.export\n    def change(self):");
            for (i, name) in attributes.iter().enumerate() {
                let _ = writeln!(out, "        {name}.mul_(0.5).add_({i})");
            }
            let _ = writeln!(out, "        return [{}]", attributes.join(", "));
        }
        let _ = writeln!(out, "\nmodel = Net().eval()");
        out
    }
}

/// Checks the program of a seed. If the engines disagree, returns a description of the difference, with a reduced program.
///
/// # Errors
/// The description.
pub fn check_seed(seed: u64) -> Result<Ran, String> {
    let program = Program::new(seed);
    let failure = match check(&program) {
        Ok(ran) => return Ok(ran),
        Err(failure) => failure,
    };
    let small = shrink(
        program,
        |p| matches!(check(p), Err(other) if shrink::alike(&failure, &other)),
    );
    let how = check(&small).err().unwrap_or(failure);
    Err(format!("seed {seed}: {how}\n{}", small.source()))
}
