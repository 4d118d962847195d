//! Symbols and extents: text, rules, and what passes keep of them.

use frazil_pass_manager::{PassManager, PassRegistry};
use frazil_syntax::render;
use frazil_tensor_ir::TensorIr;
use frazil_tensor_ir::extent::{Extent, Symbol};
use frazil_tensor_ir::text::{parse, print};
use frazil_tensor_ir::verify::verify;
use proptest::prelude::*;

/// A function with every way of using symbols.
const ALL: &str = r#"symbols { B in [1, 8] = 2, N in [2, 512] = 16 }
func @f(%0: float32[B = 2, N = 16, 4], %1: float32[B = 2, N = 16, 4], %2: int64[N = 16]) {
  %3 = constant float32[4] [1.0, 2.0, 3.0, 4.0]
  %4 = nest float32[B = 2, N = 16, 4] for d0 < 2, d1 < 16, d2 < 4 {
    x0 = %0[d0, d1, d2]
    x1 = %1[d0, d1, d2]
    x2 = %3[d2]
    v0: float32 = x0
    v1: float32 = x1
    v2: float32 = x2
    v3: float32 = fma v0, v1, v2
  }
  %5 = reshape float32[B*N = 32, 4] %4
  %6 = view float32[4, B*N = 32] %5[d1, d0]
  %7 = nest float32[B*N = 32] for d0 < 32 reduce d1 < 4 {
    x0 = %6[d1, d0]
    v0: float32 = x0
    combine add float32
  }
  %8 = gather float32[N = 16, 4] %5[%2[d0], d1] raise ""
  %9 = view float32[floordiv(N + 1, 2) = 8, 4] %8[2*d0, d1]
  %10 = view float32[2*N - 3 = 29] %7[d0]
  %11 = nest float32[max(N, B) = 16] for d0 < 16 {
    v0: float32 = const 1.0
  }
  return %9, %10, %11
}
"#;

#[test]
fn extents_are_read_as_they_are_printed() {
    let function = parse(ALL).unwrap_or_else(|e| panic!("{}", render("f", ALL, &e.diagnostics, false)));
    // The operands of `max` are printed in the order of the symbols.
    assert_eq!(
        print(&function.name, &function.graph),
        ALL.replace("max(N, B)", "max(B, N)")
    );
    let symbol = &function.graph.symbols()[1];
    assert_eq!(
        (symbol.name.as_str(), symbol.min, symbol.max, symbol.representative),
        ("N", 2, 512, 16)
    );
}

#[test]
fn written_forms_are_canonical() {
    let cases = [
        ("2*(N + 1) = 34", "2*N + 2 = 34"),
        ("N + N = 32", "2*N = 32"),
        ("ceildiv(N, 3) = 6", "floordiv(N + 2, 3) = 6"),
        ("floordiv(4*N, 2) = 32", "2*N = 32"),
        ("min(4, N, min(N, 9)) = 4", "min(N, 4) = 4"),
        ("N - N + 4", "4"),
        ("-3 + N*N = 253", "N*N - 3 = 253"),
    ];
    for (written, canonical) in cases {
        let text = format!("symbols {{ N in [2, 512] = 16 }}\nfunc @f(%0: float32[{written}]) {{\n  return %0\n}}\n");
        let function = parse(&text).unwrap_or_else(|e| panic!("{}", render("f", &text, &e.diagnostics, false)));
        assert_eq!(print("f", &function.graph), text.replace(written, canonical));
    }
}

/// The error of a text with symbols B and N whose body is `body`.
fn error(symbols: &str, body: &str) -> String {
    let text = format!("symbols {{ {symbols} }} func @f({body} }}");
    let error = parse(&text).expect_err(&text);
    render("f.tensors", &text, &error.diagnostics, false)
}

#[test]
fn mistakes_are_errors() {
    let symbols = "B in [1, 8] = 2, N in [2, 512] = 16";
    let input = |ty: &str| format!("%0: float32[{ty}]) {{ return %0");
    let sum = |a: &str, b: &str, result: &str| {
        format!(
            "%0: float32[{a}], %1: float32[{b}]) {{ %2 = nest float32[{result}] for d0 < 16 {{ x0 = %0[d0] x1 = %1[d0] \
             v0: float32 = x0 v1: float32 = x1 v2: float32 = add v0, v1 }} return %2"
        )
    };
    let deep = format!("{}N{} = 16", "(".repeat(100_000), ")".repeat(100_000));
    let cases = [
        (symbols, input("M = 16"), "a symbol that is defined before"),
        (symbols, input("N = 17"), "extent N is not 17 for the representatives"),
        (symbols, input("N"), "an extent and its size such as `N = 16`"),
        (symbols, input("2 - 3"), "a size"),
        (symbols, input("N - 3 = 13"), "extent N - 3 is -1 if B = 1, N = 2"),
        (symbols, input("floordiv(N, 16) = 1"), "transformations treat as fixed"),
        (symbols, input("floordiv(N, 0) = 1"), "a division by a number that is not positive"),
        (symbols, input("floordiv(N, N - 2) = 1"), "a division by a number that is not positive"),
        (symbols, input("floordiv(N) = 1"), "of two extents"),
        (symbols, input("round(N) = 1"), "of two extents"),
        (symbols, input("9223372036854775807*N*2 = 1"), "does not fit 64 bits"),
        (symbols, input("N*N*N*N*N*N*N*N*N = 1"), "8 factors"),
        (symbols, input(&deep), "at most 16 levels"),
        ("N in [2, 512] = 16, N in [2, 512] = 16", input("N = 16"), "symbol N is defined twice"),
        ("N in [2, 8] = 16", input("N = 16"), "does not contain its representative"),
        ("N in [17, 20] = 16", input("N = 16"), "does not contain its representative"),
        ("min in [2, 20] = 16", input("16"), "`min` is not a name of a symbol"),
        ("N in [2, 20] = 16, M in [2, 16] = 16", sum("N = 16", "M = 16", "N = 16"), "it reads 16 elements of dimension 0 of %1, which has 2 if N = 16, M = 2"),
        ("N in [2, 20] = 16", sum("N = 16", "N = 16", "max(N, 17) - 1 = 16"), "which has 2 if N = 2"),
        (
            symbols,
            "%0: float32[N = 16]) { %1 = constant float32[N = 16] [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0] return %1".to_owned(),
            "a constant has extents",
        ),
        (
            symbols,
            "%0: float32[N = 16, B = 2]) { %1 = reshape float32[2*N = 32] %0 return %1".to_owned(),
            "a reshape of",
        ),
        (
            "N in [2, 20] = 16, M in [2, 16] = 16",
            "%0: float32[N = 16], %1: float32[M = 16]) { %2 = nest float32[] reduce d0 < 16 { x0 = %0[d0] x1 = %1[d0] \
             v0: float32 = x0 v1: float32 = x1 v2: float32 = mul v0, v1 combine add float32 } return %2"
                .to_owned(),
            "a reduction iterates over",
        ),
        (
            symbols,
            "%0: float32[N = 16]) { %1 = constant int64[2] [0, 1] %2 = gather float32[N = 16] %0[%1[d0]] raise \"\" return %2".to_owned(),
            "leaves the tensor of its indices",
        ),
    ];
    for (symbols, body, expected) in cases {
        let shown = error(symbols, &body);
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    // What is not known is not required.
    let valid = [
        sum("16", "N = 16", "N = 16"),
        sum("N = 16", "N = 16", "16"),
        "%0: float32[N = 16, B = 2]) { %1 = reshape float32[32] %0 return %1".to_owned(),
        "%0: float32[N = 16], %1: float32[15]) { %2 = view float32[N = 16] %0[d0] return %2".to_owned(),
    ];
    for body in valid {
        let text = format!("symbols {{ {symbols} }} func @f({body} }}");
        parse(&text).unwrap_or_else(|e| panic!("{}", render("f", &text, &e.diagnostics, false)));
    }
}

/// Returns the function after a pipeline.
fn run(pipeline: &str, text: &str) -> String {
    let mut function = parse(text).unwrap_or_else(|e| panic!("{}", render("f", text, &e.diagnostics, false)));
    let registry: PassRegistry<TensorIr> = PassRegistry::standard();
    let mut manager = PassManager::from_pipeline(&registry, pipeline).unwrap();
    manager.verify_each(true);
    manager.run_on_graph(&mut function.graph, &()).unwrap();
    function.graph.compact();
    print(&function.name, &function.graph)
}

#[test]
fn passes_keep_extents() {
    let text = "symbols { N in [2, 512] = 16 }
func @f(%0: float32[N = 16, 4]) {
  %1 = view float32[4, N = 16] %0[d1, d0]
  %2 = nest float32[4, N = 16] for d0 < 4, d1 < 16 {
    x0 = %1[d0, d1]
    v0: float32 = x0
    v1: float32 = exp v0
  }
  %3 = nest float32[4, N = 16] for d0 < 4, d1 < 16 {
    x0 = %2[d0, d1]
    v0: float32 = x0
    v1: float32 = neg v0
  }
  return %3
}
";
    let expected = "symbols { N in [2, 512] = 16 }
func @f(%0: float32[N = 16, 4]) {
  %1 = nest float32[4, N = 16] for d0 < 4, d1 < 16 {
    x0 = %0[d1, d0]
    v0: float32 = x0
    v1: float32 = exp v0
    v2: float32 = neg v1
  }
  return %1
}
";
    assert_eq!(run("simplify,materialize-views,fuse,merge-matmuls", text), expected);
    run("simplify,fold-constants,materialize-views,fuse,merge-matmuls", ALL);
}

#[test]
fn passes_do_not_replace_a_tensor_by_one_of_other_extents() {
    // For the representative, the view is the whole tensor, and the nest has a constant result.
    let text = "symbols { N in [16, 512] = 16 }
func @f(%0: float32[N = 16]) {
  %1 = view float32[16] %0[d0]
  %2 = nest int64[N = 16] for d0 < 16 {
    v0: int64 = index d0
  }
  return %1, %2
}
";
    assert_eq!(run("simplify,fold-constants", text), text);
    let fixed = text
        .replace("symbols { N in [16, 512] = 16 }\n", "")
        .replace("N = ", "");
    let folded = run("simplify,fold-constants", &fixed);
    assert!(
        folded.contains("constant int64[16]") && folded.contains("return %0"),
        "{folded}"
    );
}

#[test]
fn merged_matmuls_have_the_extents_of_their_parts() {
    let registry: PassRegistry<TensorIr> = PassRegistry::standard();
    let example = registry
        .passes()
        .find(|pass| pass.name == "merge-matmuls")
        .unwrap()
        .before;
    let text = format!("symbols {{ N in [2, 9] = 4 }}\n{example}")
        .replace("float32[2, 1, 3]", "float32[2, N = 4, 3]")
        .replace("float32[1, 2]", "float32[N = 4, 2]")
        .replace("d0 < 1", "d0 < 4");
    let merged = run("merge-matmuls", &text);
    assert!(
        merged.contains("= nest float32[2, N = 4, 2] for d0 < 2, d1 < 4"),
        "{merged}"
    );
    // Parts with other extents are not merged.
    let mixed = text.replacen("%2 = nest float32[N = 4, 2]", "%2 = nest float32[4, 2]", 1);
    assert!(!run("merge-matmuls", &mixed).contains("nest float32[2,"));
}

#[test]
fn subgraphs_and_compaction_keep_extents() {
    let mut graph = parse(ALL).unwrap().graph;
    let (part, _) = graph.subgraph(&Default::default(), &graph.outputs()[..1]);
    assert_eq!(verify(&part), []);
    assert!(print("f", &part).contains("view float32[floordiv(N + 1, 2) = 8, 4]"));
    let before = print("f", &graph);
    graph.compact();
    assert_eq!(print("f", &graph), before);
    graph.set_symbols(Vec::new());
    assert!(graph.ids().all(|id| graph.extents(id).is_none()));
    graph.set_extents(graph.outputs()[0], Some(vec![Extent::symbol(0)]));
    assert_eq!(graph.extents(graph.outputs()[0]), None);
    assert_eq!(graph.symbols(), [] as [Symbol; 0]);
}

proptest! {
    /// No text makes the parser panic, and what it accepts is printed and read as the same.
    #[test]
    fn mutated_extents_are_read_or_refused(extent in "[BN0-9+*(), -]{0,12}|(floordiv|ceildiv|min|max)\\([BN0-9+*, -]{1,8}\\)", size in 0i64..40) {
        let text = format!("symbols {{ B in [1, 8] = 2, N in [2, 512] = 16 }} func @f(%0: float32[{extent} = {size}]) {{ return %0 }}");
        if let Ok(function) = parse(&text) {
            let printed = print("f", &function.graph);
            let again = parse(&printed).map_err(|e| TestCaseError::fail(format!("{e}\n{printed}")))?;
            prop_assert_eq!(print("f", &again.graph), printed);
        }
    }
}
