//! `jit-reduce`: shrinks an input while a command keeps failing on it.

use crate::reduce::{Reducer, Reduction};
use crate::streams;
use crate::streams::tell;
use crate::{Failure, print_failure, tracing_to_stderr};
use clap::Parser;
use frazil::ir::{FunctionId, Graph, Module};
use frazil::passes::pass::LastRewrite;
use frazil::{Loaded, Session};
use frazil::{PassOptions, write_atomically};
use frazil_syntax::TemporaryFolder;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Shrinks an input while a command keeps failing on it: removes nodes, blocks, outputs, inputs, constants and types; in modules also methods,
/// attributes, submodules and tensors.
///
/// jit-reduce bad.ir -o small.ir -- jit-opt {} --pass-pipeline=cse --verify-each
///
/// With --pass-pipeline it does not shrink the input, but finds the first rewrite of these passes after which the command fails:
///
/// jit-reduce good.ir --pass-pipeline=constant-propagation,cse -o bad.ir -- ./check.sh {}
#[derive(Parser, Debug)]
#[command(name = "jit-reduce", version, max_term_width = 110)]
struct Options {
    /// An .ir, .pt or .py file. Its kind is recognised by its content
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

fn run(options: &Options, session: &Session) -> Result<(), Failure> {
    let mut loaded = session.load_any(&options.input)?;
    let folder = TemporaryFolder::create().map_err(|e| Failure::io("write", Path::new("a temporary folder"), e))?;
    let file = folder.path().join("candidate.ir");
    let fails = |text: &str| -> Result<bool, Failure> {
        std::fs::write(&file, text).map_err(|e| Failure::io("write", &file, e))?;
        command_fails(options, &file)
    };
    if let Some(pipeline) = &options.pass_pipeline {
        return bisect(options, &loaded, pipeline, &fails);
    }
    if !fails(&loaded.ir_text(None))? {
        return Err(Failure::Other(
            "the command does not fail on the input as it is, so that there is nothing to keep".to_owned(),
        ));
    }
    let before = nodes(&loaded);
    let mut search = Search {
        options,
        fails: &fails,
        runs: 0,
    };
    // A smaller body no longer uses some attributes and methods, which may make others unused.
    loop {
        let runs = search.runs;
        let text = loaded.ir_text(None);
        loaded = search.members(loaded)?;
        loaded = search.bodies(loaded)?;
        let settled = search.runs == runs || loaded.ir_text(None) == text;
        if settled || search.runs >= options.max_runs || matches!(loaded, Loaded::Graphs(_)) {
            break;
        }
    }
    tell(format_args!(
        "{before} nodes became {} in {} runs\n",
        nodes(&loaded),
        search.runs
    ));
    Ok(())
}

/// Finds the first rewrite of `pipeline` after which the command fails, and writes the IR after that rewrite.
fn bisect(
    options: &Options,
    loaded: &Loaded,
    pipeline: &str,
    fails: &dyn Fn(&str) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    // The output of the pipeline after `rewrites` of them, whether the command fails on it, and the last rewrite if
    // there were as many.
    let after = |rewrites: u64| -> Result<(String, bool, Option<LastRewrite>), Failure> {
        let mut loaded = loaded.clone();
        let limited = PassOptions::default().limit(Some(rewrites));
        let report = loaded.run_passes(pipeline, &limited)?;
        let text = loaded.ir_text(None);
        let failed = fails(&text)?;
        Ok((text, failed, report.last_rewrite))
    };
    if after(0)?.1 {
        let message = "the command fails before any rewrite: the passes are not at fault";
        return Err(Failure::Other(message.to_owned()));
    }
    // The command does not fail after `good` rewrites, and fails after `bad`.
    let (mut good, mut bad) = (0, 1);
    let mut found = loop {
        let (text, failed, last) = after(bad)?;
        match (failed, last) {
            (true, last) => break (text, last),
            (false, None) => {
                let message = "the command does not fail on what the whole pipeline leaves";
                return Err(Failure::Other(message.to_owned()));
            }
            (false, Some(_)) => (good, bad) = (bad, bad * 2),
        }
    };
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        let (text, failed, last) = after(middle)?;
        match failed {
            true => (bad, found) = (middle, (text, last)),
            false => good = middle,
        }
    }
    let (text, last) = found;
    write_atomically(&options.output, |f| f.write_all(text.as_bytes()))
        .map_err(|e| Failure::io("write", &options.output, e))?;
    let last = last.map_or_else(String::new, |last| format!(": {last}"));
    tell(format_args!("rewrite {bad} makes the command fail{last}\n"));
    Ok(())
}

/// Returns the total number of nodes in all functions of the input.
fn nodes(loaded: &Loaded) -> usize {
    functions(loaded).iter().map(|(_, g)| g.all_nodes().len()).sum()
}

/// State that the steps of the search for a smaller input share.
struct Search<'o> {
    options: &'o Options,
    /// A function that writes a text to a file, runs the command on it, and returns true if the command fails.
    fails: &'o dyn Fn(&str) -> Result<bool, Failure>,
    runs: usize,
}

impl Search<'_> {
    fn runs_left(&self) -> usize {
        self.options.max_runs.saturating_sub(self.runs)
    }

    /// Writes the smallest input found so far to the output file.
    fn write(&self, loaded: &Loaded) -> Result<(), Failure> {
        let text = loaded.ir_text(None);
        loaded.check_unchanged()?;
        write_atomically(&self.options.output, |f| f.write_all(text.as_bytes()))
            .map_err(|e| Failure::io("write", &self.options.output, e))
    }

    /// Returns a test that runs the command on a candidate. The first error is stored.
    fn asking<'a, S>(
        &'a self,
        failure: &'a mut Option<Failure>,
        text: impl Fn(&S) -> String + 'a,
    ) -> impl FnMut(&S) -> bool + 'a {
        move |candidate| {
            (self.fails)(&text(candidate)).unwrap_or_else(|e| {
                failure.get_or_insert(e);
                false
            })
        }
    }

    /// Removes members of a module that the failure does not need. Graphs without a module are returned unchanged.
    fn members(&mut self, loaded: Loaded) -> Result<Loaded, Failure> {
        let Loaded::Model(model) = &loaded else {
            return Ok(loaded);
        };
        let session = model.session().clone();
        let with = |module: &Module| with_module(&session, module.clone()).unwrap_or_else(|| loaded.clone());
        let mut failure = None;
        let mut test = self.asking(&mut failure, |m: &Module| with(m).ir_text(None));
        let (small, runs) = Reducer::new(&mut test, self.runs_left()).reduce_module(model.module());
        drop(test);
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.runs += runs;
        let small = with(&small);
        self.write(&small)?;
        Ok(small)
    }

    /// Reduces the graphs of the input one after the other.
    fn bodies(&mut self, mut loaded: Loaded) -> Result<Loaded, Failure> {
        for index in 0..functions(&loaded).len() {
            let Some(graph) = functions(&loaded).get(index).map(|(_, g)| (*g).clone()) else {
                continue;
            };
            let before = loaded.clone();
            let mut failure = None;
            let text = |g: &Graph| with_function(&before, index, g.clone()).ir_text(None);
            let mut ask = self.asking(&mut failure, text);
            // A method's signature must match its callers.
            let fixed = matches!(before, Loaded::Model(_));
            let signature = |g: &Graph| (g.inputs().len(), g.outputs().len());
            let mut test = |g: &Graph| (!fixed || signature(g) == signature(&graph)) && ask(g);
            let Reduction { graph: small, runs } = Reducer::new(&mut test, self.runs_left()).reduce(&graph);
            drop(ask);
            if let Some(failure) = failure {
                return Err(failure);
            }
            self.runs += runs;
            loaded = with_function(&before, index, small);
            self.write(&loaded)?;
        }
        Ok(loaded)
    }
}

/// Returns the graphs of the input with their ids.
fn functions(loaded: &Loaded) -> Vec<(FunctionId, &Graph)> {
    let unit = match loaded {
        Loaded::Model(model) => &model.module().unit,
        Loaded::Graphs(graphs) => graphs.unit(),
    };
    unit.functions().map(|(id, f)| (id, &f.graph)).collect()
}

/// Returns a model that consists of `module`; `None` if the module belongs to another session.
fn with_module(session: &Session, module: Module) -> Option<Loaded> {
    frazil::Model::new(session.clone(), module).ok().map(Loaded::Model)
}

/// Returns the input with graph number `index` replaced by `graph`.
fn with_function(loaded: &Loaded, index: usize, graph: Graph) -> Loaded {
    let Some(id) = functions(loaded).get(index).map(|(id, _)| *id) else {
        return loaded.clone();
    };
    match loaded {
        Loaded::Model(model) => {
            let mut module = Module::clone(model.module());
            module.unit.function_mut(id).graph = graph;
            with_module(model.session(), module).unwrap_or_else(|| loaded.clone())
        }
        Loaded::Graphs(graphs) => {
            let mut unit = graphs.unit().clone();
            unit.function_mut(id).graph = graph;
            Loaded::Graphs(frazil::Graphs::of_unit(graphs.session().clone(), unit))
        }
    }
}

/// Runs the command on `file`, and returns true if it fails as the options require.
fn command_fails(options: &Options, file: &Path) -> Result<bool, Failure> {
    let place = file.display().to_string();
    let mut words: Vec<String> = options.command.iter().map(|w| w.replace("{}", &place)).collect();
    if !options.command.iter().any(|w| w.contains("{}")) {
        words.push(place);
    }
    let Some((program, arguments)) = words.split_first() else {
        return Ok(false);
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| Failure::io("run", Path::new(program), e))?;
    // Both are read concurrently, so that neither fills up.
    let readers: Vec<_> = [
        child.stdout.take().map(|p| Box::new(p) as Box<dyn Read + Send>),
        child.stderr.take().map(|p| Box::new(p) as Box<dyn Read + Send>),
    ]
    .into_iter()
    .flatten()
    .map(|mut pipe| {
        std::thread::Builder::new().spawn(move || {
            let mut bytes = Vec::new();
            // A stream that cannot be read counts as empty.
            let _ = pipe.read_to_end(&mut bytes);
            bytes
        })
    })
    .collect();
    if readers.iter().any(Result::is_err) {
        // A pipe would not be read, and the command could block forever.
        let _ = child.kill();
        let _ = child.wait();
        let error = readers.into_iter().find_map(Result::err);
        let error = error.unwrap_or_else(|| std::io::Error::other("no thread"));
        return Err(Failure::io(
            "start a thread to read the output of",
            Path::new(program),
            error,
        ));
    }
    let end = Instant::now() + Duration::from_secs(options.timeout);
    let status = loop {
        match child
            .try_wait()
            .map_err(|e| Failure::io("wait for", Path::new(program), e))?
        {
            Some(status) => break Some(status),
            None if Instant::now() > end => {
                // It may have ended by itself meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let output: Vec<u8> = readers
        .into_iter()
        .flatten()
        .flat_map(|r| r.join().unwrap_or_default())
        .collect();
    let Some(status) = status else { return Ok(false) };
    let failed = match options.status {
        Some(wanted) => status.code() == Some(wanted),
        None => !status.success(),
    };
    let said = options
        .message
        .as_ref()
        .is_none_or(|text| String::from_utf8_lossy(&output).contains(text.as_str()));
    Ok(failed && said)
}
