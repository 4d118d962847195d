//! Methods whose course depends on elements, or which keep state: native code gives what the interpreter gives, call after call.
#![cfg(feature = "codegen")]

use frazil::ir::DType;
use frazil::{Engine, EngineKind, EngineOptions, Loaded, Model, Session, Tensor, Value};
use std::path::Path;

fn model(source: &str) -> Model {
    let loaded = Session::new().load_bytes(Path::new("net.py"), source.as_bytes().to_vec());
    match loaded.expect("it compiles") {
        Loaded::Model(model) => model,
        Loaded::Graphs(graphs) => graphs.to_model(),
    }
}

fn engine(model: &Model, kind: EngineKind, method: &str) -> Engine {
    let options = EngineOptions {
        kind,
        // The interpreter takes over only where the program raises.
        strict: true,
        methods: vec![method.to_owned()],
        ..EngineOptions::default()
    };
    model.engine(&options).expect("it can be run")
}

/// A value as text: tensors with dtypes, sizes and elements.
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

/// Calls `method` with the arguments that `arguments` makes for each round, on both engines; after each call all results so far and the
/// arguments have to be equal. Gives the results of the last call.
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
        engines[0].notes().iter().any(|note| note.contains("stretch")),
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
    // What is given is the buffer itself and a view of it, so that later calls change it.
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
    // One variable twice.
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
