//! Malicious texts: deep nesting, huge claims, cycles. Each is an error with its place, found in time proportional to the text's length.

use frazil_ir::{Context, Severity};
use frazil_syntax::{NoTensors, ParseError, ParseOptions, parse_any, parse_graph};
use std::sync::Arc;

const DEEP: usize = 100_000;

fn refused(text: &str) -> ParseError {
    let parsed = parse_any(&Arc::new(Context::new()), text, ParseOptions::default(), &NoTensors);
    match parsed {
        Ok(_) => panic!("accepted: {}", text.get(..200).unwrap_or(text)),
        Err(error) => error,
    }
}

fn first_code(text: &str) -> &'static str {
    let error = refused(text);
    let mut errors = error.diagnostics.iter().filter(|d| d.severity == Severity::Error);
    let first = errors.next().unwrap();
    assert!(first.labels.iter().all(|l| l.span.end as usize <= text.len()));
    first.code
}

fn nested(open: &str, inner: &str, close: &str) -> String {
    open.repeat(DEEP) + inner + &close.repeat(DEEP)
}

fn module(attribute: &str, rest: &str) -> String {
    format!(
        "frazil module 1\nroot object<0>\nmodule __torch__.N {{\n  attribute x : {attribute}\n}}\n{rest}\nobject<0> = __torch__.N {{\n  x = value<0>\n}}\n"
    )
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [
        ("(", ")"),
        ("List[", "]"),
        ("Future[", "]"),
        ("Dict(str, ", ")"),
        ("NamedTuple(a : ", ")"),
    ] {
        let text = format!("graph(%x : {}):\n  return ()\n", nested(open, "int", close));
        assert_eq!(first_code(&text), "nesting-too-deep", "{open}");
    }
    for mark in ["[]", "?"] {
        let text = format!("graph(%x : int{}):\n  return ()\n", mark.repeat(DEEP));
        assert_eq!(first_code(&text), "nesting-too-deep", "{mark}");
    }
    for (open, close) in [
        ("[", "]"),
        ("(", ")"),
        ("{", "}"),
        ("annotate(int, ", ")"),
        ("{1: ", "}"),
    ] {
        let value = nested(open, "1", close);
        let text = format!("graph():\n  %1 : Any = prim::Constant[value={value}]()\n  return ()\n");
        assert_eq!(first_code(&text), "nesting-too-deep", "{open}");
    }
    let blocks = "  %1 : int = prim::If(%c)\n    block0():\n".repeat(DEEP);
    assert_eq!(first_code(&format!("graph(%c : bool):\n{blocks}")), "nesting-too-deep");
    let graphs = "with prim::fork_0 = graph():\n   = prim::fork_0()\n  return ()\n".repeat(DEEP);
    let text = format!("graph():\n   = prim::fork_0()\n  return ()\n{graphs}");
    assert_eq!(first_code(&text), "nesting-too-deep");
}

#[test]
fn shared_values_do_not_nest_deeper_than_written_ones() {
    // Each contains the previous one: all references are backward.
    let mut chain = String::from("value<0> : Any[] = []\n");
    for i in 1..DEEP {
        chain += &format!("value<{i}> : Any[] = [value<{}>]\n", i - 1);
    }
    assert_eq!(first_code(&module("Any[]", &chain)), "nesting-too-deep");
    // Each contains the next one.
    let mut chain = String::new();
    for i in 0..DEEP {
        chain += &format!("value<{i}> : Any[] = [value<{}>]\n", i + 1);
    }
    assert_eq!(first_code(&module("Any[]", &chain)), "unknown-reference");
    let own = "value<0> : Any[] = [value<0>]\n";
    assert_eq!(first_code(&module("Any[]", own)), "unknown-reference");
}

#[test]
fn claimed_sizes_are_not_trusted() {
    for tensor in [
        "Float(1000000000, 1000000000, strides=[1000000000, 1], requires_grad=0) [1.]",
        "Float(9223372036854775807, 9223372036854775807, strides=[1, 1], requires_grad=0) storage<0>",
        "Float(1, strides=[1], requires_grad=0) storage<0> offset 9223372036854775807",
        "Float(-1, strides=[1], requires_grad=0) []",
    ] {
        let rest =
            format!("tensor<0> = {tensor}\nstorage<0> = 4 bytes \"00000000\"\nvalue<0> : Tensor[] = [tensor<0>]\n");
        assert_eq!(first_code(&module("Tensor[]", &rest)), "bad-module", "{tensor}");
    }
    let rest = "storage<0> = 9223372036854775807 bytes \"00\"\nvalue<0> : Any[] = []\n";
    assert_eq!(first_code(&module("Any[]", rest)), "bad-module");
}

#[test]
fn errors_take_no_longer_than_the_text() {
    // Many long and unknown names; suggestions compare with all known names.
    let long = "a".repeat(1 << 20);
    let text = format!("graph(%{long}b : Tensor):\n  return (%{long})\n");
    assert_eq!(first_code(&text), "undefined-value");
    let many: String = (0..DEEP).map(|i| format!("%u{i}, ")).collect();
    assert_eq!(
        first_code(&format!("graph():\n  = a::b({many}%x)\n  return ()\n")),
        "undefined-value"
    );
    // Every bracket might begin the end of a printed tensor.
    let lists = "[ ".repeat(DEEP);
    refused(&format!("graph():\n  %1 : Any = prim::Constant[value={lists}"));
    let lists = "  %1 : int[] = prim::Constant[value=[ 1]]()\n".repeat(DEEP);
    assert!(parse_graph(&Arc::new(Context::new()), &format!("graph():\n{lists}  return ()\n")).is_ok());
}
