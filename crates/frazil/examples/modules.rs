//! Builds, changes, casts and traces modules for PyTorch to load: `tools/check/round_trips.py` runs this.
//!
//! `modules write DIR` writes for each module `NAME.pt`, its state dictionary as `NAME.state.safetensors`, and `NAME.calls.safetensors` with the arguments
//! and the results of calls: `forward.0`, `forward.1`, ..., `forward.result`. `modules read DIR` reads the files that PyTorch wrote beside it:
//! `NAME.torch.safetensors`, another state dictionary, and `NAME.torch.pt`, the module that has it, with the results in `NAME.torch.calls.safetensors`: loads
//! the dictionary into the module built here, loads the archive, calls both, and prints the differences.

#![allow(clippy::print_stdout, reason = "a program for a script to read")]

use frazil::eager::Var;
use frazil::ir::DType;
use frazil::trace::{Method, Parameters, Scope, TraceOptions};
use frazil::{
    EngineKind, EngineOptions, FreezeOptions, Loaded, Model, SaveOptions, Session, StateDict, Tensor, Value,
    read_safetensors, write_safetensors,
};
use std::path::{Path, PathBuf};

type Failure = Box<dyn std::error::Error>;

/// A module and calls of it: a method and its arguments.
struct Case {
    name: &'static str,
    model: Model,
    calls: Vec<(&'static str, Vec<Tensor>)>,
}

const SOURCE: &str = "
class Block(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
    def forward(self, x):
        return torch.relu(self.norm(self.conv(x))) + x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(4), Block(4))
        self.head = nn.Linear(4, 3)
        self.scales: Dict[str, float] = {'a': 2.0, 'b': 0.5}
        self.sizes: List[int] = [1, 2]
        self.register_buffer('offset', torch.ones(3))
    def forward(self, x):
        x = self.blocks(x)
        return self.head(x.mean([2, 3])) * self.scales['a'] + self.offset
    @torch.jit.export
    def pooled(self, x, size: int = 2):
        return F.adaptive_avg_pool2d(self.blocks(x), [size, size]) + len(self.sizes)

model = Net().eval()
";

const COUNTER: &str = "
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('sum', torch.zeros(2))
    def forward(self, x):
        self.sum += x
        return self.sum * 2

model = Counter().eval()
";

const FUNCTIONS: &str = "
def helper(x, n: int):
    for i in range(n):
        if bool(x.sum() < 10):
            x = x * 2
    return x

def main(x):
    return helper(x, 3) - 1
";

fn tensor(sizes: &[i64], step: i64) -> Tensor {
    let numel: i64 = sizes.iter().product();
    let data: Vec<f32> = (0..numel).map(|i| ((i * step % 23) as f32 - 11.0) / 11.0).collect();
    Tensor::from_f32(&data, sizes).unwrap_or_else(|_| Tensor::scalar(DType::Float, 0.0.into()))
}

fn script(session: &Session, source: &str) -> Result<Loaded, Failure> {
    Ok(session.load_bytes(Path::new("source.py"), source.into())?)
}

/// Returns the module of a source, with weights that do not depend on a random generator.
fn module(session: &Session, source: &str) -> Result<Model, Failure> {
    let mut model = script(session, source)?.model("changed")?.clone();
    let mut state = model.state_dict()?;
    for (i, (name, value)) in state.iter_mut().enumerate() {
        if value.dtype() == DType::Float && !name.ends_with("running_var") {
            *value = tensor(value.sizes(), 7 + i as i64);
        }
    }
    model.load_state_dict(&state, true)?;
    Ok(model)
}

fn small_net(p: &Scope, x: &Var) -> frazil::Result<Var> {
    let y = x.linear(p.get("first.weight")?).bias(p.get("first.bias")?).call()?;
    let y = y.relu_().call()?;
    y.linear(p.get("second.weight")?).call()
}

fn traced(session: &Session) -> Result<Model, Failure> {
    let mut parameters = Parameters::new("SmallNet");
    parameters.parameter("first.weight", tensor(&[4, 4], 3));
    parameters.parameter("first.bias", tensor(&[4], 5));
    parameters.share("second.weight", "first.weight")?;
    parameters.buffer("mean", tensor(&[4], 2));
    let x = [tensor(&[2, 4], 9)];
    let methods = [
        Method {
            name: "forward",
            function: &|p, x| Ok(small_net(p, &x[0])?.into()),
            inputs: &x,
        },
        Method {
            name: "centred",
            function: &|p, x| Ok((small_net(p, &x[0])?, (&x[0] - p.get("mean")?)?).into()),
            inputs: &x,
        },
    ];
    Ok(session
        .trace_module(&parameters, &methods, &TraceOptions::default())?
        .to_model())
}

fn cases(session: &Session) -> Result<Vec<Case>, Failure> {
    let image = || tensor(&[2, 4, 6, 6], 5);
    let net = module(session, SOURCE)?;
    let mut cases = Vec::new();
    let mut add = |name, model: &Model, calls: Vec<(&'static str, Vec<Tensor>)>| {
        cases.push(Case {
            name,
            model: model.clone(),
            calls,
        });
    };
    let both = |x: Tensor| vec![("forward", vec![x.clone()]), ("pooled", vec![x])];
    add("built", &net, both(image()));
    add(
        "functions",
        &script(session, FUNCTIONS)?.to_model("main")?,
        vec![("forward", vec![tensor(&[3], 4)])],
    );

    let mut changed = net.clone();
    changed.set_attribute("head.bias", &tensor(&[3], 4).into())?;
    changed.set_attribute("offset", &tensor(&[3], 6).into())?;
    changed.register_buffer("kept", &tensor(&[2], 3), true)?;
    changed.register_buffer("dropped", &tensor(&[2], 5), false)?;
    changed.register_parameter("gain", &tensor(&[3], 8), true)?;
    changed.register_attribute("label", &Value::str("changed"))?;
    changed.requires_grad_(false)?;
    add("modified", &changed, both(image()));
    changed.define("def scaled(self, x):\n    return self.forward(x) * self.gain + self.kept.sum()\n")?;
    add("defined", &changed, vec![("scaled", vec![image()])]);

    for (name, dtype) in [
        ("half", DType::Half),
        ("bfloat16", DType::BFloat16),
        ("double", DType::Double),
    ] {
        let mut cast = net.clone();
        cast.to(dtype)?;
        add(name, &cast, vec![("forward", vec![image().to_dtype(dtype)?])]);
    }

    let trained = {
        let mut model = net.clone();
        model.train(true);
        model
    };
    add("training", &trained, vec![("forward", vec![image()])]);
    add(
        "frozen",
        &net.freeze(&FreezeOptions::default())?,
        vec![("forward", vec![image()])],
    );
    let ready = net.optimize_for_inference(&FreezeOptions::default())?;
    add("optimized", &ready, vec![("forward", vec![image()])]);

    let trace = |x: &[Var]| x[0].matmul(&x[1]).call()?.tanh().call();
    let x = [tensor(&[2, 3], 3), tensor(&[3, 2], 4)];
    let function = session.trace(trace, &x, &TraceOptions::default())?;
    add(
        "traced function",
        &function.loaded().to_model("forward")?,
        vec![("forward", x.to_vec())],
    );
    let traced = traced(session)?;
    add(
        "traced module",
        &traced,
        vec![
            ("forward", vec![tensor(&[2, 4], 9)]),
            ("centred", vec![tensor(&[3, 4], 2)]),
        ],
    );

    let mut composed = module(session, COUNTER)?;
    composed.add_module("net", &traced)?;
    composed.define("def through(self, x):\n    return self.net(x).sum() + self.forward(x.mean([0])[:2])\n")?;
    add("composed", &composed, vec![("through", vec![tensor(&[2, 4], 9)])]);

    let Loaded::Graphs(tanh) = function.loaded().clone() else {
        return Err("a traced function is no module".into());
    };
    let source = "class Calls(nn.Module):\n    def forward(self, x, y):\n        if bool(x.sum() > 100):\n            return x\n        return product(x, y) + 1\n";
    let calls = session.script(Path::new("calls.py"), source, &[("product", &tanh)])?;
    add(
        "scripted over traced",
        calls.model("called")?,
        vec![("forward", x.to_vec())],
    );

    let mut engine = module(session, COUNTER)?.engine(&options())?;
    engine.call("forward", &[tensor(&[2], 3).into()])?;
    add(
        "snapshot",
        &engine.snapshot()?,
        vec![("forward", vec![tensor(&[2], 5)])],
    );
    Ok(cases)
}

fn options() -> EngineOptions {
    EngineOptions::default().kind(EngineKind::Interpreter)
}

/// Returns the tensors of a result in order.
fn tensors(value: &Value) -> Vec<Tensor> {
    match value {
        Value::Tensor(cell) => vec![cell.get()],
        other => other.items().unwrap_or_default().iter().flat_map(tensors).collect(),
    }
}

fn results(model: &Model, calls: &[(&str, Vec<Tensor>)]) -> Result<StateDict, Failure> {
    let mut engine = model.engine(&options())?;
    let mut out = StateDict::new();
    for (method, args) in calls {
        let args: Vec<Value> = args.iter().map(|t| t.clone().into()).collect();
        let result = engine.call(method, &args)?;
        for (i, t) in tensors(&result).into_iter().enumerate() {
            out.insert(format!("{method}.result.{i}"), t);
        }
    }
    Ok(out)
}

fn file(folder: &Path, name: &str, end: &str) -> PathBuf {
    folder.join(format!("{}.{end}", name.replace(' ', "_")))
}

fn write(folder: &Path) -> Result<(), Failure> {
    for case in cases(&Session::new())? {
        case.model
            .save(file(folder, case.name, "pt"), &SaveOptions::default())?;
        write_safetensors(&case.model.state_dict()?, file(folder, case.name, "state.safetensors"))?;
        let mut calls = results(&case.model, &case.calls)?;
        for (method, args) in &case.calls {
            for (i, arg) in args.iter().enumerate() {
                calls.insert(format!("{method}.{i}"), arg.clone());
            }
        }
        write_safetensors(&calls, file(folder, case.name, "calls.safetensors"))?;
    }
    Ok(())
}

/// Returns a description of the first difference between our results and PyTorch's.
fn difference(ours: &StateDict, theirs: &StateDict) -> Option<String> {
    for (name, wanted) in theirs {
        let Some(t) = ours.get(name) else {
            return Some(format!("{name} is missing"));
        };
        if t.dtype() != wanted.dtype() || t.sizes() != wanted.sizes() {
            return Some(format!("{name}: {t:?} in the place of {wanted:?}"));
        }
        let tolerance = match t.dtype() {
            DType::Half => 4e-3,
            DType::BFloat16 => 3e-2,
            _ => 1e-5,
        };
        let far = |(a, b): (&f64, &f64)| (a - b).abs() > tolerance * (1.0 + b.abs());
        if t.to_f64_vec().iter().zip(&wanted.to_f64_vec()).any(far) {
            return Some(format!("{name}: {t:?} in the place of {wanted:?}"));
        }
    }
    None
}

fn read(folder: &Path) -> Result<(), Failure> {
    let session = Session::new();
    let (mut count, mut right) = (0, 0);
    for case in cases(&session)? {
        let state = file(folder, case.name, "torch.safetensors");
        if !state.exists() {
            continue;
        }
        let wanted = read_safetensors(file(folder, case.name, "torch.calls.safetensors"))?;
        let mut ours = case.model.clone();
        let loaded = ours.load_state_dict(&read_safetensors(&state)?, true).map(drop);
        let archive = session.load(file(folder, case.name, "torch.pt"))?;
        let keys = |model: &Model| -> Result<Vec<String>, Failure> { Ok(model.state_dict()?.into_keys().collect()) };
        let same_keys = keys(&ours)? == keys(&archive)?;
        for (what, model) in [("dictionary", &ours), ("archive", &archive)] {
            count += 1;
            let wrong = match (&loaded, same_keys) {
                (Err(e), _) => Some(e.to_string()),
                (_, false) => Some("other keys".to_owned()),
                _ => difference(&results(model, &case.calls)?, &wanted),
            };
            match wrong {
                Some(wrong) => println!("{} ({what}): {wrong}", case.name),
                None => right += 1,
            }
        }
    }
    println!("{right} of {count}");
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", folder] => write(Path::new(folder)),
        ["read", folder] => read(Path::new(folder)),
        _ => Err("usage: modules write|read DIR".into()),
    }
}
