//! `jit-reduce`: shrinks an input while a command keeps failing on it.

mod command;
mod tensors;
mod torchscript;

use crate::reduce::bisect::{Bisection, first_failing_rewrite};
use crate::reduce::{Candidate, Reducer, Reduction};
use crate::streams;
use crate::streams::tell;
use crate::{Failure, print_failure, tracing_to_stderr};
use clap::Parser;
use command::command_fails;
use frazil::Session;
use frazil::passes::pass::LastRewrite;
use frazil_syntax::TemporaryFolder;
use frazil_tensor_ir::text::is_text_file;
use std::path::{Path, PathBuf};
use tensors::TensorInput;

/// Shrinks an input while a command keeps failing on it: removes nodes, blocks, outputs, inputs, constants and types; in modules also methods,
/// attributes, submodules and tensors; in functions of the tensor IR also parts of loop nests.
///
/// jit-reduce bad.ir -o small.ir -- jit-opt {} --pass-pipeline=cse --verify-each
///
/// With --pass-pipeline it does not shrink the input, but finds the first rewrite of these passes after which the command fails:
///
/// jit-reduce good.ir --pass-pipeline=constant-propagation,cse -o bad.ir -- ./check.sh {}
#[derive(Parser, Debug)]
#[command(name = "jit-reduce", version, max_term_width = 110)]
struct Options {
    /// An .ir, .pt, .py or .tensors file. Its kind is recognised by its content
    input: PathBuf,
    /// Where to write the smallest input that still fails; with --pass-pipeline, the IR after the rewrite that makes the command fail
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Run these passes, and find by bisection the rewrite after which the command fails
    #[arg(long, value_name = "PIPELINE")]
    pass_pipeline: Option<String>,
    /// The exit status that counts as a failure; every status except 0 if absent
    #[arg(long, value_name = "N")]
    status: Option<i32>,
    /// Count the command as failing only if it also prints this text
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// Seconds after which the command is killed. It does not count as failing then
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    timeout: u64,
    /// Maximum number of runs of the command
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    max_runs: usize,
    /// The command. {} in its arguments stands for the file; without {}, the file is the last argument
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs `jit-reduce` on the arguments of the process. Returns its exit status.
pub fn main() -> u8 {
    main_with(Session::new)
}

/// Runs the program with the caller's session, as the tool of a compiler that is built on Frazil. `session` returns a session with its
/// operators and passes.
pub fn main_with(session: impl Fn() -> Session) -> u8 {
    let options: Options = match streams::arguments() {
        Ok(options) => options,
        Err(status) => return status,
    };
    tracing_to_stderr();
    crate::leave::report_file_size();
    match run(&options, &session()) {
        Ok(()) => 0,
        Err(failure) => print_failure(&failure, &options.input),
    }
}

/// An input that the tool reduces.
trait Input: Clone {
    /// Extension of the file that the command is run on.
    const EXTENSION: &'static str;

    /// Returns the total number of nodes.
    fn nodes(&self) -> usize;

    /// Writes the input to a file.
    fn write(&self, path: &Path) -> Result<(), Failure>;

    /// Runs at most `limit` rewrites of a pipeline. Returns the last one if there are as many.
    fn run_passes(&mut self, pipeline: &str, limit: u64) -> Result<Option<LastRewrite>, Failure>;

    /// Reduces every part of the input once.
    fn reduce(self, search: &mut Search<'_, Self>) -> Result<Self, Failure>;
}

fn run(options: &Options, session: &Session) -> Result<(), Failure> {
    match is_text_file(&options.input) {
        true => run_on(options, TensorInput::read(&options.input, session)?),
        false => run_on(options, session.load_any(&options.input)?),
    }
}

fn run_on<I: Input>(options: &Options, mut input: I) -> Result<(), Failure> {
    let folder = TemporaryFolder::create().map_err(|e| Failure::io("write", Path::new("a temporary folder"), e))?;
    let file = folder.path().join("candidate").with_extension(I::EXTENSION);
    let fails = |input: &I| -> Result<bool, Failure> {
        input.write(&file)?;
        command_fails(options, &file)
    };
    if let Some(pipeline) = &options.pass_pipeline {
        return bisect(options, &input, pipeline, &fails);
    }
    if !fails(&input)? {
        return Err(Failure::Other(
            "the command does not fail on the input as it is, so that there is nothing to keep".to_owned(),
        ));
    }
    let before = input.nodes();
    let mut search = Search {
        options,
        fails: &fails,
        runs: 0,
        has_progress: true,
    };
    // A smaller part may make others unused.
    while search.has_progress && search.runs < options.max_runs {
        search.has_progress = false;
        input = input.reduce(&mut search)?;
    }
    tell(format_args!(
        "{before} nodes became {} in {} runs\n",
        input.nodes(),
        search.runs
    ));
    Ok(())
}

/// Finds the first rewrite of `pipeline` after which the command fails, and writes the IR after that rewrite.
fn bisect<I: Input>(
    options: &Options,
    input: &I,
    pipeline: &str,
    fails: &dyn Fn(&I) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let found = first_failing_rewrite(|limit| {
        let mut rewritten = input.clone();
        let last = rewritten.run_passes(pipeline, limit)?;
        Ok::<_, Failure>((fails(&rewritten)?, last))
    })?;
    let (rewrite, last) = match found {
        Bisection::Found { rewrite, last } => (rewrite, last),
        Bisection::FailsBefore => {
            let message = "the command fails before any rewrite: the passes are not at fault";
            return Err(Failure::Other(message.to_owned()));
        }
        Bisection::NeverFails => {
            let message = "the command does not fail on what the whole pipeline leaves";
            return Err(Failure::Other(message.to_owned()));
        }
    };
    let mut rewritten = input.clone();
    rewritten.run_passes(pipeline, rewrite)?;
    rewritten.write(&options.output)?;
    let last = last.map_or_else(String::new, |last| format!(": {last}"));
    tell(format_args!("rewrite {rewrite} makes the command fail{last}\n"));
    Ok(())
}

/// State that the steps of the search for a smaller input share.
struct Search<'o, I> {
    options: &'o Options,
    /// A function that writes an input to a file, runs the command on it, and returns true if the command fails.
    fails: &'o dyn Fn(&I) -> Result<bool, Failure>,
    runs: usize,
    /// Whether a part of the input has become smaller, while other parts may depend on it.
    has_progress: bool,
}

impl<I: Input> Search<'_, I> {
    /// Reduces `part` of an input, and writes the input with the smallest part to the output file. `with` returns the input with another part, if that
    /// is possible. Parts that `accepts` rejects are not tried.
    fn part<S: Candidate>(
        &mut self,
        part: &S,
        accepts: impl Fn(&S) -> bool,
        with: impl Fn(S) -> Option<I>,
    ) -> Result<S, Failure> {
        let mut failure = None;
        let mut test = |candidate: &S| {
            let input = accepts(candidate).then(|| with(candidate.clone())).flatten();
            let failed = input.map_or(Ok(false), |input| (self.fails)(&input));
            failed.unwrap_or_else(|error| {
                failure.get_or_insert(error);
                false
            })
        };
        let runs_left = self.options.max_runs.saturating_sub(self.runs);
        let Reduction { smallest, runs } = Reducer::new(&mut test, runs_left).reduce(part);
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.runs += runs;
        if let Some(input) = with(smallest.clone()) {
            input.write(&self.options.output)?;
        }
        Ok(smallest)
    }
}
