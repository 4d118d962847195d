//! A kernel family from outside the crates, as docs/add-a-kernel.md describes it: matmuls of float64 with constant weights.
//!
//! It has what a family can have: packed weights, an epilogue, two phases, scratch memory, an element type other than float32, and no line in
//! Frazil's own crates. Its kernels run in a model, on vectors of both widths, from a stored package, and in a library.

use crate::common::options;
use frazil_codegen::emit::builder::{Emitter, Int, Val};
use frazil_codegen::emit::expr::{self, ExprEmitter, Values};
use frazil_codegen::emit::family::{EmitKernel, InvalidKernel};
use frazil_codegen::emit::function::KernelFunction;
use frazil_codegen::emit::kernels;
use frazil_codegen::{BackendOptions, aot, compile, package};
use frazil_executor::Package;
use frazil_ir::{Context, DType, TensorData};
use frazil_planner::family::{KernelFamily, Operand, Packed, Selection};
use frazil_planner::kernel::Kernel;
use frazil_planner::plan::Plan;
use frazil_planner::target::{AVX2, Machine, Target};
use frazil_planner::{ArgumentSpec, LowerOptions, compile_graph};
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::structured::{Access, Combine, Structured, TensorId, TensorShape};
use frazil_runtime::{Registry, Tensor, Value};
use frazil_syntax::CacheFolder;
use frazil_tensor_ir::affine::Strided;
use frazil_tensor_ir::graph::TensorGraph;
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};
use std::process::Command;
use std::sync::Arc;

/// `C[m][n] = finish(Σ_k A[m][k] · B[k][n], operands...)` in float64. Buffers: A, packed B, the operands of `finish`, C, scratch memory for the
/// columns of A.
#[derive(Clone, Debug, PartialEq)]
struct DoubleMatmul {
    m: i64,
    n: i64,
    k: i64,
    /// Lanes of a vector of float64.
    lanes: i64,
    finish: Expr,
    /// For each operand, whether it has one element a column, or one an element of C.
    operands: Vec<bool>,
}

impl DoubleMatmul {
    fn panels(&self) -> i64 {
        (self.n + self.lanes - 1) / self.lanes
    }
}

impl Kernel for DoubleMatmul {
    fn family(&self) -> &'static str {
        "double_matmul"
    }

    fn lanes(&self) -> i64 {
        2 * self.lanes
    }

    /// First the rows of A are copied to columns, then each panel of B is multiplied.
    fn phases(&self) -> SmallVec<[i64; 2]> {
        smallvec![self.m, self.panels()]
    }

    fn operand_count(&self) -> usize {
        3 + self.operands.len()
    }

    fn scratch_bytes(&self) -> usize {
        (self.m * self.k * 8) as usize
    }

    fn flops(&self) -> i64 {
        2 * self.m * self.n * self.k
    }

    fn bytes(&self) -> i64 {
        8 * (self.m * self.k + self.k * self.n + self.m * self.n)
    }

    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        writeln!(out, "  double matmul {}x{}x{}", self.m, self.n, self.k)
    }
}

impl EmitKernel for DoubleMatmul {
    fn check(&self) -> Result<(), InvalidKernel> {
        Ok(expr::check(&self.finish)?)
    }

    fn emit(&self, function: &mut KernelFunction<'_>, phase: usize) {
        function.for_each_task(|e, buffers, task| match phase {
            0 => self.transpose_row(e, buffers, task),
            _ => self.multiply_panel(e, buffers, task),
        });
    }
}

impl DoubleMatmul {
    fn transpose_row<'c>(&self, e: &mut Emitter<'c>, buffers: &[Val<'c>], row: Int<'c>) {
        let (a, scratch) = (buffers[0], buffers[buffers.len() - 1]);
        e.for_each(0, self.k, 1, |e, k| {
            let from = e.linear([(self.k, row), (1, k)], 0);
            let to = e.linear([(self.m, k), (1, row)], 0);
            let (from, to) = (e.offset(a, from, 8), e.offset(scratch, to, 8));
            let f64 = e.ty("f64");
            let x = e.load(from, f64, 8);
            e.store(x, to, 8);
        });
    }

    fn multiply_panel<'c>(&self, e: &mut Emitter<'c>, buffers: &[Val<'c>], panel: Int<'c>) {
        let (b, c, scratch) = (buffers[1], buffers[buffers.len() - 2], buffers[buffers.len() - 1]);
        let ty = e.shaped("f64", Some(self.lanes));
        let first = e.mul(panel, self.lanes);
        let left = e.sub(self.n, first);
        let mask = e.mask(left, self.lanes);
        let zero = e.constant(&format!("dense<0.0> : vector<{}xf64>", self.lanes));
        let weights = e.mul(panel, self.lanes * self.k);
        let weights = e.offset(b, weights, 8);
        e.for_each(0, self.m, 1, |e, row| {
            let sum = e.for_loop(0, self.k, 1, &[zero], |e, k, sum| {
                let at = e.linear([(self.m, k), (1, row)], 0);
                let at = e.offset(scratch, at, 8);
                let f64 = e.ty("f64");
                let x = e.load(at, f64, 8);
                let x = e.broadcast(x, self.lanes);
                let at = e.mul(k, self.lanes);
                let at = e.offset(weights, at, 8);
                let w = e.load(at, ty, 8);
                vec![e.fma(x, w, sum[0])]
            });
            let element = e.linear([(self.n, row), (1, first)], 0);
            let mut values = sum;
            for (i, is_column) in self.operands.iter().enumerate() {
                let at = if *is_column { first } else { element };
                let at = e.offset(buffers[2 + i], at, 8);
                values.push(e.load_masked_or(at, mask, zero, 8));
            }
            let result = ExprEmitter::new(e, Some(self.lanes)).emit(&self.finish, &mut Values(&values));
            let to = e.offset(c, element, 8);
            e.store_masked_at(result, to, mask, 8);
        });
    }
}

/// Selects [`DoubleMatmul`] for sums of products of a matrix and a constant matrix.
#[derive(Debug)]
struct DoubleMatmuls;

impl KernelFamily for DoubleMatmuls {
    fn select(&self, graph: &TensorGraph, id: TensorId, target: &Target) -> Option<Selection> {
        let s = graph.as_nest(id)?;
        let [a, b] = s.inputs.as_slice() else { return None };
        let [x, y, product] = s.body.nodes() else { return None };
        let reads =
            (x.op, y.op, product.op) == (ExprOp::Input(0), ExprOp::Input(1), ExprOp::Binary(BinaryOp::Mul, 0, 1));
        let &[m, n, k] = s.domain.as_slice() else { return None };
        if !reads || s.combine != Some(Combine::Add) || s.accumulate != DType::Double || s.output.dtype != DType::Double
        {
            return None;
        }
        let strides = |access: &Access| Strided::of(access, &graph.shape(access.tensor).sizes, &s.domain);
        let (a_strides, b_strides) = (strides(a), strides(b));
        let constant = graph.as_constant(b.tensor)?;
        if constant.dtype != DType::Double || a_strides.strides[..] != [k, 0, 1] || b_strides.strides[0] != 0 {
            return None;
        }
        let (finish, operands) = finish(s, &strides)?;
        let lanes = target.vector().lanes / 2;
        let kernel = DoubleMatmul {
            m,
            n,
            k,
            lanes,
            finish,
            operands: operands.iter().map(|o| o.1).collect(),
        };
        let (n_stride, k_stride, offset) = (b_strides.strides[1], b_strides.strides[2], b_strides.offset);
        let packed = Packed {
            constant: b.tensor,
            layout: format!("panels of {lanes} of {n}x{k}, strides {n_stride}, {k_stride}, offset {offset}"),
            bytes: (kernel.panels() * lanes * k * 8) as usize,
            pack: Arc::new(move |data: &TensorData, to: &mut [u8]| {
                let bytes = data.to_bytes();
                for (i, to) in to.chunks_exact_mut(8).enumerate() {
                    let (panel, rest) = (i as i64 / (lanes * k), i as i64 % (lanes * k));
                    let (row, column) = (rest / lanes, panel * lanes + rest % lanes);
                    if column < n {
                        let from = 8 * (offset + column * n_stride + row * k_stride) as usize;
                        to.copy_from_slice(&bytes[from..from + 8]);
                    }
                }
            }),
        };
        let tensor = |(tensor, _, offset): &EpilogueRead| Operand::Tensor {
            tensor: *tensor,
            offset: *offset,
        };
        let first = Operand::Tensor {
            tensor: a.tensor,
            offset: a_strides.offset,
        };
        let mut all = vec![first, Operand::Packed(packed)];
        all.extend(operands.iter().map(tensor));
        Some(Selection {
            kernel: kernel.into(),
            operands: all,
        })
    }
}

/// An operand of the epilogue: the tensor, whether it has one element a column, and its first element.
type EpilogueRead = (TensorId, bool, i64);

/// The epilogue and what it reads.
fn finish(s: &Structured, strides: &dyn Fn(&Access) -> Strided) -> Option<(Expr, Vec<EpilogueRead>)> {
    let operand = |access: &Access| {
        let found = strides(access);
        let is_column = match found.strides[..2] {
            [0, 1] => true,
            [row, 1] if row == s.domain[1] => false,
            _ => return None,
        };
        Some((access.tensor, is_column, found.offset))
    };
    let operands: Option<Vec<_>> = s.finish_inputs.iter().map(operand).collect();
    let expr = s.finish.clone().unwrap_or_else(|| Expr::identity(DType::Double));
    Some((expr, operands?))
}

/// Two layers, which are the family's, and a softmax, which is not.
const MODEL: &str = "graph(%x : Tensor, %w1 : Tensor, %b1 : Tensor, %w2 : Tensor, %b2 : Tensor):
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %1 : Tensor = aten::linear(%x, %w1, %b1)
  %2 : Tensor = aten::relu(%1)
  %3 : Tensor = aten::linear(%2, %w2, %b2)
  %4 : Tensor = aten::softmax(%3, %one, %none)
  return (%4)
";

/// Sizes of `x`, which is an input, and of the weights, which are constants.
const SIZES: [&[i64]; 5] = [&[7, 24], &[13, 24], &[13], &[21, 13], &[21]];

fn tensors() -> Vec<Tensor> {
    let numbers = |sizes: &[i64], seed: i64| {
        let n: i64 = sizes.iter().product();
        let values: Vec<u8> = (0..n)
            .flat_map(|i| ((((i + seed) * 7919) % 23 - 11) as f64 / 8.0).to_le_bytes())
            .collect();
        Tensor::from_bytes(DType::Double, sizes, &values).unwrap()
    };
    SIZES
        .iter()
        .zip(1..)
        .map(|(sizes, seed)| numbers(sizes, seed))
        .collect()
}

fn registry() -> Registry {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    registry
}

/// The plan of [`MODEL`] for `target`.
fn plan(target: &Target) -> Plan {
    let registry = registry();
    let graph = frazil_syntax::parse_graph(registry.ctx(), MODEL).unwrap().graph;
    let tensors = tensors();
    let mut inputs = vec![ArgumentSpec::Tensor(TensorShape {
        dtype: DType::Double,
        sizes: SIZES[0].into(),
    })];
    inputs.extend(tensors[1..].iter().cloned().map(|t| ArgumentSpec::Value(t.into())));
    let options = LowerOptions {
        name: "layers".into(),
        target: target.clone(),
        fuse: true,
        tuning: Default::default(),
        families: vec![Arc::new(DoubleMatmuls)],
        packed: None,
        sizes: Default::default(),
        threads: 2,
    };
    let plan = compile_graph(&graph, &inputs, &registry, &options).unwrap().plan;
    let of_family = plan.kernels.iter().filter(|k| k.get::<DoubleMatmul>().is_some());
    // Bias and activation are in the kernels.
    assert_eq!(of_family.count(), 2);
    assert_eq!(plan.calls.len(), 3);
    plan
}

fn back_end(target: &Target) -> BackendOptions {
    BackendOptions {
        threads: 2,
        emitters: Arc::new(kernels::all().with::<DoubleMatmul>()),
        ..BackendOptions::new(target.clone())
    }
}

/// The processor that is tested, and the same one with vectors of eight f32.
fn targets() -> [Target; 2] {
    [options().target, Target::new("x86-64-v3", "")]
}

fn bytes(tensor: &Tensor) -> Vec<u8> {
    tensor.to_f64_vec().iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn check(got: &[u8], what: &str) {
    let registry = registry();
    let graph = frazil_syntax::parse_graph(registry.ctx(), MODEL).unwrap().graph;
    let values: Vec<Value> = tensors().into_iter().map(Value::from).collect();
    let expected = Interpreter::new(Arc::new(registry)).run_graph(&graph, &values).unwrap();
    let expected = expected[0].as_tensor().unwrap().to_f64_vec();
    let got: Vec<f64> = got
        .chunks_exact(8)
        .map(|x| f64::from_le_bytes(x.try_into().unwrap()))
        .collect();
    assert_eq!(got.len(), expected.len());
    for (g, e) in got.iter().zip(&expected) {
        assert!((g - e).abs() <= 1e-12, "{what}: {g} instead of {e}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn models_run_on_vectors_of_both_widths_and_from_a_stored_package() {
    const FILE: &str = "0123456789abcdef.method";
    let x = bytes(&tensors()[0]);
    for target in targets() {
        let (plan, options) = (plan(&target), back_end(&target));
        let run = |mut code: frazil_executor::Executable, what: &str| {
            let mut y = vec![0xFF; plan.outputs[0].bytes()];
            for _ in 0..2 {
                code.run(&[&x], &mut [&mut y]).unwrap();
                check(&y, &format!("{what}, {}", target.cpu));
            }
        };
        run(compile(&plan, &options).unwrap(), "compiled");
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path(), u64::MAX);
        let made = package(&plan, &options)
            .unwrap()
            .prepared(&options.run_options())
            .unwrap();
        let written = folder
            .write(FILE, |file, secret| made.write(secret, "key", Default::default(), file))
            .unwrap();
        assert!(written);
        let (read, _) = Package::read(&folder, FILE, "key").unwrap();
        run(read.load(&options.run_options()).unwrap(), "stored");
    }
}

#[test]
fn models_run_in_a_library() {
    const PROGRAM: &str = r#"
#include "layers.h"
#include <stdio.h>
int main(void) {
  static double x[X], y[Y];
  FILE *in = fopen("x", "rb"), *out = fopen("y", "wb");
  if (fread(x, 8, X, in) != X) return 1;
  layers_instance *model;
  if (layers_create(0, &model)) return 2;
  const void *inputs[] = { x };
  void *outputs[] = { y };
  if (layers_run(model, inputs, outputs)) return 3;
  layers_destroy(model);
  if (fwrite(y, 8, Y, out) != Y || fclose(out)) return 4;
  return 0;
}
"#;
    let target = options().target;
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    aot::write_library(&plan(&target), &back_end(&target), &file("layers.so")).unwrap_or_else(|e| panic!("{e}"));
    let x = &tensors()[0];
    std::fs::write(file("x"), bytes(x)).unwrap();
    std::fs::write(file("main.c"), PROGRAM).unwrap();
    let status = Command::new("cc")
        .current_dir(directory.path())
        .args(["-Wall", "-Werror", "-o", "main", "main.c", "./layers.so"])
        .args([format!("-DX={}", x.numel()), format!("-DY={}", 7 * 21)])
        .status();
    assert!(status.unwrap().success());
    let output = Command::new("./main").current_dir(directory.path()).output().unwrap();
    assert!(output.status.success(), "exit status {:?}", output.status);
    check(&std::fs::read(file("y")).unwrap(), "library");
}

#[test]
fn a_family_without_an_emitter_is_an_error() {
    let target = options().target;
    let error = compile(&plan(&target), &BackendOptions::new(target))
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("there is no emitter for kernels of the family `double_matmul`"),
        "{error}"
    );
}

/// A target from outside: another machine with the vectors of AVX2, and smaller caches.
static SMALL: Machine = Machine {
    name: "small",
    cpus: &[],
    ..AVX2
};

#[test]
#[cfg(target_arch = "x86_64")]
fn models_run_with_a_machine_from_outside() {
    let target = Target {
        machine: &SMALL,
        ..Target::new("x86-64-v3", "")
    };
    let mut code = compile(&plan(&target), &back_end(&target)).unwrap();
    let mut y = vec![0xFF; 7 * 21 * 8];
    code.run(&[&bytes(&tensors()[0])], &mut [&mut y]).unwrap();
    check(&y, "a machine from outside");
}
