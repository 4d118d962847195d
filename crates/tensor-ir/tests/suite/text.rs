//! The text form: what is printed is read as the same, and mistakes are errors with their places.

use frazil_runtime::entry::Entry;
use frazil_runtime::op::{Call, Results};
use frazil_runtime::registry::Registry;
use frazil_syntax::render;
use frazil_tensor_ir::text::{ParseOptions, parse, parse_with, print, read_file, write_file};
use proptest::prelude::*;
use std::sync::Arc;

/// A function with every operation that a text can define.
pub const ALL: &str = r#"func @all(%0: float32[2, 3, 4, 4], %1: int64[5], %2: bool[]) {
  %3 = constant float32[2, 3, 3, 3] [0.5, -0.0, 1e-20, inf, -inf, 0.1, 3.4028235e38, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0, 32.0, 33.0, 34.0, 35.0, 36.0, 37.0, 38.0, 39.0, 40.0, 41.0, 42.0, 43.0, 44.0, 45.0, 46.0, 47.0, 48.0, 49.0, 50.0, 51.0, 52.0, 53.0]
  %4 = nest float32[2, 2, 4, 4] for d0 < 2, d1 < 2, d2 < 4, d3 < 4 reduce d4 < 3, d5 < 3, d6 < 3 {
    x0 = %0[d0, d4, d2 + d5 - 1, d3 + d6 - 1] else 0.0
    x1 = %3[d1, d4, d5, d6]
    v0: float32 = x0
    v1: float32 = x1
    v2: float32 = mul v0, v1
    combine add float32
    epilogue
    y0 = %3[d1, 0, 0, 2]
    w0: float32 = acc
    w1: float32 = y0
    w2: float32 = add w0, w1
    w3: float32 = const 0.0
    w4: float32 = maximum w2, w3
  } from "aten::conv2d" at "net.py:3:8", "aten::relu"
  %5 = reshape float32[4, 16] %4
  %6 = view float32[16, 2] %5[2*d1 + 1, -d0 + 15]
  %7 = gather float32[5, 16] %5[%1[d0], d1] from_end raise "index {index} is out of bounds for dimension 0 with size {size}"
  %8 = nest float64[5] for d0 < 5 {
    x0 = %1[d0]
    v0: int64 = x0
    v1: int64 = index d0
    v2: int64 = xor v0, v1
    v3: float32 = cast v2
    v4: float32 = exp v3
    v5: bool = isnan v4
    v6: float32 = const nan
    v7: float32 = select v5, v6, v4
    v8: float32 = fma v7, v4, v3
    in float32
  }
  %9 = constant int64[3] [1, -9223372036854775808, 9223372036854775807]
  check %2 "a \"message\"\nof two lines"
  return %6, %7, %8, %8, %9
}
"#;

#[test]
fn every_operation_is_read_as_it_is_printed() {
    let function = parse(ALL).unwrap_or_else(|e| panic!("{}", render("all.tensors", ALL, &e.diagnostics, false)));
    assert_eq!(print(&function.name, &function.graph), ALL);
}

#[test]
fn names_are_free_and_comments_allowed() {
    let text = "// a comment\nfunc @\"a b\"(%7 : float32[2]) {  # another\n%3=reshape float32[1,2] %7\nreturn %3 }";
    let function = parse(text).unwrap();
    let printed = "func @\"a b\"(%0: float32[2]) {\n  %1 = reshape float32[1, 2] %0\n  return %1\n}\n";
    assert_eq!(print(&function.name, &function.graph), printed);
}

#[test]
fn large_constants_are_in_a_file_beside_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.tensors");
    let elements: Vec<String> = (0..100).map(|i| format!("{i}.0")).collect();
    let text = format!(
        "func @f() {{\n  %0 = constant float32[100] [{}]\n  return %0\n}}\n",
        elements.join(", ")
    );
    let function = parse(&text).unwrap();
    assert!(print("f", &function.graph).contains("constant float32[100] elided"));
    write_file(&path, "f", &function.graph).unwrap();
    let read = read_file(&path, None).unwrap();
    let constant = |g: &frazil_tensor_ir::TensorGraph| g.as_constant(g.outputs()[0]).unwrap().to_bytes().into_owned();
    assert_eq!(constant(&read.graph), constant(&function.graph));

    // A file of another text is noticed.
    let other = parse(&text.replace(" 7.0,", " 7.5,")).unwrap();
    let other_path = folder.path().join("g.tensors");
    write_file(&other_path, "g", &other.graph).unwrap();
    std::fs::copy(
        other_path.with_extension("safetensors"),
        path.with_extension("safetensors"),
    )
    .unwrap();
    let error = read_file(&path, None).unwrap_err().to_string();
    assert!(error.contains("does not belong to the text"), "{error}");
}

#[test]
fn mistakes_are_errors_with_their_places() {
    let cases = [
        ("", "`func`"),
        ("func @f(%0: float99[2]) { return %0 }", "a dtype such as `float32`"),
        (
            "func @f(%0: float32[2]) { return %1 }",
            "a tensor that is defined before",
        ),
        (
            "func @f(%0: float32[2], %0: float32[2]) { return %0 }",
            "a name that is not defined yet",
        ),
        ("func @f(%0: float32[-1]) { return %0 }", "an integer"),
        (
            "func @f(%0: float32[2]) { %1 = frob float32[2] %0 return %1 }",
            "`constant`",
        ),
        (
            "func @f(%0: float32[2]) { %1 = reshape float32[3] %0 return %1 }",
            "another number of elements",
        ),
        (
            "func @f(%0: float32[4]) { %1 = view float32[3] %0[2*d0] return %1 }",
            "a view leaves its tensor",
        ),
        (
            "func @f(%0: float32[4]) { %1 = view float32[2] %0[2*d1] return %1 }",
            "a loop that is defined before",
        ),
        (
            "func @f() { %0 = constant float32[3] [1.0] return %0 }",
            "as many elements",
        ),
        (
            "func @f() { %0 = constant int8[1] [1000] return %0 }",
            "each of its dtype",
        ),
        (
            "func @f() { %0 = constant float32[300] elided return %0 }",
            "printed without them",
        ),
        (
            "func @f() { %0 = constant float32[1] @\"x\" return %0 }",
            "the key of a tensor",
        ),
        ("func @f(%0: float32[2]) { return %0 } x", "the end of the text"),
        (
            "func @f(%0: float32[2]) { check %0 \"no\" return %0 }",
            "not a single bool",
        ),
        (
            "func @f(%0: float32[2]) { %1 = nest float32[2] for d0 < 2 { x0 = %0[d0] v0: float32 = x0 v1: float32 = x0 } return %1 }",
            "no two are equal",
        ),
        (
            "func @f(%0: float32[2]) { %1 = nest float32[2] for d0 < 2 { x0 = %0[d0 + 1] v0: float32 = x0 } return %1 }",
            "a read leaves %0",
        ),
        (
            "func @f(%0: float32[2]) { %1 = nest float32[2] for d0 < 2 { x0 = %0[9223372036854775807*d0] v0: float32 = x0 } return %1 }",
            "too large to be computed with",
        ),
    ];
    for (text, expected) in cases {
        let error = parse(text).expect_err(text);
        let shown = render("f.tensors", text, &error.diagnostics, false);
        assert!(shown.contains(expected), "{text}\n{shown}");
    }
}

/// A registry with an operator that calls may name, and one that changes its argument.
fn operators() -> Registry {
    let mut registry = Registry::new(Arc::default());
    let schemas = "mine::sort(Tensor self, int dim=-1, Tensor[] others=[], *, bool? stable=None, float[] levels=[], Scalar start=0, str mode=\"\", Device? device=None) -> (Tensor, Tensor)
mine::fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)
mine::nonzero(Tensor self) -> Tensor
";
    registry.add_schemas(schemas).unwrap();
    let kernel = |_: &Call<'_>| Ok(Results::new());
    registry.register("mine::sort", Entry::kernel(kernel).fixed_sizes());
    registry.register("mine::nonzero", Entry::kernel(kernel));
    registry.register("mine::fill_", Entry::kernel(kernel).fixed_sizes());
    registry
}

/// The schema of `mine::sort` as a string of a text.
const SORT: &str = r#""mine::sort(Tensor self, int dim=-1, Tensor[] others=[], *, bool? stable=None, float[] levels=[], Scalar start=0, str mode=\"\", Device? device=None) -> (Tensor, Tensor)""#;

#[test]
fn calls_of_operators_are_read_as_they_are_printed() {
    let registry = operators();
    let text = format!(
        r#"func @f(%0: float32[8], %1: float32[2]) {{
  %2 = call {SORT}(%0, -1, [%1, %0], true, [0.5, inf, -1e-20], complex 1.0 -2.5, "a \"b\"", device "cpu") -> (float32[8], int64[8]) from "mine::sort"
  %3 = result float32[8] %2 0
  %4 = result bool[] %2 2
  %5 = call {SORT}(%3, 0, [], none, [], 2, "", none) -> (float32[3, 0], int64[]) from "mine::sort"
  %6 = result int64[] %5 1
  check %4 "mine::sort"
  return %3, %6
}}
"#
    );
    let options = ParseOptions {
        operators: Some(&registry),
        ..ParseOptions::default()
    };
    let function =
        parse_with(&text, options).unwrap_or_else(|e| panic!("{}", render("f", &text, &e.diagnostics, false)));
    assert_eq!(print(&function.name, &function.graph), text);

    let call = |callee: &str, arguments: &str, results: &str| {
        format!(
            "func @f(%0: float32[8]) {{ %1 = call {callee}({arguments}) -> ({results}) %2 = result float32[8] %1 0 return %2 }}"
        )
    };
    let arguments = "%0, -1, [], none, [], 0, \"\", none";
    let shapes = "float32[8], int64[8]";
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases = [
        (
            call("\"mine::sort(Tensor self) -> Tensor\"", arguments, shapes),
            "which is registered",
        ),
        (call("\"mine::none() -> Tensor\"", "", shapes), "a registered operator"),
        (
            call("\"mine::nonzero(Tensor self) -> Tensor\"", "%0", "float32[8]"),
            "sizes do not depend on elements",
        ),
        (
            call(
                "\"mine::fill_(Tensor self, Scalar value) -> Tensor\"",
                "%0, 1",
                "float32[8]",
            ),
            "without side effects",
        ),
        (
            call(SORT, "%0", shapes),
            "arguments of the types that the schema states",
        ),
        (
            call(SORT, "%0, 1.5, [], none, [], 0, \"\", none", shapes),
            "arguments of the types that the schema states",
        ),
        (call(SORT, "%0, elided", shapes), "printed without it"),
        (call(SORT, &deep, shapes), "at most 8 lists"),
        (
            call(SORT, "%0, -1, [], none, [], 0, \"\", device \"tpu\"", shapes),
            "a device such as",
        ),
        (
            call(SORT, arguments, "float32[8]"),
            "as many results as the schema states",
        ),
        (
            call(SORT, arguments, "float32[8], int64[1152921504606846976, 8]"),
            "size in bytes",
        ),
        (call(SORT, arguments, "float32[7], int64[8]"), "no such result"),
    ];
    for (text, expected) in cases {
        let error = parse_with(&text, options).expect_err(&text);
        let shown = render("f.tensors", &text, &error.diagnostics, false);
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    let error = parse(&text).expect_err("there is no registry");
    assert!(error.to_string().contains("without a registry"), "{error}");
}

proptest! {
    /// No text makes the parser panic, and what it accepts is printed and read as the same.
    #[test]
    fn mutated_texts_are_read_or_refused(cut in 0usize..2500, insert in "[%a-z0-9\\[\\]{}<>=,.+* -]{0,4}", remove in 0usize..6) {
        let at = ALL.floor_char_boundary(cut.min(ALL.len()));
        let end = ALL.floor_char_boundary((at + remove).min(ALL.len()));
        let text = format!("{}{insert}{}", &ALL[..at], &ALL[end..]);
        if let Ok(mut function) = parse(&text) {
            // Dead tensors are not printed, and the others are numbered anew when the text is read.
            function.graph.compact();
            let printed = print(&function.name, &function.graph);
            let again = parse(&printed).map_err(|e| TestCaseError::fail(format!("{e}\n{printed}")))?;
            prop_assert_eq!(print(&again.name, &again.graph), printed);
        }
    }
}
