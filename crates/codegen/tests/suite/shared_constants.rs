//! Plans of a process that share packed constants and loaded code.

use frazil_codegen::backend::host_target;
use frazil_codegen::{BackendOptions, aot, compile, package};
use frazil_executor::link::LoadedObjects;
use frazil_executor::memory::Workspace;
use frazil_ir::{Builder, Constant, Context, DType, Graph, TensorData};
use frazil_planner::packed::PackedConstants;
use frazil_planner::plan::{Buffer, Plan};
use frazil_planner::tune::Tuning;
use frazil_planner::{ArgumentSpec, LowerOptions, compile_graph};
use frazil_runtime::Registry;
use frazil_runtime::structured::TensorShape;
use std::sync::Arc;

const CHANNELS: i64 = 32;
const WIDTH: i64 = 64;

/// A convolution, whose weights are transformed when the code is loaded, and a matmul.
const NET: &str = "graph(%x : Tensor, %filter : Tensor, %weight : Tensor):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %image : Tensor = aten::conv2d(%x, %filter, %none, %ones, %ones, %ones, %one)
  %active : Tensor = aten::relu(%image)
  %y : Tensor = aten::matmul(%active, %weight)
  return (%y)
";

fn random(count: i64, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

fn constant(sizes: &[i64], seed: u32) -> Constant {
    let values = random(sizes.iter().product(), seed);
    let bytes = bytemuck::cast_slice(&values).to_vec();
    Constant::Tensor(Arc::new(TensorData::contiguous(DType::Float, sizes, bytes).unwrap()))
}

/// The network, with constants for its weights.
fn network(registry: &Registry) -> Graph {
    let mut graph = frazil_syntax::parse_graph(registry.ctx(), NET).unwrap().graph;
    let constants = [constant(&[CHANNELS, CHANNELS, 3, 3], 1), constant(&[WIDTH, 24], 2)];
    for (input, value) in constants.into_iter().enumerate() {
        let from = graph.inputs()[input + 1];
        let first = graph.first(graph.root()).unwrap();
        let to = Builder::before(&mut graph, first).constant(value);
        graph.replace_all_uses_with(from, to);
    }
    graph
}

fn registry() -> Registry {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    registry
}

fn plan(graph: &Graph, registry: &Registry, input: &[i64], packed: Option<&PackedConstants>) -> Plan {
    let options = LowerOptions {
        name: "net".into(),
        target: host_target(),
        fuse: true,
        tuning: Tuning::default(),
        families: Vec::new(),
        packed: packed.cloned(),
        sizes: Default::default(),
        threads: 1,
    };
    let spec = |sizes: &[i64]| {
        ArgumentSpec::Tensor(TensorShape {
            dtype: DType::Float,
            sizes: sizes.into(),
        })
    };
    // Nothing reads the inputs that became constants.
    let inputs = [spec(input), spec(&[1]), spec(&[1])];
    compile_graph(graph, &inputs, registry, &options).unwrap().plan
}

fn inputs(plan: &Plan) -> Vec<Vec<u8>> {
    let bytes = |port: &frazil_planner::plan::Port| bytemuck::cast_slice(&random(port.elements() as i64, 9)).to_vec();
    plan.inputs.iter().map(bytes).collect()
}

/// The results of `plan` with code and constants of its own.
fn alone(plan: &Plan) -> Vec<Vec<u8>> {
    let given = inputs(plan);
    let slices: Vec<&[u8]> = given.iter().map(Vec::as_slice).collect();
    let mut executable = compile(plan, &BackendOptions::default()).unwrap();
    let outputs = executable.call(&slices).unwrap();
    outputs.iter().map(|bytes| bytes.as_slice().to_vec()).collect()
}

#[test]
fn weights_are_packed_once_for_all_heights() {
    let registry = registry();
    let graph = network(&registry);
    let (packed, workspace) = (PackedConstants::default(), Workspace::default());
    let options = BackendOptions {
        loaded: Some(LoadedObjects::default()),
        ..BackendOptions::default()
    };
    let mut instances = Vec::new();
    for (number, height) in [64, 66, 80, 64].into_iter().enumerate() {
        let sizes = [1, CHANNELS, height, WIDTH];
        let expected = alone(&plan(&graph, &registry, &sizes, None));
        let shared = plan(&graph, &registry, &sizes, Some(&packed));
        let code = package(&shared, &options)
            .unwrap()
            .link(&options.run_options())
            .unwrap();
        let (constants, prepared) = code.constants();
        let is_first = number == 0;
        assert_eq!(shared.shared.is_empty(), is_first);
        let sizes = [constants.len(), prepared.len()];
        assert_eq!(
            sizes.map(|bytes| bytes > 0),
            [is_first; 2],
            "{sizes:?} bytes for height {height}"
        );
        assert_eq!(shared.packed.len(), if is_first { 2 } else { 0 });
        packed.add(&shared.packed, constants, prepared);
        instances.push((code.instance_in(&workspace).unwrap(), shared, expected));
    }
    // All instances, one after the other, on the same workspace.
    for (executable, plan, expected) in instances.iter_mut().rev() {
        let given = inputs(plan);
        let slices: Vec<&[u8]> = given.iter().map(Vec::as_slice).collect();
        let outputs = executable.call(&slices).unwrap();
        let outputs: Vec<&[u8]> = outputs.iter().map(|bytes| bytes.as_slice()).collect();
        assert_eq!(outputs, *expected);
    }
}

#[test]
fn constants_end_with_their_graph() {
    let registry = registry();
    let packed = PackedConstants::default();
    let options = BackendOptions::default();
    let sizes = [1, CHANNELS, 8, WIDTH];
    for _ in 0..2 {
        let graph = network(&registry);
        let shared = plan(&graph, &registry, &sizes, Some(&packed));
        // An equal network has weights of its own.
        assert!(shared.shared.is_empty());
        let code = package(&shared, &options)
            .unwrap()
            .link(&options.run_options())
            .unwrap();
        let (constants, prepared) = code.constants();
        packed.add(&shared.packed, constants, prepared);
        assert!(!plan(&graph, &registry, &sizes, Some(&packed)).shared.is_empty());
    }
}

#[test]
fn what_shares_constants_is_neither_a_library_nor_a_file() {
    let registry = registry();
    let graph = network(&registry);
    let (packed, options) = (PackedConstants::default(), BackendOptions::default());
    let sizes = [1, CHANNELS, 8, WIDTH];
    let first = plan(&graph, &registry, &sizes, Some(&packed));
    let code = package(&first, &options).unwrap().link(&options.run_options()).unwrap();
    let (constants, prepared) = code.constants();
    packed.add(&first.packed, constants, prepared);
    let shared = plan(&graph, &registry, &sizes, Some(&packed));
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("libnet.so");
    let error = aot::write_library(&shared, &options, &library).unwrap_err();
    assert!(error.to_string().contains("share constants"), "{error}");
    assert!(!library.exists() && aot::object(&shared, &options).is_err());
    let secret = frazil_syntax::Secret::random().unwrap();
    let write = |plan: &Plan| {
        let package = package(plan, &options)
            .unwrap()
            .prepared(&options.run_options())
            .unwrap();
        let mut file = Vec::new();
        let is_written = package
            .write(&secret, "key", serde_json::Value::Null, &mut file)
            .unwrap();
        assert_eq!(is_written, !file.is_empty());
        is_written
    };
    assert!(write(&first) && !write(&shared));
    // A plan that names shared constants that it does not have contradicts itself.
    let mut damaged = shared.clone();
    damaged.shared.clear();
    assert!(package(&damaged, &options).is_err());
    let past_the_end = |buffer: &mut Buffer| {
        if let Buffer::Shared { offset, .. } = buffer {
            *offset = u64::MAX;
        }
    };
    let mut damaged = shared;
    damaged
        .calls
        .iter_mut()
        .flat_map(|call| &mut call.buffers)
        .for_each(past_the_end);
    assert!(package(&damaged, &options).is_err());
}
