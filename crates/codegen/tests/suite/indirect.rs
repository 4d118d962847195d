//! Reads at places that tensors name, and calls of kernels without programs, against the interpreter.

use frazil_codegen::backend::host_target;
use frazil_codegen::{BackendOptions, aot, compile};
use frazil_executor::RunError;
use frazil_ir::{Context, Graph};
use frazil_planner::tune::Tuning;
use frazil_planner::{ArgumentSpec, LowerOptions, ResultSpec, compile_graph};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::structured::TensorShape;
use frazil_runtime::{Registry, Tensor, Value};
use std::sync::Arc;

fn registry() -> Registry {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    registry
}

fn parse(registry: &Registry, text: &str) -> Graph {
    frazil_syntax::parse_graph(registry.ctx(), text)
        .unwrap_or_else(|e| panic!("{e:?}"))
        .graph
}

fn lowered(registry: &Registry, graph: &Graph, inputs: &[Tensor]) -> frazil_planner::Lowered {
    let specs = inputs.iter().map(|t| {
        ArgumentSpec::Tensor(TensorShape {
            dtype: t.dtype(),
            sizes: t.sizes().into(),
        })
    });
    let options = LowerOptions {
        name: "test".into(),
        target: host_target(),
        fuse: true,
        tuning: Tuning::default(),
        families: Vec::new(),
        packed: None,
        sizes: Default::default(),
        threads: 1,
    };
    compile_graph(graph, &specs.collect::<Vec<_>>(), registry, &options).unwrap_or_else(|e| panic!("{e}"))
}

/// Compiles the graph, runs it, and gives the bytes of its first result.
fn native(text: &str, inputs: &[Tensor]) -> Result<Vec<u8>, RunError> {
    let registry = registry();
    let graph = parse(&registry, text);
    let lowered = lowered(&registry, &graph, inputs);
    let mut exe = compile(&lowered.plan, &BackendOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let dense: Vec<Vec<u8>> = inputs.iter().map(|t| t.storage().bytes().to_vec()).collect();
    let inputs: Vec<&[u8]> = dense.iter().map(Vec::as_slice).collect();
    let mut outputs: Vec<Vec<u8>> = lowered.plan.outputs.iter().map(|p| vec![0xFF; p.bytes()]).collect();
    let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    exe.run(&inputs, &mut slices)?;
    match lowered.results.first() {
        Some(ResultSpec::Tensor(i)) => Ok(outputs.swap_remove(*i as usize)),
        other => panic!("{other:?}"),
    }
}

/// Runs the graph natively and in the interpreter, which give the same bits.
fn agrees(text: &str, inputs: &[Tensor]) {
    let registry = registry();
    let graph = parse(&registry, text);
    let values: Vec<Value> = inputs.iter().cloned().map(Value::from).collect();
    let expected = Interpreter::new(Arc::new(registry)).run_graph(&graph, &values);
    let expected = expected.unwrap_or_else(|e| panic!("{e}"))[0].as_tensor().unwrap();
    let expected = expected.contiguous().unwrap();
    let first = expected.offset() as usize * expected.dtype().size();
    let bytes = expected.storage().bytes()[first..first + expected.numel() as usize * expected.dtype().size()].to_vec();
    assert_eq!(native(text, inputs).unwrap_or_else(|e| panic!("{e}")), bytes);
}

fn floats(sizes: &[i64]) -> Tensor {
    let n: i64 = sizes.iter().product();
    let data: Vec<f32> = (0..n).map(|i| ((i * 7919) % 101) as f32 / 8.0).collect();
    Tensor::from_f32(&data, sizes).unwrap()
}

fn ints(values: &[i64], sizes: &[i64]) -> Tensor {
    Tensor::from_i64(values, sizes).unwrap()
}

const EMBEDDING: &str = "graph(%w : Tensor, %i : Tensor):
  %1 : int = prim::Constant[value=1]()
  %m : int = prim::Constant[value=-1]()
  %f : bool = prim::Constant[value=0]()
  %e : Tensor = aten::embedding(%w, %i, %m, %f, %f)
  %y : Tensor = aten::add(%e, %1, %1)
  return (%y)
";

#[test]
fn rows_of_a_table() {
    for width in [1, 3, 16, 37] {
        agrees(EMBEDDING, &[floats(&[5, width]), ints(&[4, 0, 0, 2, 3, 1], &[2, 3])]);
    }
    agrees(EMBEDDING, &[floats(&[5, 4]), ints(&[], &[0])]);
}

#[test]
fn an_index_that_names_nothing_is_reported() {
    for bad in [5, -1] {
        let result = native(EMBEDDING, &[floats(&[5, 4]), ints(&[1, bad], &[2])]);
        assert!(
            matches!(&result, Err(RunError::Raised(text)) if text.contains("index out of range in self")),
            "{bad}: {result:?}"
        );
    }
}

#[test]
fn slices_and_elements_along_a_dimension() {
    let select = "graph(%x : Tensor, %i : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::index_select(%x, %1, %i)
  return (%y)
";
    agrees(select, &[floats(&[3, 4, 5]), ints(&[3, 3, 0], &[3])]);
    let gather = "graph(%x : Tensor, %i : Tensor):
  %1 : int = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %r : Tensor = aten::relu(%x)
  %y : Tensor = aten::gather(%r, %1, %i, %f)
  return (%y)
";
    agrees(gather, &[floats(&[3, 4]), ints(&[3, 0, 1, 2, 2, 2], &[3, 2])]);
}

#[test]
fn index_tensors_broadcast_and_count_from_the_end() {
    let adjacent = "graph(%x : Tensor, %i : Tensor, %j : Tensor):
  %n : NoneType = prim::Constant()
  %l : Tensor?[] = prim::ListConstruct(%n, %i, %j)
  %y : Tensor = aten::index(%x, %l)
  return (%y)
";
    let apart = adjacent.replace("(%n, %i, %j)", "(%i, %n, %j)");
    let (i, j) = (ints(&[0, -1], &[2, 1]), ints(&[1, -4, 3], &[3]));
    for text in [adjacent, apart.as_str()] {
        agrees(text, &[floats(&[3, 4, 5, 6]), i.clone(), j.clone()]);
        let far = native(text, &[floats(&[3, 4, 5, 6]), ints(&[-9], &[1]), j.clone()]);
        assert!(matches!(far, Err(RunError::Raised(_))), "{far:?}");
    }
}

const SORTED: &str = "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %s : Tensor, %i : Tensor = aten::sort(%a, %1, %true)
  %c : Tensor = aten::cumsum_(%s, %1, %true)
  %d : Tensor = aten::add(%s, %i, %1)
  return (%d)
";

#[test]
fn kernels_without_programs_run_between_compiled_ones() {
    let cumulated = SORTED.replace("aten::cumsum_(%s, %1, %true)", "aten::cumsum_(%s, %1, %n)");
    let text = cumulated.replace("  %a :", "  %n : NoneType = prim::Constant()\n  %a :");
    agrees(&text, &[floats(&[3, 7])]);
    let scatter = "graph(%x : Tensor, %i : Tensor):
  %0 : int = prim::Constant[value=0]()
  %z : Tensor = aten::neg(%x)
  %y : Tensor = aten::scatter_add_(%z, %0, %i, %x)
  %r : Tensor = aten::relu(%z)
  return (%r)
";
    agrees(scatter, &[floats(&[4, 2]), ints(&[0, 1, 1, 3, 0, 0, 2, 2], &[4, 2])]);
    let outside = native(scatter, &[floats(&[2, 2]), ints(&[0, 9, 0, 0], &[2, 2])]);
    assert!(matches!(outside, Err(RunError::Raised(_))), "{outside:?}");
}

#[test]
fn a_library_names_what_it_cannot_run() {
    let registry = registry();
    let text = SORTED.replace("  %c : Tensor = aten::cumsum_(%s, %1, %true)\n", "");
    let graph = parse(&registry, &text);
    let plan = lowered(&registry, &graph, &[floats(&[3, 7])]).plan;
    let error = aot::object(&plan, &BackendOptions::default()).unwrap_err().to_string();
    assert!(error.contains("aten::sort"), "{error}");
}
