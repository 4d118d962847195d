//! The `frazil-codes` program: plans the kernels of models for many shapes, and compiles them to a code library.

mod template;

use crate::case::Case;
use crate::failure::{Failure, print_failure};
use crate::{streams, tracing_to_stderr};
use clap::Parser;
use frazil::{CodeLibraryBuilder, Engine, EngineOptions, Session, Tensor, Value, write_atomically};
use frazil_ir::DType;
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::value_from_json;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;
use template::{Instance, instances};

/// Makes a code library: kernels that are compiled in advance, with their sizes as arguments
#[derive(Parser, Debug)]
#[command(name = "frazil-codes", version)]
struct Options {
    /// The library to be written
    out: PathBuf,
    /// Templates (.py), and folders with model.pt and case.json, whose kernels the library will have
    #[arg(required = true)]
    sources: Vec<PathBuf>,
    /// Only for these processors: x86-64-v3 or x86-64-v4. Default: both
    #[arg(long = "level", value_name = "CPU")]
    levels: Vec<String>,
    /// Print what was planned
    #[arg(long)]
    verbose: bool,
}

/// Something whose kernels are collected.
enum Work {
    Template(PathBuf, Instance),
    /// A folder with a model and its calls.
    Model(PathBuf),
}

/// First sizes that the tensors of a recorded call get besides their own.
const BATCHES: [i64; 3] = [1, 2, 5];

/// Runs the program on the arguments of the process. Returns its exit status.
pub fn main() -> u8 {
    let options: Options = match streams::arguments() {
        Ok(options) => options,
        Err(status) => return status,
    };
    tracing_to_stderr();
    match run(&options) {
        Ok(()) => 0,
        Err(failure) => print_failure(&failure, &options.out),
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let start = Instant::now();
    let mut work = Vec::new();
    for path in &options.sources {
        if path.extension().is_none_or(|e| e != "py") {
            work.push(Work::Model(path.clone()));
            continue;
        }
        let text = std::fs::read_to_string(path).map_err(|e| Failure::io("read", path, e))?;
        let found = instances(&text).map_err(|why| Failure::Other(format!("{}: {why}", path.display())))?;
        work.extend(found.into_iter().map(|instance| Work::Template(path.clone(), instance)));
    }
    let builder = planned(options, work)?;
    let counts = builder.counts();
    let counts: Vec<String> = counts.iter().map(|(level, n)| format!("{n} for {level}")).collect();
    let seconds = start.elapsed().as_secs_f64();
    streams::tell(format_args!(
        "kernels: {}, planned in {seconds:.1} s\n",
        counts.join(", ")
    ));
    let bytes = builder.compile()?;
    write_atomically(&options.out, |file| file.write_all(&bytes)).map_err(|e| Failure::io("write", &options.out, e))?;
    let seconds = start.elapsed().as_secs_f64();
    streams::tell(format_args!(
        "{}: {} bytes, in {seconds:.1} s\n",
        options.out.display(),
        bytes.len()
    ));
    Ok(())
}

/// Collects the kernels of `work` on all cores.
fn planned(options: &Options, mut work: Vec<Work>) -> Result<CodeLibraryBuilder, Failure> {
    let mut builder = CodeLibraryBuilder::new();
    if !options.levels.is_empty() {
        builder = builder.levels(&options.levels.iter().map(String::as_str).collect::<Vec<_>>());
    }
    // The last is taken first.
    work.reverse();
    let work = Mutex::new(work);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let results = std::thread::scope(|scope| {
        let run = || {
            let (session, mut builder) = (Session::new(), builder.clone());
            loop {
                let next = work.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
                match next {
                    Some(next) => add(&mut builder, &session, &next, options)?,
                    None => return Ok(builder),
                }
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect::<Vec<_>>()
    });
    for result in results {
        let result: Result<CodeLibraryBuilder, Failure> =
            result.map_err(|_| Failure::Other("a thread that planned kernels panicked".to_owned()))?;
        builder.merge(result?);
    }
    Ok(builder)
}

/// Adds the kernels of `work`. A call that cannot be compiled as one is left out.
fn add(builder: &mut CodeLibraryBuilder, session: &Session, work: &Work, options: &Options) -> Result<(), Failure> {
    match work {
        Work::Template(path, instance) => {
            let mut model = session.script(path, &instance.source, &[])?.to_model("net")?;
            model.eval();
            let mut engine = model.engine(&EngineOptions::default())?;
            for call in &instance.calls {
                let args = call.iter().map(|(dtype, sizes)| zeros(*dtype, sizes));
                let args = args.collect::<Result<Vec<_>, _>>()?;
                let what = || format!("{} ({}) {call:?}", path.display(), instance.values);
                add_call(builder, &mut engine, ("forward", &args), options, &what);
            }
        }
        Work::Model(folder) => {
            let file = folder.join("case.json");
            let (case, tensors) = (Case::read(&file)?, Tensors::beside(&file)?);
            let methods: Vec<String> = case.calls.iter().filter_map(|call| call.method.clone()).collect();
            let methods = [methods, vec![case.method.clone()]].concat();
            let mut kept = EngineOptions::default().methods(methods).eval(true);
            kept.preserve = case.preserve;
            let mut engine = session.engine(folder.join("model.pt"), &kept)?;
            for call in &case.calls {
                let method = call.method.as_ref().unwrap_or(&case.method);
                let args = call.args.iter().map(|arg| value_from_json(arg, &tensors));
                let args = args.collect::<Result<Vec<_>, _>>()?;
                let what = || format!("{} {method}", folder.display());
                add_call(builder, &mut engine, (method, &args), options, &what);
                for batch in BATCHES {
                    let args = args.iter().map(|arg| with_first_size(arg, batch));
                    let args = args.collect::<Result<Vec<_>, Failure>>()?;
                    add_call(builder, &mut engine, (method, &args), options, &what);
                }
            }
        }
    }
    Ok(())
}

fn add_call(
    builder: &mut CodeLibraryBuilder,
    engine: &mut Engine,
    (method, args): (&str, &[Value]),
    options: &Options,
    what: &dyn Fn() -> String,
) {
    let before: usize = builder.counts().iter().map(|(_, n)| n).sum();
    let added = builder.add(engine, method, args);
    let after: usize = builder.counts().iter().map(|(_, n)| n).sum();
    match added {
        Ok(()) if !options.verbose => {}
        Ok(()) => streams::tell(format_args!("{}: {} new kernels\n", what(), after - before)),
        Err(error) if options.verbose => streams::tell(format_args!("{}: left out: {error}\n", what())),
        Err(_) => {}
    }
}

fn zeros(dtype: DType, sizes: &[i64]) -> Result<Value, Failure> {
    Ok(Tensor::zeros(dtype, sizes).map_err(frazil::Error::from)?.into())
}

/// Returns zeros of the same shape as `value` with another first size, if it is a tensor with dimensions, or else `value`.
fn with_first_size(value: &Value, size: i64) -> Result<Value, Failure> {
    let Some(tensor) = value.as_tensor().filter(|t| !t.sizes().is_empty()) else {
        return Ok(value.clone());
    };
    let mut sizes = tensor.sizes().to_vec();
    if let Some(first) = sizes.first_mut() {
        *first = size;
    }
    zeros(tensor.dtype(), &sizes)
}
