//! Runs recorded cases as a user does: with `jit-run`.

use std::fs;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use frazil_recorded::RecordedError;
use frazil_recorded::case::{Case, read_json};
use frazil_recorded::compare::{self, Mismatch};
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::Outcome;

/// The engine that runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// The reference interpreter.
    Interp,
    /// Compiled code.
    Native,
}

impl Engine {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Interp, Self::Native];

    /// Returns the value of `--engine`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interp => "interp",
            Self::Native => "native",
        }
    }

    /// Returns the engine of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

/// The reason why a case does not pass.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The tool refused the model, with a summary of its message.
    #[error("refused: {0}")]
    Refused(String),
    /// The tool ended with an exit status other than 0 or 1: a panic, a signal, bad usage.
    #[error("{status}: {message}")]
    Crashed {
        /// The exit status.
        status: ExitStatus,
        /// A summary of its output to standard error.
        message: String,
    },
    /// The tool was killed after a timeout.
    #[error("no result within {0:?}")]
    Timeout(Duration),
    /// The tool's results cannot be read.
    #[error("unreadable results: {0}")]
    Unreadable(#[from] RecordedError),
    /// A call's result differs.
    #[error("call {call}: {mismatch}")]
    Differs {
        /// Index of the call.
        call: usize,
        /// The difference.
        mismatch: Mismatch,
    },
    /// An error of the system.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Runs a case on an engine with the given `jit-run` and the further options `more`, and compares all results.
pub fn run(case: &Case, engine: Engine, more: &[String], jit_run: &Path, limit: Duration) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let calls = calls_file(case, folder.path())?;
    let out = folder.path().join("out");
    fs::create_dir(&out)?;
    let mut command = Command::new(jit_run);
    command
        .arg(&case.model)
        .arg("--calls")
        .arg(&calls)
        .arg("--out")
        .arg(&out);
    command.arg(format!("--engine={}", engine.name())).args(more);
    let (status, message) = execute(command, &folder.path().join("stderr"), limit)?;
    match status.code() {
        Some(0) => {}
        Some(1) => return Err(Failure::Refused(message)),
        _ => return Err(Failure::Crashed { status, message }),
    }
    let results = results(&out)?;
    let expected = case.expected()?;
    if results.len() != expected.len() {
        return Err(unreadable(format!("{} results of {} calls", results.len(), expected.len())).into());
    }
    let tolerance = case.tolerance()?;
    for (call, (want, got)) in expected.iter().zip(&results).enumerate() {
        compare::outcomes(want, got, tolerance).map_err(|mismatch| Failure::Differs { call, mismatch })?;
    }
    Ok(())
}

fn unreadable(what: String) -> RecordedError {
    RecordedError::Case {
        case: "results.json".to_owned(),
        what,
    }
}

/// Reads the output of `jit-run --out`: the outcome of each call.
pub fn results(folder: &Path) -> Result<Vec<Outcome>, RecordedError> {
    let file = folder.join("results.json");
    if !file.exists() {
        return Err(unreadable("there is no results.json".into()));
    }
    let json = read_json(&file)?;
    let tensors = Tensors::open(&folder.join("tensors.safetensors"))?;
    tensors.check_pair(&json)?;
    let results = json.get("results").and_then(Json::as_array);
    let results = results.ok_or_else(|| unreadable("there is no `results`".into()))?;
    results
        .iter()
        .map(|result| Outcome::from_json(result, &tensors))
        .collect()
}

/// Writes the file for `--calls`: the case without its results, which the tool must not know.
fn calls_file(case: &Case, folder: &Path) -> std::io::Result<PathBuf> {
    let mut json = case.json.clone();
    for call in json.get_mut("calls").and_then(Json::as_array_mut).into_iter().flatten() {
        call.as_object_mut().map(|call| call.remove("result"));
    }
    let written = folder.join("case.json");
    fs::write(&written, json.to_string())?;
    let tensors = case.folder.join("tensors.safetensors");
    if tensors.exists() {
        std::os::unix::fs::symlink(tensors, folder.join("tensors.safetensors"))?;
    }
    Ok(written)
}

/// Runs a command with a time limit; returns its status and a summary of its output to standard error.
fn execute(mut command: Command, stderr: &Path, limit: Duration) -> Result<(ExitStatus, String), Failure> {
    // To a file rather than a pipe, which could fill up while we wait.
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(stderr)?)
        .spawn()?;
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Err(Failure::Timeout(limit));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let mut message = String::new();
    File::open(stderr)?.take(1 << 16).read_to_string(&mut message)?;
    Ok((status, summary(&message)))
}

/// Returns a message's first line; for one that announces a list, also the list's first entry, without its place.
fn summary(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(entry) if first.ends_with(':') => format!("{first} {}", entry.split(" at ").next().unwrap_or_default()),
        _ => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<(ExitStatus, String), Failure> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        execute(command, &folder.path().join("stderr"), limit)
    }

    #[test]
    fn the_first_line_of_a_message_is_kept() {
        let (status, message) = shell("echo; echo one >&2; echo two >&2; exit 1", Duration::from_secs(10)).unwrap();
        assert_eq!((status.code(), message.as_str()), (Some(1), "one"));
    }

    #[test]
    fn a_lists_first_entry_belongs_to_the_message() {
        let message = "error: operators without semantics:\n  aten::foo at a.py:1:2\n  aten::bar at a.py:2:2\n";
        assert_eq!(summary(message), "error: operators without semantics: aten::foo");
    }

    #[test]
    fn what_hangs_is_ended() {
        let ended = shell("exec sleep 60", Duration::from_millis(50));
        assert!(matches!(ended, Err(Failure::Timeout(_))), "{ended:?}");
    }
}
