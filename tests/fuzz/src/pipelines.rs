//! Pipelines of passes: any registered passes in any order, with options, on any program that can be read. The IR verifies after each pass, or the
//! pass fails with an error that is no bug of its own; what comes out prints, reads back and prints the same.
//!
//! The first line of an input is the pipeline: its text behind `# pipeline: `, as in reproducers, or bytes that choose passes and options. The program
//! follows, as source or `.ir` text.

use super::choices::Choices;
use super::program;
use frazil::passes::{OptionKind, PassError, PassInfo, PassRegistry};
use frazil::{Error, Loaded, PassOptions};

/// Most passes of a pipeline.
const MOST: usize = 10;
/// Most pipelines within pipelines; a few fewer than the parser reads.
const NESTED: usize = 8;
/// Names for options that take some.
const NAMES: [&str; 8] = ["forward", "f", "x", "training", "fc", "conv.weight", "nothing", "a,b"];

/// Runs a pipeline.
///
/// # Panics
/// When a pass panics or leaves IR that does not verify, or what comes out does not print and read back.
pub fn run(input: &[u8]) {
    let session = program::session();
    let (line, text) = program::split(input);
    let Some(loaded) = program::load(&session, text) else {
        return;
    };
    let written = std::str::from_utf8(line)
        .ok()
        .and_then(|l| l.strip_prefix("# pipeline: "));
    if written.is_some_and(has_large_number) {
        return;
    }
    let mut choices = Choices::new(line);
    let mut loaded = match loaded {
        // Several graphs have no text that reads back.
        Loaded::Graphs(graphs) if graphs.unit().functions().count() != 1 || choices.byte() % 2 == 1 => {
            Loaded::Model(graphs.to_model())
        }
        other => other,
    };
    let pipeline = match written {
        Some(text) => text.to_owned(),
        None => chosen(session.passes(), &mut choices, MOST, NESTED),
    };
    let options = PassOptions::default().verify_each(true);
    match loaded.run_passes(&pipeline, &options) {
        Ok(_) => reads_back(&session, &loaded, &pipeline),
        Err(Error::Pass(error)) => {
            let text = error.to_string();
            if let PassError::Panicked(_) | PassError::Verify { .. } = error.root() {
                panic!("pipeline {pipeline}: {text}");
            }
        }
        Err(error) => {
            let text = error.to_string();
            assert!(written.is_some(), "pipeline {pipeline}: {text}");
        }
    }
}

/// Whether there is a number of four digits: so many repetitions or copies are asked for, and take their time.
fn has_large_number(text: &str) -> bool {
    text.as_bytes().windows(4).any(|w| w.iter().all(u8::is_ascii_digit))
}

fn reads_back(session: &frazil::Session, loaded: &Loaded, pipeline: &str) {
    let once = loaded.ir_text(None);
    let again = session.load_bytes("/nowhere/printed.ir".as_ref(), once.clone().into_bytes());
    let again =
        again.unwrap_or_else(|error| panic!("pipeline {pipeline}: printed text does not read back: {error}\n{once}"));
    let twice = again.ir_text(None);
    assert!(
        once == twice,
        "pipeline {pipeline}: printing is not stable:\n{once}\n{twice}"
    );
}

/// A pipeline of at most `most` steps, with pipelines nested at most `nested` deep.
fn chosen(passes: &PassRegistry, choices: &mut Choices<'_>, most: usize, nested: usize) -> String {
    let known: Vec<&PassInfo> = passes.passes().map(|p| &**p).collect();
    let mut text = Vec::new();
    while choices.any_left() && text.len() < most {
        // The last numbers are for the steps that run a pipeline.
        let pass = match choices.below(known.len() + if nested > 0 { 2 } else { 0 }) {
            n if n == known.len() => format!("methods({})", chosen(passes, choices, 2, nested - 1)),
            n if n > known.len() => {
                let inner = |choices: &mut Choices<'_>| chosen(passes, choices, 3, nested - 1);
                format!("repeat{{max={}}}({})", 1 + choices.below(5), inner(choices))
            }
            n => format!("{}{}", known[n].name, options(known[n], choices)),
        };
        text.push(pass);
    }
    text.join(",")
}

fn options(pass: &PassInfo, choices: &mut Choices<'_>) -> String {
    let mut given = Vec::new();
    for option in pass.options {
        let value = match (choices.below(3), option.kind) {
            (0, _) => continue,
            (n, OptionKind::Bool) => (n == 1).to_string(),
            (_, OptionKind::Int) => choices.below(40).to_string(),
            (_, OptionKind::Count) => (1 + choices.below(8)).to_string(),
            (_, OptionKind::List) => choices.pick(&NAMES).to_string(),
        };
        given.push(format!("{}={value}", option.name));
    }
    match given.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", given.join(" ")),
    }
}
