//! `jit-opt`: transforms TorchScript, as `mlir-opt` does MLIR.

mod ranges;
#[cfg(feature = "codegen")]
mod tensors;

use crate::progress::Progress;
#[cfg(feature = "codegen")]
use crate::tuning_file;
use crate::{Failure, print_failure, streams, tracing_to_stderr};
use clap::{Parser, ValueEnum};
use frazil::passes::manager::{PrintOptions, Report, Timing};

#[cfg(feature = "codegen")]
use frazil::{CompileOptions, Emit, InputSpec, NativePlan, TensorFunction};
use frazil::{FreezeOptions, Limits, Loaded, PassOptions, SaveOptions, Session, write_atomically};
#[cfg(feature = "codegen")]
use frazil_ir::{
    TypeKind,
    names::Names,
    types::{TypeStyle, display_type},
};
use ranges::{NamedRange, RangedShape};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Reads TorchScript (a .pt archive, .ir text or .py source), runs passes, and writes IR or native code.
#[derive(Parser, Debug)]
#[command(name = "jit-opt", version, max_term_width = 110)]
struct Options {
    /// An .ir, .pt, .py or .tensors file, or - for standard input. Its kind is recognised by its content
    input: PathBuf,
    /// Output file; standard output if absent or -. Its extension chooses what is written, unless --emit is given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to write
    #[arg(long, value_enum)]
    emit: Option<EmitKind>,
    /// Put the module into evaluation mode first. Functions and graphs have no mode
    #[arg(long)]
    eval: bool,
    /// Freeze as torch.jit.freeze does: attributes become constants, and the frozen graph is optimised
    #[arg(long)]
    freeze: bool,
    /// Optimise as torch.jit.optimize_for_inference does: freeze, then fuse operators and transpose weights, with operators that archives can hold
    #[arg(long, conflicts_with = "freeze")]
    optimize_for_inference: bool,
    /// Freeze, and keep these attributes, methods and dotted paths of submodules
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    preserve: Vec<String>,
    /// Skip the optimisations of frozen graphs that change rounding
    #[arg(long)]
    no_optimize_numerics: bool,
    /// Passes to run: 'inline,freeze{preserve=a,b},dce'. --list-passes lists them
    #[arg(long, value_name = "PIPELINE")]
    pass_pipeline: Option<String>,
    /// List the passes, with their options and an example of each, and exit
    #[arg(long, exclusive = true)]
    list_passes: bool,
    /// Run the pipeline of a reproducer, a file that --reproducer wrote
    #[arg(long, conflicts_with = "pass_pipeline")]
    run_reproducer: bool,
    /// Print the alias analysis instead of the IR: which values may alias, and which nodes write to them. With --freeze, also print why attributes
    /// were not frozen
    #[arg(long)]
    dump_alias_db: bool,
    /// Verify the IR after every pass
    #[arg(long)]
    verify_each: bool,
    /// Print the times of passes and functions, as a tree
    #[arg(long)]
    timing: bool,
    /// Print the statistics of passes
    #[arg(long)]
    pass_statistics: bool,
    /// Stop after N rewrites of all passes together, and print the last one. `jit-reduce --pass-pipeline` finds the rewrite that breaks a
    /// program
    #[arg(long, value_name = "N")]
    pass_limit: Option<u64>,
    /// If a pass fails or panics, write its input and pipeline to this file. --run-reproducer runs it
    #[arg(long, value_name = "FILE")]
    reproducer: Option<PathBuf>,
    /// Print the IR to standard error before these passes
    #[arg(long, value_delimiter = ',', value_name = "PASSES")]
    print_ir_before: Vec<String>,
    /// Print the IR to standard error after these passes
    #[arg(long, value_delimiter = ',', value_name = "PASSES")]
    print_ir_after: Vec<String>,
    /// Print the IR to standard error before every pass
    #[arg(long)]
    print_ir_before_all: bool,
    /// Print the IR to standard error after every pass
    #[arg(long)]
    print_ir_after_all: bool,
    /// Print the IR after a pass only when the pass changed it
    #[arg(long)]
    print_ir_on_change: bool,
    /// If a pass fails, print the IR that it leaves
    #[arg(long)]
    print_ir_on_failure: bool,
    /// Elide the data of constants with more elements than this in printed IR. Such IR cannot be read back
    #[arg(long, value_name = "N")]
    elide_constants_larger_than: Option<usize>,
    /// With --emit=code, print every method of the module instead of the one that --method names
    #[arg(long)]
    all_methods: bool,
    /// With --emit=code, list the constants of each function in comments after it
    #[arg(long)]
    code_constants: bool,
    /// The method to compile or to print as code; the function to make an archive of
    #[arg(long, default_value = "forward")]
    method: String,
    /// Disable the fusion of loop nests in native code, except of pointwise ones
    #[arg(long)]
    no_fusion: bool,
    /// With --emit=mlir: print the operators that each kernel computes, and their places in the source, as locations
    #[arg(long)]
    print_locations: bool,
    /// Shapes of the method's inputs, for native code: 1x3x224x224[:dtype],... In libraries, sizes may be names with ranges: B x N:int64
    #[arg(long, value_delimiter = ',', value_name = "SHAPES")]
    input_shape: Vec<RangedShape>,
    /// The range of a size of --input-shape, both bounds included: N=1..512. `?=1..512` is the range of each size `?`
    #[arg(long, value_name = "NAME=LOW..HIGH")]
    range: Vec<NamedRange>,
    /// The processor that native code is for: host, x86-64, x86-64-v3, x86-64-v4 or a name that LLVM knows
    #[arg(long, default_value = "host", value_name = "CPU")]
    target_cpu: String,
    /// Measure variants of kernels on this processor, and use the fastest. Results are kept in INPUT.tune, and not measured again
    #[arg(long)]
    tune: bool,
    /// Stop with an error where the input needs more than this: `untrusted` for the limits for untrusted input, and NAME=VALUE: memory (bytes, K, M, G),
    /// nodes, load-time, freeze-time, pass-time, compile-time, call-time (seconds), repetitions, elements
    #[arg(long, value_name = "LIMITS")]
    limits: Option<Limits>,
    /// Threads for passes and for compiling, and the number of threads that kernels are divided for
    #[arg(long, default_value_t = 1, value_name = "N")]
    threads: usize,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum EmitKind {
    /// The IR as text; a module's larger tensors go to a .safetensors file beside it
    Ir,
    /// A .pt archive
    Pt,
    /// The graphs as drawings, for Graphviz: `jit-opt model.pt --emit=dot | dot -Tsvg`
    Dot,
    /// TorchScript source: a method, as PyTorch's .code prints it
    Code,
    /// The method as loop nests and views over tensors, before any transformation; large constants go to a .safetensors file beside it
    Tensors,
    /// After fusion: the pattern of each loop nest, and the layouts of tensors that are not row-major
    Layout,
    /// The selected kernels in order, on buffers without addresses
    Schedule,
    /// The kernels with their memory: shapes, sizes, workspace
    #[value(alias = "plan")]
    Kernels,
    /// The kernels in MLIR
    Mlir,
    /// The kernels in LLVM IR
    Llvm,
    /// The kernels in assembly
    Asm,
    /// An object file
    Obj,
    /// A shared library, or a static one if the name ends in .a, and a C header
    Lib,
}

impl EmitKind {
    fn from_extension(path: &Path) -> Option<EmitKind> {
        Some(match path.extension()?.to_str()? {
            "ir" => EmitKind::Ir,
            "pt" | "pth" => EmitKind::Pt,
            "dot" | "gv" => EmitKind::Dot,
            "tensors" => EmitKind::Tensors,
            "py" => EmitKind::Code,
            "mlir" => EmitKind::Mlir,
            "ll" => EmitKind::Llvm,
            "s" => EmitKind::Asm,
            "o" => EmitKind::Obj,
            "so" | "a" => EmitKind::Lib,
            _ => return None,
        })
    }
}

/// Runs the program. Returns its exit status.
pub fn main() -> u8 {
    main_with(Session::new)
}

/// Runs the program with the caller's session, as the tool of a compiler that is built on Frazil. `session` returns a session with its
/// operators and passes.
pub fn main_with(session: impl Fn() -> Session) -> u8 {
    // Handled separately, since it needs no input.
    if std::env::args().skip(1).eq(["--list-passes"]) {
        return match streams::print(pass_list(&session()).as_bytes()) {
            Ok(()) => 0,
            Err(failure) => print_failure(&failure, Path::new("-")),
        };
    }
    let options: Options = match streams::arguments() {
        Ok(options) => options,
        Err(status) => return status,
    };
    tracing_to_stderr();
    crate::leave::report_file_size();
    match run(&options, &session().with_limits(options.limits.unwrap_or_default())) {
        Ok(()) => 0,
        Err(failure) => print_failure(&failure, &options.input),
    }
}

fn run(options: &Options, session: &Session) -> Result<(), Failure> {
    let emit = output_kind(options)?;
    if options.print_locations && emit != EmitKind::Mlir {
        return Err(Failure::usage("--print-locations needs --emit=mlir".into()));
    }
    let progress = Progress::new();
    progress.stage("reading");
    #[cfg(feature = "codegen")]
    if TensorFunction::is_text_file(&options.input) {
        return tensors::run(options, session, &progress);
    }
    let mut loaded = session.load_any(&options.input)?;
    if let Loaded::Graphs(graphs) = &loaded {
        for (name, why) in &graphs.unit().refused {
            streams::tell(format_args!("warning: `{name}` is left out: {why}\n"));
        }
    }
    if let (true, Loaded::Model(model)) = (options.eval, &mut loaded) {
        model.eval();
    }
    let reproduced = match options.run_reproducer {
        true => Some(reproduced_pipeline(&options.input)?),
        false => None,
    };
    let pipeline = reproduced.as_ref().or(options.pass_pipeline.as_ref());
    let report = if options.freeze || options.optimize_for_inference || !options.preserve.is_empty() {
        progress.stage("freezing");
        let mut freeze = FreezeOptions::default();
        freeze.freeze.preserve.clone_from(&options.preserve);
        freeze.optimize_numerics = !options.no_optimize_numerics;
        let (pipeline, passes) = (pipeline.map_or("", String::as_str), pass_options(options));
        let (frozen, report) = if options.optimize_for_inference {
            loaded.optimize_for_inference_with_passes(&freeze, pipeline, &passes)?
        } else {
            loaded.freeze_with_passes(&freeze, pipeline, &passes)?
        };
        loaded = frozen;
        Some(report)
    } else if let Some(pipeline) = pipeline {
        progress.stage("running passes");
        Some(loaded.run_passes(pipeline, &pass_options(options))?)
    } else {
        None
    };
    if let Some(report) = report {
        print_report(options, &report);
    }
    if options.dump_alias_db {
        progress.done();
        let kept = if options.freeze || options.optimize_for_inference {
            loaded.kept_attributes_text()
        } else {
            String::new()
        };
        let text = loaded.alias_db_text() + &kept;
        loaded.check_unchanged()?;
        return write_text(options, &text);
    }
    if emit == EmitKind::Ir {
        progress.stage("writing");
        return write_ir(options, &loaded);
    }
    if emit == EmitKind::Pt {
        progress.stage("writing");
        return write_archive(options, &loaded);
    }
    if emit == EmitKind::Dot {
        progress.stage("writing");
        let text = loaded.dot_text();
        loaded.check_unchanged()?;
        return write_text(options, &text);
    }
    if emit == EmitKind::Code {
        progress.stage("writing");
        let method = (!options.all_methods).then_some(options.method.as_str());
        let text = loaded.code(method, options.code_constants)?;
        loaded.check_unchanged()?;
        return write_text(options, &text);
    }
    emit_native(options, emit, &loaded, &progress)
}

/// Prints the parts of the report on a run of passes that the options request, and its warnings.
fn print_report(options: &Options, report: &Report) {
    for warning in &report.warnings {
        streams::tell(format_args!("warning: {warning}\n"));
    }
    if let (Some(limit), Some(last)) = (options.pass_limit, &report.last_rewrite) {
        streams::tell(format_args!("rewrite {limit} is the last: {last}\n"));
    }
    if options.timing {
        print_timing(&report.timing);
    }
    if options.timing || options.pass_statistics {
        print_statistics(report);
    }
}

/// Returns the pipeline of the reproducer at `path`.
fn reproduced_pipeline(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::io("read", path, e))?;
    let pipeline = frazil::pipeline_of_reproducer(&text).map(str::to_owned);
    pipeline.ok_or_else(|| Failure::Other(format!("{} is no reproducer: it names no pipeline", path.display())))
}

fn output_kind(options: &Options) -> Result<EmitKind, Failure> {
    let file = options.output.as_deref().filter(|p| *p != Path::new("-"));
    match (options.emit, file) {
        (Some(kind), _) => Ok(kind),
        (None, None) => Ok(EmitKind::Ir),
        // A device, such as /dev/null, or a pipe.
        (None, Some(path)) if path.exists() && !path.is_file() => Ok(EmitKind::Ir),
        (None, Some(path)) => EmitKind::from_extension(path).ok_or_else(|| {
            Failure::usage(format!(
                "cannot tell what to write from the name `{}`: expected .ir, .pt, .py, .dot, .tensors, .mlir, .ll, .s, .o, .so or .a, or --emit",
                path.display()
            ))
        }),
    }
}

fn pass_options(options: &Options) -> PassOptions {
    PassOptions::default()
        .verify_each(options.verify_each || options.run_reproducer)
        .print(PrintOptions {
            before: options.print_ir_before.clone(),
            after: options.print_ir_after.clone(),
            before_all: options.print_ir_before_all,
            after_all: options.print_ir_after_all || (options.print_ir_on_change && options.print_ir_after.is_empty()),
            only_on_change: options.print_ir_on_change,
            on_failure: options.print_ir_on_failure,
        })
        .elide_constants_larger_than(options.elide_constants_larger_than)
        .threads(options.threads)
        .limit(options.pass_limit)
        .reproducer(options.reproducer.clone())
}

fn write_ir(options: &Options, loaded: &Loaded) -> Result<(), Failure> {
    match options.output.as_deref().filter(|p| *p != Path::new("-")) {
        // Without a limit the file can be read back: data that is not in the text is written beside it.
        Some(path) if loaded.is_model() && options.elide_constants_larger_than.is_none() => Ok(loaded.save_ir(path)?),
        _ => {
            let text = loaded.ir_text(options.elide_constants_larger_than);
            loaded.check_unchanged()?;
            write_text(options, &text)
        }
    }
}

fn write_archive(options: &Options, loaded: &Loaded) -> Result<(), Failure> {
    let model = loaded.to_model(&options.method)?;
    match options.output.as_deref().filter(|p| *p != Path::new("-")) {
        Some(path) => Ok(model.save(path, &SaveOptions::default())?),
        None => write_bytes(options, &model.save_bytes(&SaveOptions::default())?),
    }
}

fn write_text(options: &Options, text: &str) -> Result<(), Failure> {
    write_bytes(options, text.as_bytes())
}

fn write_bytes(options: &Options, bytes: &[u8]) -> Result<(), Failure> {
    match options.output.as_deref().filter(|p| *p != Path::new("-")) {
        Some(path) => write_atomically(path, |file| file.write_all(bytes)).map_err(|e| Failure::io("write", path, e)),
        None => streams::print(bytes),
    }
}

#[cfg(not(feature = "codegen"))]
fn emit_native(_: &Options, _: EmitKind, _: &Loaded, _: &Progress) -> Result<(), Failure> {
    Err(Failure::without_codegen())
}

#[cfg(feature = "codegen")]
fn emit_native(options: &Options, emit: EmitKind, loaded: &Loaded, progress: &Progress) -> Result<(), Failure> {
    progress.stage("compiling");
    if options.tune && options.input == Path::new("-") {
        let message = "--tune keeps what it measures beside the model, and standard input has no such place";
        return Err(Failure::usage(message.into()));
    }
    check_native(options, loaded)?;
    let fixed = options
        .input_shape
        .iter()
        .map(|s| Some(InputSpec::new(s.dtype, &s.fixed()?)));
    let inputs = match fixed.collect::<Option<Vec<InputSpec>>>() {
        Some(inputs) if options.range.is_empty() => inputs,
        _ => return emit_ranges(options, emit, loaded),
    };
    if matches!(emit, EmitKind::Tensors | EmitKind::Layout | EmitKind::Schedule) {
        return tensors::emit(options, emit, &loaded.tensors(&options.method, &inputs)?);
    }
    emit_plan(
        options,
        emit,
        &loaded.plan(&options.method, &inputs, &compile_options(options))?,
    )
}

/// Writes a library for ranges of sizes.
#[cfg(feature = "codegen")]
fn emit_ranges(options: &Options, emit: EmitKind, loaded: &Loaded) -> Result<(), Failure> {
    if emit != EmitKind::Lib {
        let message = "sizes with names or ranges are for libraries only: give numbers to --input-shape, or --emit=lib";
        return Err(Failure::usage(message.into()));
    }
    let path = library_path(options)?;
    let (inputs, ranges) =
        ranges::ranged(&options.input_shape, &options.range).map_err(|e| Failure::usage(e.to_string()))?;
    let library = loaded.plan_ranges(&options.method, &inputs, &ranges, &compile_options(options))?;
    Ok(library.write(path)?)
}

/// Returns the file to which a library is written.
#[cfg(feature = "codegen")]
fn library_path(options: &Options) -> Result<&Path, Failure> {
    let path = options.output.as_deref().filter(|p| *p != Path::new("-"));
    path.ok_or_else(|| Failure::usage("a library needs a file to be written to: -o libNAME.so".into()))
}

/// Returns the options for compiling.
#[cfg(feature = "codegen")]
fn compile_options(options: &Options) -> CompileOptions {
    CompileOptions::default()
        .target_cpu(options.target_cpu.clone())
        .threads(options.threads.max(1))
        .name(library_name(options))
        .fuse(!options.no_fusion)
        .tune(options.tune.then(|| tuning_file(&options.input)))
}

/// Writes a stage of code generation after the plan.
#[cfg(feature = "codegen")]
fn emit_plan(options: &Options, emit: EmitKind, plan: &NativePlan) -> Result<(), Failure> {
    let kind = match emit {
        EmitKind::Kernels => Emit::Kernels,
        EmitKind::Mlir if options.print_locations => Emit::LocatedMlir,
        EmitKind::Mlir => Emit::Mlir,
        EmitKind::Llvm => Emit::Llvm,
        EmitKind::Asm => Emit::Asm,
        EmitKind::Obj => Emit::Object,
        _ => return Ok(plan.write_library(library_path(options)?)?),
    };
    write_bytes(options, &plan.emit(kind)?)
}

/// Fails if native code cannot be made because an option is missing.
#[cfg(feature = "codegen")]
fn check_native(options: &Options, loaded: &Loaded) -> Result<(), Failure> {
    let graph = loaded.graph(&options.method)?;
    let name = options.input.display();
    let is_object = |value| matches!(graph.ctx().type_kind(graph.ty(value)), TypeKind::Class(_));
    let was_frozen = options.freeze || options.optimize_for_inference || !options.preserve.is_empty();
    let uses_object = graph
        .inputs()
        .iter()
        .any(|&v| is_object(v) && graph.uses(v).next().is_some());
    // Frozen modules have no training flag.
    let is_frozen = was_frozen || !matches!(loaded, Loaded::Model(model) if model.root().has_attribute("training"));
    if uses_object && !is_frozen {
        return Err(Failure::Other(format!(
            "{name} is not frozen, and native code is made of frozen modules: add --freeze"
        )));
    }
    let inputs: Vec<_> = graph.inputs().iter().copied().filter(|&v| !is_object(v)).collect();
    if inputs.len() != options.input_shape.len() {
        let names = Names::new(graph);
        let shown = inputs.iter().map(|&v| {
            format!(
                "{} : {}",
                names.show(v),
                display_type(graph.ctx(), graph.ty(v), TypeStyle::Declared)
            )
        });
        let shown: Vec<String> = shown.collect();
        return Err(Failure::Other(format!(
            "`{}` takes {} input(s): {}; {} shape(s) are given: give --input-shape=SIZES[:DTYPE],..., such as --input-shape=1x3x224x224",
            options.method,
            inputs.len(),
            shown.join(", "),
            options.input_shape.len()
        )));
    }
    Ok(())
}

/// Returns the prefix of a library's functions: the name of the file, without `lib`.
#[cfg(feature = "codegen")]
fn library_name(options: &Options) -> String {
    let path = options
        .output
        .as_deref()
        .filter(|p| *p != Path::new("-"))
        .unwrap_or(&options.input);
    let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("model");
    stem.strip_prefix("lib")
        .filter(|s| !s.is_empty())
        .unwrap_or(stem)
        .to_owned()
}

/// Formats the passes with their options and examples, as `--list-passes` prints them.
fn pass_list(session: &Session) -> String {
    let mut out = String::new();
    let registered = session.passes().passes().map(|pass| &**pass);
    for pass in registered.chain(frazil::passes::pipeline::STEPS) {
        out += &format!("{}\n    {}\n", pass.name, pass.summary);
        for option in pass.options {
            out += &format!("    {}={}  {}\n", option.name, option.default, option.doc);
        }
        for (what, text) in [("before", pass.before), ("after", pass.after)] {
            if !text.is_empty() {
                out += &format!("    {what}:\n");
                text.lines().for_each(|line| out += &format!("        {line}\n"));
            }
        }
    }
    out
}

fn print_timing(timing: &Timing) {
    fn print(timing: &Timing, depth: usize, whole: f64) {
        let seconds = timing.time.as_secs_f64();
        let share = if whole > 0.0 { 100.0 * seconds / whole } else { 0.0 };
        streams::tell(format_args!(
            "{:>10.3} ms {share:>5.1} %  {:indent$}{}\n",
            seconds * 1e3,
            "",
            timing.name,
            indent = 2 * depth
        ));
        for child in &timing.children {
            print(child, depth + 1, whole);
        }
    }
    print(timing, 0, timing.time.as_secs_f64());
}

fn print_statistics(report: &Report) {
    for (pass, name, n) in &report.statistics {
        streams::tell(format_args!("{n:>10} {name} ({pass})\n"));
    }
}
