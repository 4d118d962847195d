//! The driver as a process: `jit-opt` with the operators and the pass of this compiler.

use std::io::Write;
use std::process::{Command, Stdio};

fn toy_opt(arguments: &[&str], input: &str) -> (String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toy-opt"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

const TWO_SCALES: &str = "graph(%x : Tensor):
  %two : float = prim::Constant[value=2.]()
  %y : Tensor = toy::scale(%x, %two)
  %z : Tensor = toy::scale(%y, %two)
  return (%z)
";

#[test]
fn our_pass_is_in_its_pipelines() {
    let (out, err) = toy_opt(&["-", "--pass-pipeline=fuse-scales,dce", "--verify-each"], TWO_SCALES);
    assert_eq!(out.matches("toy::scale").count(), 1, "{out}{err}");
}

#[test]
fn our_pass_is_listed() {
    let (out, err) = toy_opt(&["--list-passes"], "");
    assert!(out.contains("fuse-scales\n") && out.contains("dce\n"), "{out}{err}");
}

#[cfg(not(feature = "native"))]
#[test]
fn native_code_is_refused_by_name() {
    let (_, err) = toy_opt(&["-", "--emit=asm", "--input-shape=3"], TWO_SCALES);
    assert!(err.contains("without code generation"), "{err}");
}
