//! Graphs through specialisation and native code against the interpreter: mutation, views, control flow, lists; and what is refused.

use frazil_codegen::backend::host_target;
use frazil_codegen::{BackendOptions, compile};
use frazil_ir::{Context, DType, Graph};
use frazil_planner::tune::Tuning;
use frazil_planner::{ArgumentSpec, LowerError, LowerOptions, ResultSpec, compile_graph};
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
    match frazil_syntax::parse_graph(registry.ctx(), text) {
        Ok(parsed) => parsed.graph,
        Err(e) => panic!("{e:?}"),
    }
}

fn options() -> LowerOptions {
    LowerOptions {
        name: "test".into(),
        target: host_target(),
        fuse: true,
        tuning: Tuning::default(),
        families: Vec::new(),
        packed: None,
        sizes: Default::default(),
        threads: 1,
    }
}

fn specs(shapes: &[&[i64]]) -> Vec<ArgumentSpec> {
    let tensor = |sizes: &&[i64]| {
        ArgumentSpec::Tensor(TensorShape {
            dtype: DType::Float,
            sizes: (*sizes).into(),
        })
    };
    shapes.iter().map(tensor).collect()
}

fn numbers(sizes: &[i64], seed: i64) -> Vec<f32> {
    let n: i64 = sizes.iter().product();
    (0..n).map(|i| (((i + seed) * 7919) % 23 - 11) as f32 / 8.0).collect()
}

/// Compiles the graph for f32 inputs of these shapes, runs it, and compares every result with the interpreter's.
fn agrees(text: &str, shapes: &[&[i64]]) {
    let registry = registry();
    let graph = parse(&registry, text);
    let data: Vec<Vec<f32>> = shapes.iter().enumerate().map(|(i, s)| numbers(s, i as i64)).collect();
    let lowered = compile_graph(&graph, &specs(shapes), &registry, &options()).unwrap_or_else(|e| panic!("{e}"));
    let values: Vec<Value> = data
        .iter()
        .zip(shapes)
        .map(|(d, s)| Tensor::from_f32(d, s).unwrap().into())
        .collect();
    let expected = Interpreter::new(Arc::new(registry)).run_graph(&graph, &values);
    let expected = expected.unwrap_or_else(|e| panic!("{e}"));
    let mut exe = compile(&lowered.plan, &BackendOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let inputs: Vec<&[u8]> = data.iter().map(|d| bytemuck::cast_slice(d)).collect();
    let mut outputs: Vec<Vec<u8>> = lowered.plan.outputs.iter().map(|p| vec![0xFF; p.bytes()]).collect();
    let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    exe.run(&inputs, &mut slices).unwrap();
    let ports = &lowered.plan.outputs;
    let tensor = |i: u32| (&ports[i as usize], &outputs[i as usize]);
    assert_eq!(expected.len(), lowered.results.len());
    for (spec, value) in lowered.results.iter().zip(&expected) {
        same(spec, value, &tensor);
    }
}

fn same<'a>(spec: &ResultSpec, value: &Value, tensor: &dyn Fn(u32) -> (&'a frazil_planner::plan::Port, &'a Vec<u8>)) {
    match spec {
        ResultSpec::Tensor(i) => {
            let (port, bytes) = tensor(*i);
            let want = value.as_tensor().unwrap();
            assert_eq!((port.dtype, port.shape.as_slice()), (want.dtype(), want.sizes()));
            if port.dtype == DType::Float {
                let got: Vec<f32> = bytemuck::pod_collect_to_vec(bytes);
                for (i, (g, w)) in got.iter().zip(want.to_f64_vec()).enumerate() {
                    let close = (f64::from(*g) - w).abs() <= 1e-5 + 1e-5 * w.abs();
                    assert!(close || (g.is_nan() && w.is_nan()), "element {i}: {g} instead of {w}");
                }
            } else {
                assert_eq!(port.dtype, DType::Long, "only these are compared");
                let got: Vec<i64> = bytemuck::pod_collect_to_vec(bytes);
                assert_eq!(got, want.to_i64_vec());
            }
        }
        ResultSpec::Value(v) => assert_eq!(v.equals(value), Some(true), "{v:?} instead of {value:?}"),
        ResultSpec::Dict(..) => panic!("no dictionaries here"),
        ResultSpec::Input(_)
        | ResultSpec::View(..)
        | ResultSpec::Window(..)
        | ResultSpec::Part { .. }
        | ResultSpec::Strided(..)
        | ResultSpec::Number(_) => panic!("results are new"),
        ResultSpec::List(_, items) | ResultSpec::Tuple(_, items) => {
            let values = value.items().unwrap();
            assert_eq!(items.len(), values.len());
            items.iter().zip(&values).for_each(|(s, v)| same(s, v, tensor));
        }
    }
}

fn refused(text: &str, shapes: &[&[i64]]) -> String {
    let registry = registry();
    let graph = parse(&registry, text);
    match compile_graph(&graph, &specs(shapes), &registry, &options()) {
        Ok(_) => panic!("this compiles"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn writes_in_place_are_seen_through_views() {
    // A slice is written after and before it is read; the base sees it, and what was read before does not change.
    agrees(
        "graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %n : NoneType = prim::Constant()
  %a : Tensor = aten::relu(%x)
  %before : Tensor = aten::mul(%a, %a)
  %s : Tensor = aten::slice(%a, %1, %1, %n, %1)
  %t : Tensor = aten::select(%s, %0, %2)
  %u : Tensor = aten::add_(%t, %2, %1)
  %v : Tensor = aten::sub_(%s, %1, %1)
  %w : Tensor = aten::relu_(%a)
  return (%before, %a, %t, %v)
",
        &[&[4, 5]],
    );
}

#[test]
fn a_buffer_is_filled_part_by_part() {
    agrees(
        "graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=3]()
  %n : NoneType = prim::Constant()
  %f : bool = prim::Constant[value=0]()
  %sizes : int[] = prim::Constant[value=[2, 7]]()
  %out : Tensor = aten::zeros(%sizes, %n, %n, %n, %n)
  %left : Tensor = aten::slice(%out, %1, %0, %3, %1)
  %right : Tensor = aten::slice(%out, %1, %3, %n, %1)
  %a : Tensor = aten::copy_(%left, %x, %f)
  %b : Tensor = aten::copy_(%right, %y, %f)
  %c : Tensor = aten::add_(%left, %1, %1)
  return (%out)
",
        &[&[2, 3], &[2, 4]],
    );
}

#[test]
fn loops_unroll_and_lists_are_resolved() {
    agrees(
        "graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %items : Tensor[] = prim::ListConstruct()
  %rows : int = aten::size(%x, %0)
  %sum0 : Tensor = aten::select(%x, %0, %0)
  %sum : Tensor = prim::Loop(%rows, %true, %sum0)
    block0(%i : int, %s : Tensor):
      %row : Tensor = aten::select(%x, %0, %i)
      %t : Tensor = aten::add(%s, %row, %1)
      %u : Tensor = aten::tanh(%t)
      %l : Tensor[] = aten::append(%items, %u)
      %odd : int = aten::remainder(%i, %rows)
      %first : bool = aten::eq(%odd, %0)
      %next : Tensor = prim::If(%first)
        block0():
          -> (%t)
        block1():
          -> (%u)
      -> (%true, %next)
  %all : Tensor = aten::stack(%items, %0)
  %n : int = aten::len(%items)
  %pair : (Tensor, int) = prim::TupleConstruct(%sum, %n)
  return (%all, %pair)
",
        &[&[5, 3]],
    );
}

#[test]
fn results_of_other_dtypes_and_constants() {
    agrees(
        "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %4 : int = prim::Constant[value=4]()
  %f : bool = prim::Constant[value=0]()
  %n : NoneType = prim::Constant()
  %k : int = prim::Constant[value=10]()
  %r : Tensor = aten::arange(%k, %n, %n, %n, %n)
  %m : Tensor = aten::mul(%r, %4)
  %c : Tensor = aten::to(%x, %4, %f, %f, %n)
  %d : Tensor = aten::add(%c, %1, %1)
  return (%m, %d)
",
        &[&[3, 2]],
    );
}

#[test]
fn branches_on_shapes_are_taken_and_raise() {
    let text = "graph(%x : Tensor):
  %2 : int = prim::Constant[value=2]()
  %message : str = prim::Constant[value=\"two dimensions, please\"]()
  %class : str = prim::Constant[value=\"builtins.ValueError\"]()
  %d : int = aten::dim(%x)
  %ok : bool = aten::eq(%d, %2)
   = prim::If(%ok)
    block0():
      -> ()
    block1():
       = prim::RaiseException(%message, %class)
      -> ()
  %y : Tensor = aten::relu(%x)
  return (%y)
";
    agrees(text, &[&[2, 3]]);
    let error = refused(text, &[&[2, 3, 4]]);
    assert!(error.contains("ValueError: two dimensions, please"), "{error}");
}

#[test]
fn everything_unsupported_is_listed_at_once() {
    let registry = registry();
    let graph = parse(
        &registry,
        "graph(%x : Tensor):
  %y : Tensor = mystery::one(%x) # model.py:3:4
  %z : Tensor = aten::relu(%y) # model.py:4:4
  %i : Scalar = aten::item(%x) # model.py:5:4
  %w : Tensor = mystery::two(%z) # model.py:6:4
  return (%w, %i)
",
    );
    let error = compile_graph(&graph, &specs(&[&[1]]), &registry, &options());
    let Err(LowerError::Unsupported(list)) = error else {
        panic!()
    };
    let found: Vec<(&str, Option<&str>)> = list
        .iter()
        .map(|u| (u.operator.as_str(), u.source.as_deref()))
        .collect();
    assert_eq!(
        found,
        [
            ("mystery::one", Some("model.py:3:4")),
            ("aten::item", Some("model.py:5:4")),
            ("mystery::two", Some("model.py:6:4")),
        ]
    );
}

#[test]
fn visible_writes_are_refused() {
    let error = refused(
        "graph(%x : Tensor):
  %y : Tensor = aten::relu_(%x)
  return (%y)
",
        &[&[4]],
    );
    assert!(error.contains("writes to one of its inputs"), "{error}");
    let error = refused(
        "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %c : Tensor = prim::Constant[value={1.5}]()
  %y : Tensor = aten::add_(%c, %x, %1)
  return (%y)
",
        &[&[]],
    );
    assert!(error.contains("writes to a constant of the graph"), "{error}");
}

#[test]
fn the_number_of_inputs_is_checked() {
    let error = refused("graph(%x : Tensor):\n  return (%x)\n", &[]);
    assert!(error.contains("takes 1 inputs, 0 were described"), "{error}");
}

#[test]
fn empty_tensors_and_scalars() {
    let text = "graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %n : NoneType = prim::Constant()
  %a : Tensor = aten::relu(%x)
  %p : Tensor = aten::matmul(%a, %y)
  %s : Tensor = aten::sum(%p, %n)
  %l : Tensor[] = prim::ListConstruct(%a, %x)
  %c : Tensor = aten::cat(%l, %0)
  %t : Tensor = aten::add(%p, %s, %1)
  %m : Tensor = aten::softmax(%t, %1, %n)
  return (%a, %p, %s, %c, %m)
";
    agrees(text, &[&[2, 0], &[0, 3]]);
    agrees(text, &[&[0, 4], &[4, 3]]);
    agrees(text, &[&[1, 1], &[1, 1]]);
    agrees(text, &[&[3, 4], &[4, 2]]);
}

#[test]
fn writes_to_every_second_element() {
    for (start, end, step) in [(0, 9, 2), (1, 8, 3), (2, 3, 2), (4, 4, 2)] {
        agrees(
            &format!(
                "graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %start : int = prim::Constant[value={start}]()
  %end : int = prim::Constant[value={end}]()
  %step : int = prim::Constant[value={step}]()
  %a : Tensor = aten::relu(%x)
  %s : Tensor = aten::slice(%a, %1, %start, %end, %step)
  %t : Tensor = aten::slice(%s, %0, %1, %end, %1)
  %u : Tensor = aten::sub_(%t, %step, %1)
  return (%a, %s)
"
            ),
            &[&[3, 9]],
        );
    }
}

/// The iterations of a loop count as steps, also of one without nodes.
#[test]
fn endless_loops_are_too_long() {
    let registry = registry();
    let text = "graph(%x : Tensor):
  %n : int = prim::Constant[value=9223372036854775807]()
  %t : bool = prim::Constant[value=1]()
   = prim::Loop(%n, %t)
    block0(%i : int):
      -> (%t)
  return (%x)
";
    let graph = parse(&registry, text);
    let made = compile_graph(&graph, &specs(&[&[2]]), &registry, &options());
    assert!(matches!(made, Err(LowerError::TooLong { .. })));
}

/// Where the types of a graph do not say which overload is meant, the values do.
#[test]
fn overloads_are_chosen_by_values() {
    agrees(
        "graph(%x : Tensor):
  %n : int = prim::Constant[value=3]()
  %half : float = prim::Constant[value=0.5]()
  %a : Any = prim::unchecked_cast(%n)
  %b : Any = prim::unchecked_cast(%half)
  %c : Any = prim::unchecked_cast(%x)
  %p : Tensor = aten::mul(%x, %a)
  %q : Tensor = aten::mul(%p, %b)
  %r : Tensor = aten::mul(%q, %c)
  %s : Any = aten::add(%a, %n)
  return (%p, %q, %r, %s)
",
        &[&[2, 3]],
    );
}
