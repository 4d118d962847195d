//! The command that decides whether an input fails.

use super::Options;
use crate::Failure;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs the command on `file`, and returns true if it fails as the options require.
pub(super) fn command_fails(options: &Options, file: &Path) -> Result<bool, Failure> {
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
