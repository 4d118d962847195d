//! Segmented execution: methods whose control flow depends on elements, or which keep state, return the interpreter's results, call after call.
#![cfg(feature = "codegen")]

use frazil::ir::{DType, types};
use frazil::runtime::value::{DictValue, ListValue};
use frazil::{Engine, EngineKind, EngineOptions, Loaded, Model, Session, Tensor, Value};
use indexmap::IndexMap;
use std::path::Path;

fn model(source: &str) -> Model {
    let loaded = Session::new().load_bytes(Path::new("net.py"), source.as_bytes().to_vec());
    match loaded.expect("it compiles") {
        Loaded::Model(model) => model,
        Loaded::Graphs(graphs) => graphs.to_model(),
    }
}

fn engine(model: &Model, kind: EngineKind, method: &str) -> Engine {
    // The interpreter runs the method only if the program raises.
    let options = EngineOptions::default()
        .kind(kind)
        .strict(true)
        .methods(vec![method.to_owned()]);
    model.engine(&options).expect("it can be run")
}

/// Returns a value as text: tensors with dtypes, sizes and elements.
fn text(value: &Value) -> String {
    match value {
        Value::Tensor(t) => {
            let t = t.get();
            let elements: Vec<String> = t.to_f64_vec().iter().map(|x| format!("{x:.4}")).collect();
            format!("{}{:?}{elements:?}", t.dtype(), t.sizes())
        }
        Value::List(_) | Value::Tuple(_) => {
            let items = value.items().unwrap_or_default();
            let items: Vec<String> = items.iter().map(text).collect();
            format!("({})", items.join(", "))
        }
        other => format!("{other:?}"),
    }
}

/// Calls `method` on both engines with the arguments that `arguments` makes for each round. After each call, all results so far and the
/// arguments must be equal. Returns the results of the last call.
fn agree(source: &str, method: &str, rounds: usize, arguments: impl Fn(usize) -> Vec<Value>) -> String {
    let model = model(source);
    let mut engines = [EngineKind::Native, EngineKind::Interpreter].map(|kind| engine(&model, kind, method));
    let mut seen: [Vec<Value>; 2] = Default::default();
    let mut last = String::new();
    for round in 0..rounds {
        let outcomes = [0, 1].map(|i| {
            let given = arguments(round);
            let result = engines[i].call(method, &given);
            seen[i].extend(given);
            match result {
                Ok(value) => seen[i].push(value),
                Err(error) => seen[i].push(Value::str(error.to_string())),
            }
            seen[i].iter().map(text).collect::<Vec<_>>()
        });
        assert_eq!(
            outcomes[0],
            outcomes[1],
            "round {round} of {method}:{:#?}",
            engines[0].notes()
        );
        last = outcomes[1].last().cloned().unwrap_or_default();
    }
    assert!(
        engines[0].notes().iter().any(|note| note.contains("segment")),
        "{:?}",
        engines[0].notes()
    );
    last
}

fn floats(items: &[f32]) -> Value {
    Tensor::from_f32(items, &[items.len() as i64])
        .expect("as many elements")
        .into()
}

#[test]
fn attributes_that_calls_change() {
    let source = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('mean', torch.zeros(3))
        self.past = torch.zeros(2)
        self.calls = 0
    def forward(self, x):
        self.mean.mul_(0.5).add_(x[:3], alpha=0.5)
        self.calls += 1
        joined = torch.cat([self.past, x])
        self.past = joined[-2:]
        return joined * 2, self.mean, self.calls, self.mean[1:]
model = Net().eval()
";
    // The result is the buffer itself and a view of it, so that later calls change it.
    agree(source, "forward", 4, |round| {
        vec![floats(&[1.0, 2.0, round as f32, 4.0])]
    });
}

#[test]
fn objects_shared_by_attributes_stay_shared() {
    let source = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.zeros(2)
        self.b = self.a
        self.other = torch.ones(2)
    def forward(self, x):
        self.a.add_(x)
        if bool((self.b > 2).any()):
            self.other = self.a
        self.other.mul_(2)
        return self.a + 0, self.b + 0, self.other + 0
model = Net().eval()
";
    agree(source, "forward", 4, |_| vec![floats(&[1.0, 0.5])]);
}

#[test]
fn loops_and_conditions_on_elements() {
    let source = "
def f(x, limit: int):
    n = 0
    history: List[float] = []
    while float(x.norm()) > 1.0 and n < limit:
        if bool(x[0] > x[1]):
            x = x * 0.5
        else:
            x = x.flip(0) - 0.25
        history.append(float(x.sum()))
        n += 1
    return x, n, history
";
    let last = agree(source, "f", 3, |round| {
        vec![floats(&[8.0, 3.0 + round as f32, -2.0]), Value::Int(20)]
    });
    assert!(last.ends_with("4, (5.5, 2.75, 1.375, 0.6875))"), "{last}");
}

#[test]
fn sizes_that_depend_on_elements() {
    let source = "
def f(x):
    y = torch.relu(x) + 1
    where = torch.nonzero(x > 0).squeeze(1)
    kept = y[x > 0]
    out = torch.zeros(6)
    out[where] = kept * 3
    n = int(x.max())
    return where, kept * 2, out, torch.arange(n) * 2, y
";
    agree(source, "f", 3, |round| {
        vec![floats(&[1.0, -1.0, 3.0, round as f32 - 0.5, 0.0, 5.0])]
    });
}

#[test]
fn tensors_made_for_a_call_alone_are_not_taken_for_later_ones() {
    // The mask is made where the call needs it, with the id that the result of the call has afterwards.
    let source = "
def f(x):
    kept = torch.masked_select(x, torch.triu(torch.ones([3, 3], dtype=torch.bool), 1))
    if bool((kept > 2).any()):
        kept = kept * 2
    return kept + 1, torch.masked_select(kept, kept > 0)
";
    agree(source, "f", 3, |round| {
        let items: Vec<f32> = (0..9).map(|i| i as f32 - round as f32).collect();
        vec![Tensor::from_f32(&items, &[3, 3]).expect("nine elements").into()]
    });
}

#[test]
fn views_of_arguments_that_negate() {
    let source = "
def f(x):
    found = torch.masked_select(x, x > 2)
    if bool((found > 5).any()):
        found = found * 2
    return torch._neg_view(x), torch._neg_view(x)[0], torch._neg_view(torch._neg_view(x)).t(), found
";
    agree(source, "f", 3, |round| {
        let items: Vec<f32> = (0..9).map(|i| i as f32 - round as f32).collect();
        vec![Tensor::from_f32(&items, &[3, 3]).expect("nine elements").into()]
    });
}

#[test]
fn arguments_that_are_written() {
    let source = "
def f(x, y):
    x.add_(1)
    y[0] = 7
    return x * y
";
    agree(source, "f", 2, |round| {
        vec![floats(&[1.0, 2.0]), floats(&[round as f32, 1.0])]
    });
    // One variable, passed twice.
    agree(source, "f", 2, |_| {
        let x = floats(&[1.0, 2.0]);
        vec![x.clone(), x]
    });
}

#[test]
fn exceptions_on_the_way_change_nothing_twice() {
    let source = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(2)
    def forward(self, x):
        self.total.add_(x)
        if bool(self.total[0] > 2):
            raise ValueError('too much')
        return self.total * 1
model = Net().eval()
";
    let last = agree(source, "forward", 4, |_| vec![floats(&[1.0, 0.0])]);
    assert!(last.contains("too much"), "{last}");
}

#[test]
fn objects_made_on_the_way() {
    let source = "
class Stack:
    def __init__(self):
        self.items: List[Tensor] = []
        self.depth = 0
    def push(self, x: Tensor):
        self.items.append(x)
        self.depth += 1

def f(x, n: int):
    stack = Stack()
    for i in range(n):
        stack.push(x * i)
        if bool(stack.items[-1].sum() > 5):
            break
    return torch.stack(stack.items), stack.depth
";
    agree(source, "f", 3, |round| {
        vec![floats(&[1.0, 0.5]), Value::Int(round as i64 + 3)]
    });
}

#[test]
fn memory_that_two_arguments_share_is_left_to_the_interpreter() {
    let source = "
def f(x, y):
    x.add_(1)
    return y * 2
";
    agree(source, "f", 2, |_| {
        let all = Tensor::from_f32(&[1.0, 2.0, 3.0], &[3]).expect("three elements");
        let part = |offset| all.as_strided(&[2], &[1], offset).expect("inside");
        assert_eq!(all.dtype(), DType::Float);
        vec![part(0).into(), part(1).into()]
    });
}

/// Returns the results of `method` on each of the arguments, and the number of segments that had been compiled after each.
fn segments(source: &str, method: &str, arguments: &[Vec<Value>]) -> (Vec<String>, Vec<usize>) {
    let mut engine = engine(&model(source), EngineKind::Native, method);
    let mut compiled = Vec::new();
    let results = arguments.iter().map(|given| {
        let result = engine.call(method, given).expect("it runs");
        let notes = engine.notes();
        compiled.push(notes.iter().filter(|note| note.contains("segment")).count());
        text(&result)
    });
    (results.collect(), compiled)
}

#[test]
fn numbers_are_told_when_code_runs() {
    let source = "
def f(table, start, steps: int):
    out: List[int] = []
    score = 0.0
    tok = 1
    h = start
    n = 0
    while tok != 0 and n < steps:
        h = h * 0.5 + torch.embedding(table, torch.tensor([tok]))[0]
        p = h.softmax(0)
        tok = int(p.argmax())
        score = score + float(p[tok])
        out.append(tok)
        n += 1
    return out, h, score
";
    let rows: [f32; 25] = [
        0.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 3.0, 1.0, 0.0, 5.0, 0.0, 0.0, 2.0, 0.0, 0.0, 4.0, 0.0, 0.0, 1.0, 1.0, 6.0,
        2.0, 0.0, 0.0,
    ];
    let table = Tensor::from_f32(&rows, &[5, 5]).expect("25 elements");
    let call = |start: [f32; 5]| vec![table.clone().into(), floats(&start), Value::Int(4)];
    let (results, compiled) = segments(
        source,
        "f",
        &[
            call([0.0; 5]),
            call([0.0, 0.0, 0.0, 8.0, 0.0]),
            call([0.0, 8.0, 0.0, 0.0, 0.0]),
            call([0.0, 0.0, 0.0, 0.0, 8.0]),
            call([0.0, 0.0, 9.0, 0.0, 8.0]),
        ],
    );
    // PyTorch's results: tokens and scores.
    let wanted = [
        ("((2, 0),", "1.66668"),
        ("((3, 1, 2, 0),", "3.09568"),
        ("((1, 2, 0),", "2.39135"),
        ("((4, 1, 2, 0),", "3.25414"),
        ("((2, 0),", "1.66993"),
    ];
    for (result, (tokens, score)) in results.iter().zip(wanted) {
        assert!(result.starts_with(tokens) && result.contains(score), "{result}");
    }
    // Of each length one: only whether another token follows must be known. The last two calls compile nothing.
    assert!(compiled[4] <= 9, "{compiled:?}");
    assert_eq!(compiled[2], compiled[4], "{compiled:?}");
}

#[test]
fn loops_on_a_float_compile_each_round_once() {
    let source = "
def g(x):
    total = 0.0
    n = 0
    while float(x.norm()) > 1.0:
        x = x * 0.5
        total = total + float(x.sum()) / 3
        n += 1
    return x, n, total
";
    let call = |x: [f32; 3]| vec![floats(&x)];
    let (results, compiled) = segments(
        source,
        "g",
        &[call([8.0, 3.0, -2.0]), call([7.0, 4.0, 2.0]), call([7.5, 3.0, 0.0])],
    );
    // PyTorch's result.
    for (result, end) in results.iter().zip(["4, 2.8125)", "4, 4.0625)", "4, 3.28125)"]) {
        assert!(result.ends_with(end), "{result}");
    }
    assert_eq!(compiled, [6, 6, 6]);
}

#[test]
fn counters_in_attributes_do_not_compile_anew() {
    let source = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.rate = 1.0
    def forward(self, x):
        self.calls += 1
        self.rate = self.rate * 0.5
        if self.calls % 3 == 0:
            x = x + 1
        return x * self.calls, x.masked_fill(x > 2, self.rate), torch.tensor([self.calls, 7]), self.calls, -self.rate
model = Net().eval()
";
    let (results, compiled) = segments(source, "forward", &vec![vec![floats(&[1.0, 2.0, 3.0])]; 6]);
    // PyTorch's result.
    let last = r#"(torch.float32[3]["12.0000", "18.0000", "24.0000"], torch.float32[3]["2.0000", "0.0156", "0.0156"], torch.int64[2]["6.0000", "7.0000"], 6, -0.015625)"#;
    assert_eq!(results[5], last);
    assert!(
        results[4].contains(r#"["5.0000", "10.0000", "15.0000"]"#),
        "{}",
        results[4]
    );
    // One segment before the condition, and one for each outcome.
    assert_eq!(compiled, [2, 2, 3, 3, 3, 3]);
}

#[test]
fn numbers_as_indices_bounds_and_results() {
    let source = "
def k(x, rows):
    i = int(rows[0])
    j = int(rows.sum())
    big = max(i, j) if i > 100 else j
    return x[i], x[:, j - 1], x.select(0, -1 - i), i // 2 + j % 3, [i, j], (float(i), bool(rows[1] > 1)), torch.full([2], i)
";
    let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let x = Tensor::from_f32(&x, &[3, 4]).expect("12 elements");
    let call = |rows: [i64; 2]| {
        let rows = Tensor::from_i64(&rows, &[2]).expect("2 elements");
        vec![x.clone().into(), rows.into()]
    };
    let (results, _) = segments(source, "k", &[call([1, 0]), call([0, 2]), call([2, 1]), call([1, 2])]);
    // PyTorch's result.
    let wanted = [
        r#"(torch.float32[4]["4.0000", "5.0000", "6.0000", "7.0000"], torch.float32[3]["0.0000", "4.0000", "8.0000"], torch.float32[4]["4.0000", "5.0000", "6.0000", "7.0000"], 1, (1, 1), (1.0, false), torch.int64[2]["1.0000", "1.0000"])"#,
        r#"(torch.float32[4]["0.0000", "1.0000", "2.0000", "3.0000"], torch.float32[3]["1.0000", "5.0000", "9.0000"], torch.float32[4]["8.0000", "9.0000", "10.0000", "11.0000"], 2, (0, 2), (0.0, true), torch.int64[2]["0.0000", "0.0000"])"#,
        r#"(torch.float32[4]["8.0000", "9.0000", "10.0000", "11.0000"], torch.float32[3]["2.0000", "6.0000", "10.0000"], torch.float32[4]["0.0000", "1.0000", "2.0000", "3.0000"], 1, (2, 3), (2.0, false), torch.int64[2]["2.0000", "2.0000"])"#,
        r#"(torch.float32[4]["4.0000", "5.0000", "6.0000", "7.0000"], torch.float32[3]["2.0000", "6.0000", "10.0000"], torch.float32[4]["4.0000", "5.0000", "6.0000", "7.0000"], 0, (1, 3), (1.0, true), torch.int64[2]["1.0000", "1.0000"])"#,
    ];
    assert_eq!(results, wanted);
}

/// Changes are also visible if the method needs no segments.
#[test]
fn callers_see_what_is_put_into_their_containers() {
    let source = "
def forward(x, out: List[Tensor], table: Dict[str, Tensor]):
    out.append(x * 2)
    table['x'] = x
    return x.tanh()
";
    let model = model(source);
    for kind in [EngineKind::Native, EngineKind::Interpreter] {
        let mut engine = model
            .engine(&EngineOptions::default().kind(kind))
            .expect("it can be run");
        for items in [Vec::new(), vec![floats(&[5.0])]] {
            let out = ListValue::new(types::TENSOR, items.clone());
            let table = DictValue::new(types::STR, types::TENSOR, IndexMap::new());
            let args = [floats(&[1.0]), Value::List(out.clone()), Value::Dict(table.clone())];
            engine.call("forward", &args).expect("it runs");
            let given = (out.len(), table.with(IndexMap::len));
            assert_eq!(given, (items.len() + 1, 1), "{kind:?}: {:?}", engine.notes());
        }
    }
}

/// Returns the result of `f` on the native engine, which may leave parts to the interpreter.
fn native(source: &str, arguments: &[Value]) -> String {
    let mut engine = model(source).engine(&EngineOptions::default()).expect("it can be run");
    text(&engine.call("f", arguments).expect("it runs"))
}

#[test]
fn lists_without_items_have_their_type() {
    let source = "
def f(a: List[int], b: List[bool], x: Tensor):
    return torch.tensor(a), torch.tensor(b), x + 1
";
    let list = |element| Value::List(ListValue::new(element, Vec::new()));
    let result = native(source, &[list(types::INT), list(types::BOOL), floats(&[1.0])]);
    assert_eq!(
        result,
        r#"(torch.int64[0][], torch.bool[0][], torch.float32[1]["2.0000"])"#
    );
}

#[test]
fn loops_whose_count_depends_on_elements_fill_a_list() {
    let source = "
def f(x: Tensor, n: Tensor):
    parts: List[Tensor] = []
    for i in range(int(n)):
        parts.append(x * i)
    return torch.cat(parts)
";
    let three = [vec![floats(&[1.0, 2.0]), Tensor::from_i64(&[3], &[]).unwrap().into()]];
    let (results, counts) = segments(source, "f", &three);
    assert_eq!(
        results,
        [r#"torch.float32[6]["0.0000", "0.0000", "1.0000", "2.0000", "2.0000", "4.0000"]"#]
    );
    assert!(counts[0] > 0, "it runs natively: {counts:?}");
}

#[test]
fn lists_of_tensors_are_sorted_by_elements() {
    let source = "
def f(x: Tensor):
    parts = [x[2], x[0], x[1]]
    parts.sort()
    return torch.stack(parts)
";
    let result = native(source, &[floats(&[2.0, 1.0, 3.0])]);
    assert_eq!(result, r#"torch.float32[3]["1.0000", "2.0000", "3.0000"]"#);
}
