//! Graphs for notebooks.

use std::io::Write;
use std::process::{Command, Stdio};

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the text of a graph with operators in bold, and places in source in grey.
pub(super) fn graph(text: &str) -> String {
    let line = |line: &str| {
        let (code, place) = match line.find(" # ") {
            Some(at) => line.split_at(at),
            None => (line, ""),
        };
        let code = match code.split_once(" = ") {
            Some((left, right)) => {
                let end = right.find(['(', '[', ' ']).unwrap_or(right.len());
                let (operator, rest) = right.split_at(end);
                format!("{} = <b>{}</b>{}", escaped(left), escaped(operator), escaped(rest))
            }
            None => escaped(code),
        };
        match place {
            "" => code,
            place => format!("{code}<span style=\"color:gray\">{}</span>", escaped(place)),
        }
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    format!("<pre>{}</pre>", lines.join("\n"))
}

/// Returns the SVG image that Graphviz draws; `None` if it is not installed or fails.
pub(super) fn svg(dot: &str) -> Option<String> {
    let mut child = Command::new("dot")
        .arg("-Tsvg")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take()?;
    let text = dot.to_owned();
    // Written by a thread, so that a full pipe cannot block both sides.
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().ok()?;
    let _ = writer.join();
    let svg = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(svg)
}
