//! Each kind of node that the interpreter runs itself, and each structural operator on containers, in the interpreter and natively, with values that
//! are known when native code is made and with values that only a run knows.
//!
//! The kinds come from the interpreter's planner and from the registry: one without a case here fails the test.

use frazil::ir::{AttributeValue, Graph};
use frazil::runtime::interp::Interpreter;
use frazil::{CallError, EngineKind, EngineOptions, Loaded, Model, Session, Tensor, Value};
use frazil_recorded::compare::{self, Tolerance};
use frazil_recorded::value::Outcome;
use frazil_recorded::workspace::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Kinds that no source of a function has, and where else they are run.
const MADE_BY_PASSES: &[(&str, &str)] = &[
    (
        "prim::TensorExprGroup",
        "the native engine makes them of what it compiles in methods that it does not compile as a whole; crates/frazil/tests/suite/courses.rs",
    ),
    (
        "prim::FunctionalGraph",
        "create-functional-graphs makes them; passes/tests/suite/properties.rs runs them in the interpreter",
    ),
    (
        "prim::ModuleContainerIndex",
        "modules alone have such nodes; forms/interface_module_list of tests/fixtures/language runs one on both engines",
    ),
    ("prim::EnumValue.int", "one kind with its other overloads"),
    ("prim::EnumValue.float", "one kind with its other overloads"),
    ("prim::EnumValue.str", "one kind with its other overloads"),
];

/// A case: its name and its source, or a graph as text. `C` in the source is replaced by a
/// condition, `N` by an integer from 0 to 3; once by such that are known when code is made, and once by such that are read from a tensor.
const CASES: &[(&str, &str)] = &[
    (
        "branch",
        "
def f(x, n: int):
    if C:
        y = x + 1
        k = 1
    else:
        y = x * 2
        k = 2
    return y, k
",
    ),
    (
        "branch_in_branch",
        "
def f(x, n: int):
    y = x
    if C:
        if N > 1:
            y = y - 1
        else:
            y.mul_(3)
    return y, x
",
    ),
    (
        "counted_loop",
        "
def f(x, n: int):
    y = x
    for i in range(N):
        y = y * 2 + i
    return y
",
    ),
    (
        "loop_with_condition",
        "
def f(x, n: int):
    y = x
    i = 0
    while i < N and C:
        y = torch.cat([y, x])
        i += 1
    return y, i
",
    ),
    (
        "break_and_continue",
        "
def f(x, n: int):
    y = x
    for i in range(5):
        if i == N:
            continue
        if i > 3:
            break
        y = y + i
    return y
",
    ),
    (
        "early_return",
        "
def f(x, n: int):
    for i in range(3):
        if i == N:
            return x * i
    return x - 1
",
    ),
    (
        "raise",
        "
def f(x, n: int):
    if C:
        raise ValueError('no: ' + str(n))
    else:
        y = x + N
    return y
",
    ),
    (
        "optional",
        "
def g(x: Optional[Tensor], y):
    if x is None:
        return y
    return x + y

def f(x, n: int):
    z = torch.jit.annotate(Optional[Tensor], None)
    if C:
        z = x * 2
    k = torch.jit.annotate(Optional[int], N)
    return g(z, x), torch.jit._unwrap_optional(k) + 1
",
    ),
    (
        "fork",
        "
def g(x, n: int):
    if n > 1:
        return x * n
    return x - 1

def f(x, n: int):
    a = torch.jit.fork(g, x, N)
    b = torch.jit.fork(g, x, 3)
    return torch.jit.wait(a) + torch.jit.wait(b)
",
    ),
    (
        "fork_that_raises",
        "
def g(x, c: bool):
    if c:
        raise ValueError('in a fork')
    return x

def f(x, n: int):
    a = torch.jit.fork(g, x, C)
    return torch.jit.wait(a) + 1
",
    ),
    (
        "tuples",
        "
def f(x, n: int):
    t = (x, N, C)
    a, b, c = t
    s = t[1:]
    return t[0] + 1, b, c, s[0], t[-1], (t, (a, t[1]))
",
    ),
    (
        "tuple_of_equal_types",
        "
def f(x, n: int):
    t = (x, x + 1, x + 2)
    return t[0], t[-1]
",
    ),
    (
        "lists",
        "
def f(x, n: int):
    l = [x, x * 2, x * 3]
    a, b, c = l
    l.append(a + c)
    l[0] = b
    k = [N, 2, 3]
    k.append(5)
    p, q, r, s = k
    return l[N], l, k[1:], p + s
",
    ),
    (
        "dictionaries",
        "
def f(x, n: int):
    d = {'a': x, 'b': x * 2}
    if C:
        d['c'] = x - 1
    k = {1: N, 2: 3}
    return d['b'], d, 'c' in d, k[1], [key for key in d]
",
    ),
    (
        "numbers_as_tensors",
        "
def f(x, n: int):
    t = torch.tensor(N)
    return t + x, torch.tensor([N, 2]), int(t)
",
    ),
    (
        "objects",
        "
class Pair:
    def __init__(self, x: Tensor, n: int):
        self.x = x
        self.n = n
    def sum(self, y):
        self.n += 1
        return self.x + y * self.n

def f(x, n: int):
    p = Pair(x, N)
    a = p.sum(x)
    if C:
        p.x = a
    return p.sum(x), p.n, p.x
",
    ),
    (
        "contexts",
        "
class Scope:
    def __init__(self):
        self.depth = 0
    def __enter__(self):
        self.depth += 1
        return self.depth
    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.depth -= 1

def f(x, n: int):
    scope = Scope()
    with scope as inner:
        y = x + inner + scope.depth
        if C:
            y = y * N
    return y, scope.depth
",
    ),
    (
        "enumerations",
        "
class Color(Enum):
    RED = 1
    GREEN = 2

def f(x, n: int):
    c = Color.RED
    if C:
        c = Color.GREEN
    return x * c.value, c.name, c == Color.RED
",
    ),
    (
        "attributes",
        "
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
    def forward(self, x):
        return x * self.w

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.past = torch.zeros(3)
        self.calls = 0
    def forward(self, x, n: int):
        self.calls += 1
        if C:
            self.past = self.past + x
        return self.inner(x), self.past, self.calls + N
model = Net().eval()
",
    ),
    (
        "views_of_negatives",
        "
def f(x, n: int):
    t = torch._neg_view(x)
    y = t + 1
    t.add_(N)
    return y, t * 2, t[1:] - 1, x
",
    ),
    (
        "print",
        "
def f(x, n: int):
    print('so', n)
    return x
",
    ),
    (
        "containers.ir",
        "graph(%x : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %k : Tensor = prim::NumToTensor(%n)
  %y : Tensor = aten::mul(%x, %k)
  %t : (Tensor, int, Tensor) = prim::TupleConstruct(%x, %n, %y)
  %a : Tensor = prim::TupleIndex(%t, %zero)
  %s : (int, Tensor) = prim::TupleSlice[beg=1, end=3](%t)
  %i : int, %b : Tensor = prim::TupleUnpack(%s)
  %o : int = prim::unchecked_unwrap_optional(%i)
  %p : Tensor = prim::VarConcat(%a, %b, %x, %zero)
  %q : Tensor = prim::VarStack(%a, %b, %one)
  return (%p, %q, %o, %s)
",
    ),
    (
        "batched_products.ir",
        "graph(%x : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %row : Tensor = aten::unsqueeze(%x, %zero)
  %column : Tensor = aten::unsqueeze(%x, %one)
  %twice : Tensor = aten::mul(%column, %n)
  %sum : Tensor = prim::MMTreeReduce(%row, %row, %column, %twice)
  %p : Tensor, %q : Tensor = prim::MMBatchSide[side=0](%row, %column, %twice)
  %r : Tensor, %s : Tensor = prim::MMBatchSide[side=1](%column, %row, %row)
  return (%sum, %p, %q, %r, %s)
",
    ),
    (
        "isinstance_of_a_union",
        "
# Not known when the method is frozen.
def choose(c: bool, x, n: int) -> Union[int, Tensor, List[Tensor]]:
    if c:
        return x
    if n == 0:
        return [x * 2]
    return n

def union(v: Union[int, Tensor, List[Tensor]], x):
    if isinstance(v, int):
        return x + v
    if isinstance(v, torch.Tensor):
        return x * v
    return x - v[0]

def f(x, n: int):
    return union(choose(C, x, n), x)
",
    ),
    (
        "isinstance",
        "
class A:
    def __init__(self):
        self.n = 1

def kind(v: Any) -> int:
    if isinstance(v, torch.Tensor):
        return 1
    if isinstance(v, bool):
        return 2
    if isinstance(v, int):
        return 3
    if isinstance(v, float):
        return 4
    if isinstance(v, str):
        return 5
    if torch.jit.isinstance(v, List[int]):
        return 6
    if torch.jit.isinstance(v, List[Tensor]):
        return 7
    if torch.jit.isinstance(v, Dict[str, int]):
        return 8
    if torch.jit.isinstance(v, Tuple[int, Tensor]):
        return 9
    if torch.jit.isinstance(v, Optional[complex]):
        return 10
    if isinstance(v, A):
        return 11
    return 12

def union(v: Union[int, Tensor, List[Tensor]], x):
    if isinstance(v, int):
        return x + v
    if isinstance(v, torch.Tensor):
        return x * v
    return x - v[0]

def f(x, n: int):
    kinds = [kind(x), kind(C), kind(N), kind(0.5), kind('s'), kind([N]), kind([x]), kind({'a': N}), kind((N, x)), kind(None), kind(2j), kind(A()), kind([0.5])]
    return kinds, union(N, x), union(x, x), union([x, x], x)
",
    ),
];

/// Conditions and integers that are known when code is made, and such that are read from tensors.
const KNOWN: [(&str, &str); 2] = [("(n > 1)", "n"), ("bool((x > 0).any())", "int((x > 0).sum().item())")];

fn model(source: &str) -> Model {
    let file = if source.starts_with("graph(") {
        "case.ir"
    } else {
        "case.py"
    };
    let loaded = Session::new().load_bytes(Path::new(file), source.as_bytes().to_vec());
    let mut model = match loaded {
        Ok(Loaded::Model(model)) => model,
        Ok(graphs) if file == "case.ir" => graphs.to_model("forward").expect("there is one graph"),
        Ok(Loaded::Graphs(graphs)) => graphs.to_model(),
        Err(e) => panic!("{e}\n{source}"),
    };
    model.eval();
    model
}

fn arguments(positive: usize, n: i64) -> Vec<Value> {
    let x: Vec<f32> = (0..3)
        .map(|i| if i < positive { 0.3 + i as f32 } else { -1.7 })
        .collect();
    vec![
        Tensor::from_f32(&x, &[3]).expect("three elements").into(),
        Value::Int(n),
    ]
}

/// The kinds of nodes in a graph, in its blocks and in the graphs of its forks.
fn kinds_of(graph: &Graph, found: &mut BTreeSet<String>) {
    for node in graph.all_nodes() {
        found.insert(graph.kind_name(node).to_owned());
        for attribute in graph.attributes(node) {
            if let AttributeValue::Graph(inner) = &attribute.value {
                kinds_of(inner, found);
            }
        }
    }
}

/// Runs a case in every way on several arguments, twice each, on instances that keep what calls changed. Adds what is wrong to `wrong`.
fn run(name: &str, source: &str, found: &mut BTreeSet<String>, wrong: &mut Vec<String>) {
    let model = model(source);
    let module = model.module().clone();
    for (_, function) in module.unit.functions() {
        kinds_of(&function.graph, found);
    }
    let method = if source.contains("def f(") { "f" } else { "forward" };
    let plain = Interpreter::with_module(model.session().registry().clone(), module).expect("an instance");
    let mut engines = [EngineKind::Interpreter, EngineKind::Native].map(|kind| {
        let options = EngineOptions::default().kind(kind).methods(vec![method.to_owned()]);
        model.engine(&options).unwrap_or_else(|e| panic!("{name}: {e}"))
    });
    for (positive, n) in [(0, 0), (0, 3), (2, 1), (3, 2), (0, 0), (3, 2)] {
        let args = arguments(positive, n);
        let want = match plain.call(method, &args) {
            Ok(value) => Outcome::Value(value),
            Err(e) => Outcome::Raises {
                text: e.to_string(),
                user: true,
            },
        };
        for (engine, what) in engines.iter_mut().zip(["interpreter", "native"]) {
            let given = arguments(positive, n);
            let got = match engine.call(method, &given) {
                Ok(value) => Outcome::Value(value),
                Err(CallError::Raised(text)) => Outcome::Raises { text, user: true },
                Err(CallError::Failed(e)) => {
                    wrong.push(format!("{name}, {what}, {positive} positive, n = {n}: {e}"));
                    continue;
                }
            };
            let differs = same(&want, &got).or_else(|| {
                let (want, got) = (Outcome::Value(args[0].clone()), Outcome::Value(given[0].clone()));
                same(&want, &got).map(|what| format!("the argument after the call: {what}"))
            });
            if let Some(how) = differs {
                wrong.push(format!("{name}, {what} engine, {positive} positive, n = {n}: {how}"));
            }
        }
    }
    let notes = engines[1].notes();
    let interpreted = notes.iter().any(|note| note.contains("interpreter"));
    let case = name.split(',').next().unwrap_or_default();
    if interpreted != INTERPRETED.iter().any(|(listed, _)| *listed == case) {
        wrong.push(format!("{name}: the notes of the native engine are {notes:?}"));
    }
}

/// Cases whose method is not compiled as a whole, with the reason. All others are.
const INTERPRETED: &[(&str, &str)] = &[
    ("contexts", "nothing compiles Enter and Exit"),
    ("print", "compiled code prints nothing"),
    ("views_of_negatives", "programs do not say how the negatives are viewed"),
];

fn same(want: &Outcome, got: &Outcome) -> Option<String> {
    if let (Outcome::Raises { text: want, .. }, Outcome::Raises { text: got, .. }) = (want, got) {
        // The same message at the end, whatever stands in front of it.
        let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
        return (last(want) != last(got)).then(|| format!("{got:?} instead of {want:?}"));
    }
    compare::outcomes(want, got, Tolerance::EXACT)
        .err()
        .map(|e| e.to_string())
}

#[test]
fn engines_agree_on_each_kind_of_node() {
    let mut wrong = Vec::new();
    let mut found = BTreeSet::new();
    for (name, source) in CASES {
        for (how, (condition, number)) in ["known", "unknown"].iter().zip(KNOWN) {
            run(
                &format!("{name}, {how}"),
                &replaced(source, condition, number),
                &mut found,
                &mut wrong,
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let session = Session::new();
    let structural = session
        .registry()
        .entries()
        .map(|(name, _)| name.to_owned())
        .filter(|name| {
            let own = name.strip_prefix("prim::").unwrap_or_default();
            own.starts_with(|c: char| c.is_ascii_uppercase()) || own.starts_with("unchecked")
        });
    let by_passes: BTreeMap<&str, &str> = MADE_BY_PASSES.iter().copied().collect();
    let missing: Vec<String> = planned_kinds()
        .into_iter()
        .chain(structural)
        .filter(|kind| !found.contains(kind) && !by_passes.contains_key(kind.as_str()))
        .collect();
    assert!(missing.is_empty(), "no case has a node of these kinds: {missing:?}");
    let stale: Vec<&&str> = by_passes.keys().filter(|k| found.contains(**k)).collect();
    assert!(stale.is_empty(), "listed as without a case, and have one: {stale:?}");
}

/// The source with the words `C` and `N` replaced.
fn replaced(source: &str, condition: &str, number: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in source.chars().chain(['\0']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        out.push_str(match word.as_str() {
            "C" => condition,
            "N" => number,
            other => other,
        });
        word.clear();
        out.push(c);
    }
    out.trim_end_matches('\0').to_owned()
}

/// The kinds of nodes that the interpreter's planner knows by name.
fn planned_kinds() -> BTreeSet<String> {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a source of this repository");
    let symbols = read("crates/ir/src/symbols.rs");
    let names: BTreeMap<&str, &str> = symbols
        .lines()
        .filter_map(|line| line.trim().strip_suffix("\";")?.split_once(" = \""))
        .collect();
    let planner = read("crates/runtime/src/interp/plan.rs");
    let (_, action) = planner.split_once("fn action(").expect("the planner has `action`");
    let (action, _) = action.split_once("\n    fn ").expect("another function follows");
    let symbol = |rest: &str| {
        let end = rest
            .find(|c: char| !c.is_ascii_uppercase() && c != '_')
            .unwrap_or(rest.len());
        names.get(&rest[..end]).map(|name| (*name).to_owned())
    };
    let mut kinds: BTreeSet<String> = action
        .split("symbols::")
        .skip(1)
        .filter(|r| r.starts_with("PRIM_"))
        .filter_map(symbol)
        .collect();
    kinds.extend(
        action
            .split('"')
            .filter(|s| s.starts_with("prim::") && !s.contains(' '))
            .map(str::to_owned),
    );
    assert!(kinds.len() > 15, "{kinds:?}");
    kinds
}
