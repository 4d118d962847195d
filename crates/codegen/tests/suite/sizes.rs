//! Code with sizes as arguments: one code serves kernels of many sizes, with the same bits as code for one.

use crate::common;
use common::{options, random, run_on, run_with};
use frazil_codegen::{BackendOptions, package, package_with};
use frazil_executor::Package;
use frazil_executor::link::LoadedObjects;
use frazil_ir::{Context, DType};
use frazil_planner::codes::Codes;
use frazil_planner::kernel::{Epilogue, Gemm, GemmB, GemmBatch, GemmTile, KernelCode, KernelSpec};
use frazil_planner::plan::Plan;
use frazil_planner::target::{Machine, Target};
use frazil_planner::{ArgumentSpec, LowerOptions, PlanSizes, compile_graph};
use frazil_runtime::Registry;
use frazil_runtime::structured::TensorShape;
use std::collections::HashSet;
use std::sync::Arc;

/// The codes that `kernels` have once all of them have been seen.
pub fn codes_for(kernels: &[KernelSpec]) -> Vec<KernelCode> {
    let mut codes = Codes::default();
    for kernel in kernels {
        codes.for_plan(std::slice::from_ref(kernel));
    }
    codes.for_plan(kernels)
}

/// The processors whose vectors are tested.
pub fn targets() -> [Target; 2] {
    [options().target, Target::new("x86-64-v3", "")]
}

/// Options for many kernels on two threads.
pub fn options_for(target: &Target) -> BackendOptions {
    BackendOptions {
        loaded: Some(LoadedObjects::default()),
        threads: 2,
        ..BackendOptions::new(target.clone())
    }
}

/// Runs each of `gemms` with code of its own and with the code that serves all of them.
fn gemms_share_code(target: &Target, gemms: &[Gemm], most_codes: usize) {
    let options = options_for(target);
    let kernels: Vec<KernelSpec> = gemms.iter().cloned().map(KernelSpec::from).collect();
    let codes = codes_for(&kernels);
    let distinct: HashSet<_> = codes.iter().map(KernelCode::identity).collect();
    assert!(distinct.len() <= most_codes, "{} codes", distinct.len());
    for ((gemm, kernel), code) in gemms.iter().zip(&kernels).zip(&codes) {
        let batch = |of: &dyn Fn(&GemmBatch) -> i64| gemm.batch.iter().map(|b| (b.extent - 1) * of(b)).sum::<i64>();
        let a = batch(&|b| b.a) + (gemm.m - 1) * gemm.a_row_stride + gemm.k * gemm.a_col_stride.max(1);
        let b = match gemm.b {
            GemmB::Packed => gemm.packed_elements() as i64,
            GemmB::Strided { k_stride, n_stride } => {
                batch(&|b| b.b) + (gemm.k - 1) * k_stride + (gemm.n - 1) * n_stride + 1
            }
        };
        let c = batch(&|b| b.c) + (gemm.m - 1) * gemm.c_row_stride + gemm.n;
        let mut inputs = vec![random(a, 1), random(b, 2)];
        if !gemm.epilogue.operands.is_empty() {
            inputs.push(random(gemm.n, 3));
        }
        let output = || vec![7.0; c as usize];
        let own = run_on(kernel, &inputs, output(), options.clone());
        let shared = run_with(code, kernel, &inputs, output(), options.clone());
        let same = own.iter().zip(&shared).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{} {kernel:?}", target.cpu);
    }
}

/// A blocking that is no function of the sizes but `n`.
fn tile(gemm: &Gemm, machine: &Machine) -> GemmTile {
    let large = GemmTile::choose(1, [4096, gemm.n.max(256), 4096], machine);
    GemmTile {
        m_task: large.rows * 4,
        n_task: large.vectors * machine.vector.lanes * 2,
        k_block: gemm.k.min(128),
        ..large
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn rows_of_a_linear_layer() {
    for target in targets() {
        let machine = target.machine;
        let of = |m: i64| {
            let mut gemm = Gemm::linear(m, 100, 300, Epilogue::bias(), machine);
            gemm.tile = tile(&gemm, machine);
            gemm
        };
        let gemms: Vec<Gemm> = (1..30).chain([53, 127, 128, 200]).map(of).collect();
        gemms_share_code(&target, &gemms, 2);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn attention_of_any_length() {
    for target in targets() {
        let machine = target.machine;
        let batch = |length: i64, a: i64, b: i64, c: i64| {
            vec![
                GemmBatch {
                    extent: 1 + length % 2,
                    a: 3 * a,
                    b: 3 * b,
                    c: 3 * c,
                },
                GemmBatch { extent: 3, a, b, c },
            ]
        };
        let scores = |length: i64| {
            let mut gemm = Gemm::linear(length, length, 20, Epilogue::none(), machine);
            gemm.batch = batch(length, length * 20, length * 20, length * length);
            gemm.b = GemmB::Strided {
                k_stride: 1,
                n_stride: 20,
            };
            gemm.tile = tile(&Gemm { n: 256, ..gemm.clone() }, machine);
            gemm
        };
        let values = |length: i64| {
            let mut gemm = Gemm::linear(length, 20, length, Epilogue::none(), machine);
            gemm.batch = batch(length, length * length, length * 20, length * 20);
            gemm.b = GemmB::Strided {
                k_stride: 20,
                n_stride: 1,
            };
            gemm.tile = tile(&Gemm { n: 256, ..gemm.clone() }, machine);
            gemm
        };
        let lengths = [1, 2, 3, 7, 8, 16, 17, 31, 64, 100, 127, 128, 129, 255, 256, 300];
        gemms_share_code(&target, &lengths.map(scores), 4);
        gemms_share_code(&target, &lengths.map(values), 4);
    }
}

/// The sizes of `y` for those of `x`.
type SizesOfY = fn(i64, i64) -> [i64; 2];

/// Graphs whose kernels are loop nests: element by element, rows, columns, reductions, broadcasts, transposes, windows, indices.
const GRAPHS: [(&str, SizesOfY); 6] = [
    (
        "graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %2 : Tensor = aten::softmax(%x, %1, %none)
  %3 : Tensor = aten::mul(%2, %y)
  %4 : Tensor = aten::erf(%3)
  return (%4)
",
        |r, c| [r, c],
    ),
    (
        "graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %d : int[] = prim::ListConstruct(%0)
  %2 : Tensor = aten::sum(%x, %d, %f, %none)
  %3 : Tensor = aten::add(%y, %2, %1)
  %4 : Tensor = aten::t(%3)
  %5 : Tensor = aten::contiguous(%4, %0)
  return (%5)
",
        |_, c| [1, c],
    ),
    (
        "graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %t : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %d : int[] = prim::ListConstruct(%1)
  %2 : Tensor = aten::mean(%x, %d, %t, %none)
  %3 : Tensor = aten::sub(%x, %2, %1)
  %4 : Tensor = aten::mul(%3, %3)
  %5 : Tensor = aten::mean(%4, %d, %t, %none)
  %6 : Tensor = aten::rsqrt(%5)
  %7 : Tensor = aten::mul(%3, %6)
  %8 : Tensor = aten::add(%7, %y, %1)
  return (%8)
",
        |_, c| [1, c],
    ),
    (
        "graph(%x : Tensor, %y : Tensor):
  %f : bool = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %none : NoneType = prim::Constant()
  %3 : Tensor = aten::add(%x, %y, %1)
  %4 : Tensor = aten::sum(%3, %none)
  %5 : Tensor = aten::max(%3)
  %6 : Tensor = aten::mul(%3, %4)
  return (%6, %5)
",
        |r, _| [r, 1],
    ),
    (
        "graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %2 : Tensor = aten::cat(%l, %1)
  %3 : Tensor = aten::tanh(%2)
  return (%3)
",
        |r, _| [r, 3],
    ),
    (
        "graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %zero : float = prim::Constant[value=0.5]()
  %p : int[] = prim::ListConstruct(%1, %2)
  %3 : Tensor = aten::constant_pad_nd(%x, %p, %zero)
  %4 : Tensor = aten::exp(%3)
  return (%4)
",
        |_, _| [1, 1],
    ),
];

/// Sizes of `x`, in an order in which they grow and shrink.
const SHAPES: [[i64; 2]; 22] = [
    [5, 24],
    [9, 40],
    [3, 7],
    [64, 100],
    [600, 5],
    [17, 16],
    [16, 17],
    [1, 33],
    [33, 1],
    [200, 300],
    [6, 31],
    [6, 32],
    [6, 33],
    [7, 63],
    [7, 64],
    [7, 65],
    [100, 127],
    [128, 128],
    [300, 9],
    [4, 1000],
    [1000, 4],
    [11, 48],
];

#[test]
#[cfg(target_arch = "x86_64")]
fn loop_nests_of_any_size() {
    for target in targets() {
        for (number, (text, shape_of_y)) in GRAPHS.iter().enumerate() {
            let options = BackendOptions {
                loaded: Some(LoadedObjects::default()),
                ..BackendOptions::new(target.clone())
            };
            let mut codes = Codes::default();
            let mut compiled = HashSet::new();
            let mut news = Vec::new();
            for [rows, columns] in SHAPES {
                let shapes = [[rows, columns], shape_of_y(rows, columns)];
                let plan = plan(text, &shapes, &target);
                let codes = codes.for_plan(&plan.kernels);
                news.push(codes.iter().filter(|c| compiled.insert(c.identity())).count());
                let inputs = shapes.map(|[r, c]| random(r * c, 1));
                let run = |package: Package| {
                    let mut code = package.load(&options.run_options()).unwrap();
                    let mut outputs: Vec<Vec<u8>> = plan.outputs.iter().map(|p| vec![0xA5; p.bytes()]).collect();
                    let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
                    let inputs = inputs.each_ref().map(|x| bytemuck::cast_slice(x));
                    code.run(&inputs[..plan.inputs.len()], &mut slices).unwrap();
                    outputs
                };
                let own = run(package(&plan, &options).unwrap());
                let shared = run(package_with(&plan, &codes, &options).unwrap());
                assert!(own == shared, "graph {number}, {rows}x{columns}, {}", target.cpu);
            }
            // Extents of 1, rows of less than half a vector, and tasks of another kind have code of their own.
            assert!(news[10..].iter().all(|&n| n == 0), "graph {number}: {news:?}");
        }
    }
}

/// The plan of `text` for inputs of float32.
fn plan(text: &str, shapes: &[[i64; 2]], target: &Target) -> Plan {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    let graph = frazil_syntax::parse_graph(registry.ctx(), text).unwrap().graph;
    let tensor = |sizes: &[i64; 2]| {
        ArgumentSpec::Tensor(TensorShape {
            dtype: DType::Float,
            sizes: sizes.as_slice().into(),
        })
    };
    let inputs: Vec<ArgumentSpec> = shapes.iter().map(tensor).collect();
    let options = LowerOptions {
        name: "sizes".into(),
        target: target.clone(),
        fuse: true,
        tuning: Default::default(),
        families: Vec::new(),
        packed: None,
        sizes: PlanSizes::Any,
        threads: 1,
    };
    compile_graph(&graph, &inputs, &registry, &options).unwrap().plan
}
