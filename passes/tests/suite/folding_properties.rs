//! Constant propagation never changes the observable properties of a tensor: its dtype, sizes and strides, its elements bit by bit, and which values
//! share its memory or identity. Checked on random graphs over constants, views of them and writes. An incorrect fold is detected.

use crate::common;

use common::{Dice, number, registry};
use frazil_ir::{Builder, Constant, DType, Graph, TensorData, symbols, types};
use frazil_passes::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use frazil_passes::{PassManager, PassRegistry};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::{Registry, Tensor, Value};
use frazil_syntax::{parse_graph, print_graph};
use std::fmt::Write;
use std::sync::Arc;

const FOLD: &str = "constant-propagation{like-pytorch=false}";

/// The start of each graph: numbers for arguments, and codes of dtypes.
const PRELUDE: &str = "graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %last : int = prim::Constant[value=-1]()
  %many : int = prim::Constant[value=12]()
  %three : int = prim::Constant[value=3]()
  %no : bool = prim::Constant[value=0]()
  %half : float = prim::Constant[value=0.5]()
  %long : int = prim::Constant[value=4]()
  %float16 : int = prim::Constant[value=5]()
  %float : int = prim::Constant[value=6]()
  %double : int = prim::Constant[value=7]()
  %bool : int = prim::Constant[value=11]()
  %bfloat16 : int = prim::Constant[value=15]()
  %channels_last : int = prim::Constant[value=2]()
  %shape : int[] = prim::Constant[value=[2, 1, 2, 3]]()
  %wide : int[] = prim::Constant[value=[2, 4, 2, 3]]()
  %order : int[] = prim::Constant[value=[0, 2, 3, 1]]()
  %back : int[] = prim::Constant[value=[3, 0, 1, 2]]()
";

/// Writes a random graph over 4-d tensors. Their observable properties are returned; they themselves are not, since folding keeps tensors that leave the graph.
struct Writer {
    random: Dice,
    text: String,
    tensors: Vec<String>,
    seen: Vec<String>,
    next: usize,
}

impl Writer {
    fn define(&mut self, ty: &str, op: &str) -> String {
        self.next += 1;
        let name = format!("%v{}", self.next);
        writeln!(self.text, "  {name} : {ty} = {op}").unwrap();
        name
    }

    fn dtype(&mut self) -> &'static str {
        let dtypes: &[&'static str] = &["%long", "%float16", "%float", "%double", "%bool", "%bfloat16"];
        self.random.pick::<&str>(dtypes)
    }

    fn tensor(&mut self) -> String {
        self.random.pick(&self.tensors).clone()
    }

    /// Adds a constant of size `[2, 1, 2, 3]` or `[2, 4, 2, 3]`.
    fn fresh(&mut self) {
        let dtype = self.dtype();
        let row = self.define("Tensor", "aten::arange(%many, %none, %none, %none, %none)");
        let shaped = self.define("Tensor", &format!("aten::view({row}, %shape)"));
        let v = self.define("Tensor", &format!("aten::to({shaped}, {dtype}, %no, %no, %none)"));
        self.tensors.push(v);
    }

    fn statement(&mut self) {
        let a = self.tensor();
        let op = match self.random.below(20) {
            0 => return self.fresh(),
            1 => format!("aten::permute({a}, {})", self.random.pick(&["%order", "%back"])),
            2 => format!("aten::transpose({a}, %one, {})", self.random.pick(&["%two", "%last"])),
            3 => format!(
                "aten::slice({a}, {}, %zero, %many, %two)",
                self.random.pick(&["%zero", "%three"])
            ),
            4 => format!(
                "aten::contiguous({a}, {})",
                self.random.pick(&["%zero", "%channels_last"])
            ),
            5 => {
                let dtype = self.dtype();
                format!("aten::to({a}, {dtype}, %no, %no, %none)")
            }
            6 => format!(
                "aten::clone({a}, {})",
                self.random.pick(&["%none", "%zero", "%channels_last"])
            ),
            7 => format!("aten::{}({a})", self.random.pick(&["neg", "relu", "detach", "alias"])),
            8 => {
                let number = *self.random.pick(&["%half", "%one"]);
                format!("aten::{}({a}, {number})", self.random.pick(&["mul", "ge"]))
            }
            9 => {
                let narrow = self.define("Tensor", &format!("aten::select({a}, %three, %zero)"));
                format!("aten::unsqueeze({narrow}, {})", self.random.pick(&["%one", "%three"]))
            }
            10 => {
                let narrow = self.define("Tensor", &format!("aten::select({a}, %one, %zero)"));
                let first = self.define("Tensor", &format!("aten::unsqueeze({narrow}, %one)"));
                let [d0, d2, d3] =
                    ["%zero", "%two", "%three"].map(|d| self.define("int", &format!("aten::size({first}, {d})")));
                let sizes = self.define("int[]", &format!("prim::ListConstruct({d0}, %long, {d2}, {d3})"));
                format!("aten::expand({first}, {sizes}, %no)")
            }
            11 => {
                let list = self.define("Tensor[]", &format!("prim::ListConstruct({a}, {a})"));
                format!("aten::cat({list}, {})", self.random.pick(&["%zero", "%last"]))
            }
            12 => {
                let flat = self.define("Tensor", &format!("aten::flatten({a}, %zero, %one)"));
                format!("aten::unsqueeze({flat}, %zero)")
            }
            // Writes must not affect values that were folded before or are folded after.
            13..=14 => {
                let whole = self.define("Tensor", &format!("aten::clone({a}, %none)"));
                self.tensors.push(whole.clone());
                let part = self.define("Tensor", &format!("aten::slice({whole}, %zero, %zero, %one, %one)"));
                self.tensors.push(part.clone());
                format!("aten::zero_({})", self.random.pick(&[whole, part]))
            }
            15 => format!("aten::zero_({a})"),
            _ => return self.look(&a),
        };
        let v = self.define("Tensor", &op);
        self.tensors.push(v);
    }

    /// Returns the observable properties of `a`.
    fn look(&mut self, a: &str) {
        let b = self.tensor();
        let looks = [
            ("int[]", format!("aten::size({a})")),
            ("int[]", format!("aten::stride({a})")),
            ("int", format!("prim::dtype({a})")),
            ("bool", format!("aten::is_contiguous({a})")),
            ("bool", format!("aten::__is__({a}, {b})")),
            ("Tensor", format!("aten::clone({a}, %none)")),
        ];
        for (ty, op) in looks {
            let v = self.define(ty, &op);
            self.seen.push(v);
        }
    }
}

fn random_text(seed: u64) -> String {
    let mut w = Writer {
        random: Dice::new(seed),
        text: PRELUDE.to_owned(),
        tensors: vec!["%x".to_owned()],
        seen: Vec::new(),
        next: 0,
    };
    w.fresh();
    w.fresh();
    for _ in 0..8 + w.random.below(16) {
        w.statement();
    }
    let a = w.tensors[1 + w.random.below(w.tensors.len() - 1)].clone();
    w.look(&a);
    let seen = w.seen.join(", ");
    writeln!(w.text, "  return ({seen})").unwrap();
    w.text
}

/// Returns a value bit by bit as text; tensors with their strides.
fn shown(value: &Value) -> String {
    match value.as_tensor() {
        Some(t) => {
            let bytes = t.to_bytes().unwrap();
            format!("{:?} {:?} {:?} {bytes:?}", t.dtype(), t.sizes(), t.strides())
        }
        None => format!("{value:?}"),
    }
}

/// Returns the observed properties of the graph's tensors, or the error.
fn results(registry: &Arc<Registry>, graph: &Graph) -> Result<Vec<String>, String> {
    let numbers: Vec<f32> = (0..12).map(|i| i as f32 / 4.0 - 1.0).collect();
    let x = Tensor::from_f32(&numbers, &[2, 1, 2, 3]).unwrap();
    let out = Interpreter::new(registry.clone()).run_graph(graph, &[x.into()]);
    out.map(|values| values.iter().map(shown).collect())
        .map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())
}

/// Runs the passes on the graph of `seed`. Returns the number of removed nodes, or the difference.
fn check(registry: &Arc<Registry>, seed: u64, manager: &PassManager) -> Result<usize, String> {
    let text = random_text(seed);
    let graph = parse_graph(registry.ctx(), &text)
        .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"))
        .graph;
    let before = results(registry, &graph);
    // As in PyTorch, a call that raises and whose result is unused may be removed.
    if before.is_err() {
        return Ok(0);
    }
    let mut after = graph.clone();
    manager
        .run_on_graph(&mut after, &**registry)
        .map_err(|e| format!("seed {seed}: {e}\n{text}"))?;
    let now = results(registry, &after);
    if before != now {
        let folded = print_graph(&after);
        return Err(format!(
            "seed {seed}: gave {before:?}\nand gives {now:?}\n{text}became\n{folded}"
        ));
    }
    let computed = |g: &Graph| {
        g.all_nodes()
            .iter()
            .filter(|n| g.kind(**n) != symbols::PRIM_CONSTANT)
            .count()
    };
    Ok(computed(&graph) - computed(&after))
}

fn manager(first: &str) -> PassManager {
    let mut manager = PassManager::from_pipeline(&PassRegistry::standard(), first).unwrap();
    manager.verify_each(true);
    manager
}

#[test]
fn folding_changes_nothing_that_a_program_sees() {
    let registry = registry();
    let (mut folded, seeds) = (0, number("FRAZIL_SEEDS", 400));
    for seed in 0..seeds {
        match check(&registry, seed, &manager(FOLD)) {
            Ok(nodes) => folded += nodes,
            Err(wrong) => panic!("{wrong}"),
        }
    }
    // A pass that does nothing would also keep the results.
    assert!(folded as u64 > 4 * seeds, "only {folded} nodes were folded");
}

/// Replaces each constant tensor by the result of a function, if it returns one.
struct Changes(fn(&TensorData) -> Option<TensorData>);

impl GraphPass<TorchScript> for Changes {
    fn run(&self, graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
        for node in graph.all_nodes() {
            let Some(output) = graph.output(node) else { continue };
            if let Some(Constant::Tensor(old)) = graph.constant(output)
                && let Some(new) = (self.0)(&old)
            {
                let constant = Constant::Tensor(Arc::new(new));
                let value = Builder::before(graph, node).constant_typed(constant, types::TENSOR);
                graph.replace_all_uses_with(output, value);
                graph.erase(node);
            }
        }
        Ok(())
    }
}

/// Treats a copy as the original.
struct SharesCopies;

impl GraphPass<TorchScript> for SharesCopies {
    fn run(&self, graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
        for node in graph.all_nodes() {
            if graph.kind_name(node) == "aten::clone"
                && let (Some(output), Some(source)) = (graph.output(node), graph.operand(node, 0))
            {
                graph.replace_all_uses_with(output, source);
                graph.erase(node);
            }
        }
        Ok(())
    }
}

#[test]
fn folds_that_change_something_are_found() {
    let registry = registry();
    let found = |name: &str, pass: fn() -> AnyPass| {
        let manager = || manager(FOLD).with("wrong", pass());
        let found = (0..200).any(|seed| check(&registry, seed, &manager()).is_err());
        assert!(found, "{name} was not found");
    };
    found("another dtype", || {
        AnyPass::graph(Changes(|t| {
            (t.dtype == DType::Half).then(|| TensorData {
                dtype: DType::BFloat16,
                ..t.clone()
            })
        }))
    });
    found("other strides", || {
        let row_major = |t: &TensorData| TensorData::contiguous(t.dtype, &t.sizes, t.to_bytes().into_owned()).ok();
        AnyPass::graph(Changes(row_major))
    });
    found("other aliases", || AnyPass::graph(SharesCopies));
}
