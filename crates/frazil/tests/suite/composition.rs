//! Composition of modules: submodules of other models, methods from source, hooks; and traced and scripted functions that call each other. The
//! expected numbers are PyTorch's results for the same programs.

use frazil::eager::Var;
use frazil::trace::{Method, Outputs, Parameters, TraceOptions};
use frazil::{
    CallError, EngineKind, EngineOptions, Error, Graphs, Loaded, MemberOptions, Model, SaveOptions, Session, Tensor,
    Value,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const OUTER: &str = "
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.factor = 3
    def forward(self, x):
        return self.inner(x) * self.factor
    @torch.jit.export
    def shifted(self, x, by: int = 2):
        return self.forward(x) + by
";

const ADDER: &str = "
class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('amount', torch.ones(1))
    def forward(self, x):
        return x + self.amount
";

fn model(session: &Session, source: &str) -> Model {
    match session.load_bytes(Path::new("net.py"), source.into()).unwrap() {
        Loaded::Model(model) => model,
        Loaded::Graphs(graphs) => graphs.to_model(),
    }
}

fn graphs(session: &Session, source: &str) -> Graphs {
    match session.load_bytes(Path::new("functions.py"), source.into()).unwrap() {
        Loaded::Graphs(graphs) => graphs,
        Loaded::Model(_) => panic!("functions make no module"),
    }
}

fn interpreter() -> EngineOptions {
    EngineOptions::default().kind(EngineKind::Interpreter)
}

fn floats(data: &[f32]) -> Tensor {
    Tensor::from_f32(data, &[data.len() as i64]).unwrap()
}

fn call(model: &Model, method: &str, args: &[Value]) -> Vec<f64> {
    let mut engine = model.engine(&interpreter()).unwrap();
    engine.call(method, args).unwrap().as_tensor().unwrap().to_f64_vec()
}

/// Returns the model after saving and loading.
fn saved(session: &Session, model: &Model) -> Model {
    let bytes = model.save_bytes(&SaveOptions::default()).unwrap();
    match session.load_bytes(Path::new("again.pt"), bytes).unwrap() {
        Loaded::Model(model) => model,
        Loaded::Graphs(_) => panic!("an archive holds a module"),
    }
}

#[test]
fn submodules_come_from_other_models_and_are_called_by_methods_that_are_defined() {
    let session = Session::new();
    let mut outer = model(&session, OUTER);
    let adder = model(&session, ADDER);
    outer.add_module("first", &adder).unwrap();
    outer.register_module("second", &adder).unwrap();
    outer.set_attribute("second.amount", &floats(&[10.0]).into()).unwrap();
    let names: Vec<_> = outer
        .root()
        .named_children()
        .into_iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    assert_eq!(names, ["inner", "first", "second"]);
    outer
        .define("def both(self, x):\n    return self.first(x) + self.second(x) * self.factor\n")
        .unwrap();
    let wanted = [1.0 + 1.0 + 3.0 * 11.0, 2.0 + 1.0 + 3.0 * 12.0];
    assert_eq!(call(&outer, "both", &[floats(&[1.0, 2.0]).into()]), wanted);
    // One of the added submodules is unchanged, and the archive contains all of them.
    assert_eq!(adder.root().get_buffer("amount").unwrap().to_f64_vec(), [1.0]);
    let again = saved(&session, &outer);
    assert_eq!(call(&again, "both", &[floats(&[1.0, 2.0]).into()]), wanted);
    let keys: Vec<String> = again.state_dict().unwrap().into_keys().collect();
    assert_eq!(keys, ["inner.weight", "inner.bias", "first.amount", "second.amount"]);
}

#[test]
fn submodules_are_replaced_by_those_of_their_class() {
    let session = Session::new();
    let mut outer = model(&session, OUTER);
    let (adder, mut other) = (model(&session, ADDER), model(&session, ADDER));
    other.set_attribute("amount", &floats(&[5.0]).into()).unwrap();
    outer.add_module("add", &adder).unwrap();
    outer.define("def f(self, x):\n    return self.add(x)\n").unwrap();
    outer.set_submodule("add", &other).unwrap();
    assert_eq!(call(&outer, "f", &[floats(&[1.0]).into()]), [6.0]);
    let refused = |e: Result<(), Error>| e.expect_err("refused").to_string();
    assert!(refused(outer.add_module("a.b", &adder)).contains("module name can't contain"));
    assert!(refused(outer.set_submodule("none.b", &adder)).contains("no attribute `none`"));
    assert!(refused(outer.add_module("forward", &adder)).contains("attribute 'forward' already exists"));
    assert!(refused(outer.add_module("b", &model(&Session::new(), ADDER))).contains("another session"));
    assert!(!outer.root().has_attribute("b") && !outer.root().has_attribute("a"));
    // Another class of the same name gets another name.
    let differs = model(&session, &ADDER.replace("x + self", "x - self"));
    outer.add_module("b", &differs).unwrap();
    outer
        .define("def g(self, x):\n    return self.add(x) * self.b(x)\n")
        .unwrap();
    assert_eq!(call(&outer, "g", &[floats(&[2.0]).into()]), [7.0]);
    let again = saved(&session, &outer);
    assert_eq!(call(&again, "g", &[floats(&[2.0]).into()]), [7.0]);
    assert_eq!(again.root().get_submodule("b").unwrap().original_name(), "Adder");
}

#[test]
fn methods_that_are_defined_call_those_that_are_there_and_one_another() {
    let session = Session::new();
    let mut outer = model(&session, OUTER);
    let source = "
def twice(self, x):
    return self.shifted(x) * 2

def more(self, x, n: int = 2):
    for i in range(n):
        x = self.twice(x)
    return x
";
    outer
        .set_attribute(
            "inner.weight",
            &Tensor::from_f32(&[1.0, 0.0, 0.0, 1.0], &[2, 2]).unwrap().into(),
        )
        .unwrap();
    outer.set_attribute("inner.bias", &floats(&[0.0, 0.0]).into()).unwrap();
    outer.define(source).unwrap();
    // x -> (3 x + 2) * 2, twice
    assert_eq!(call(&outer, "more", &[floats(&[1.0, 2.0]).into()]), [64.0, 100.0]);
    let again = saved(&session, &outer);
    assert_eq!(call(&again, "more", &[floats(&[1.0, 2.0]).into()]), [64.0, 100.0]);
    let twice = outer
        .define("def twice(self, x):\n    return x\n")
        .expect_err("it is there")
        .to_string();
    assert!(twice.contains("method 'twice' already defined"), "{twice}");
    let wrong = outer
        .define("def g(self, x):\n    return self.nothing(x)\n")
        .expect_err("no such method")
        .to_string();
    assert!(wrong.contains("nothing"), "{wrong}");
    assert!(!outer.root().has_method("g"));
}

#[test]
fn hooks_run_around_forward_in_their_order() {
    let session = Session::new();
    let adder = model(&session, ADDER);
    let mut engine = adder.engine(&interpreter()).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let scaled = |value: &Value, by: f64| {
        Value::from(Tensor::from_f32(&[(value.as_tensor().unwrap().to_f64_vec()[0] * by) as f32], &[1]).unwrap())
    };
    let before = engine.register_forward_pre_hook(move |args| Ok(Some(vec![scaled(&args[0], 10.0)])));
    engine.register_forward_pre_hook(move |args| {
        // It receives the previous hook's result, and returns nothing.
        counted.fetch_add(args[0].as_tensor().unwrap().to_f64_vec()[0] as usize, Ordering::Relaxed);
        Ok(None)
    });
    let after = engine.register_forward_hook(move |args, result| {
        assert_eq!(args[0].as_tensor().unwrap().to_f64_vec(), [20.0]);
        Ok(Some(scaled(result, 2.0)))
    });
    let x = [Value::from(floats(&[2.0]))];
    let run = |engine: &mut frazil::Engine| engine.call_module(&x).map(|v| v.as_tensor().unwrap().to_f64_vec()[0]);
    assert_eq!(run(&mut engine).unwrap(), 42.0);
    assert_eq!(calls.load(Ordering::Relaxed), 20);
    // Calling the method alone runs no hooks.
    let plain = engine.call("forward", &x).unwrap();
    assert_eq!(plain.as_tensor().unwrap().to_f64_vec(), [3.0]);
    assert!(engine.remove_hook(after) && !engine.remove_hook(after));
    assert_eq!(run(&mut engine).unwrap(), 21.0);
    assert!(engine.remove_hook(before));
    assert_eq!(run(&mut engine).unwrap(), 3.0);
    engine.register_forward_hook(|_, _| Err(CallError::Raised("stop".to_owned())));
    assert_eq!(run(&mut engine).expect_err("the hook raises").to_string(), "stop");
}

#[test]
fn apply_visits_inner_modules_first_and_may_change_them() {
    let session = Session::new();
    let mut outer = model(&session, OUTER);
    outer.add_module("add", &model(&session, ADDER)).unwrap();
    let mut seen = Vec::new();
    outer
        .apply(|model, path| {
            seen.push(path.to_owned());
            let ours: Vec<String> = model
                .root()
                .get_submodule(path)?
                .named_parameters(&MemberOptions::own())?
                .into_iter()
                .map(|(n, _)| n)
                .collect();
            for name in ours {
                let path = format!("{path}.{name}");
                let zeros = Tensor::zeros(frazil::ir::DType::Float, model.root().get_parameter(&path)?.sizes())?;
                model.set_attribute(&path, &zeros.into())?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, ["add", "inner", ""]);
    assert_eq!(call(&outer, "forward", &[floats(&[1.0, 2.0]).into()]), [0.0, 0.0]);
}

const BRANCHING: &str = "
def scripted(x):
    if bool(x.sum() > 0):
        y = x + 1
    else:
        y = x - 1
    return y
";

/// A scripted function keeps its condition within a trace; conditions of the traced code itself are not recorded.
#[test]
fn a_trace_calls_a_scripted_function() {
    let session = Session::new();
    let scripted = graphs(&session, BRANCHING);
    let function = |x: &[Var]| -> frazil::Result<Outputs> {
        match scripted.call("scripted", x[0].ops(), &[&x[0]])? {
            Outputs::Tensor(y) => Ok((y * 2.0)?.into()),
            other => Ok(other),
        }
    };
    let trace = session
        .trace(function, &[floats(&[1.0, 2.0])], &TraceOptions::default())
        .unwrap();
    for (x, wanted) in [([1.0, 2.0], [4.0, 6.0]), ([-1.0, -2.0], [-4.0, -6.0])] {
        assert_eq!(trace.call("forward", &[floats(&x)]).unwrap()[0].to_vec(), wanted);
        let again = saved(&session, &trace.loaded().to_model("forward").unwrap());
        assert_eq!(call(&again, "forward", &[floats(&x).into()]), wanted);
    }
}

/// A traced function contains the branch that was taken, independently of its caller.
#[test]
fn source_calls_traced_functions_and_those_of_other_sources() {
    let session = Session::new();
    let traced = |x: &[Var]| match x[0].sum().call()?.is_true()? {
        true => &x[0] * 10.0,
        false => x[0].neg().call(),
    };
    let trace = session
        .trace(traced, &[floats(&[1.0, 2.0])], &TraceOptions::default())
        .unwrap();
    let Loaded::Graphs(traced) = trace.loaded().clone() else {
        panic!("a traced function is no module");
    };
    let scripted = graphs(&session, BRANCHING);
    let source = "
def f(x, n: int):
    for i in range(n):
        x = tenfold(x)
    return branch(x)
";
    let known = [("tenfold", &traced), ("branch", &scripted)];
    let Loaded::Graphs(f) = session.script(Path::new("f.py"), source, &known).unwrap() else {
        panic!("functions make no module");
    };
    let f = f.to_model();
    assert_eq!(
        call(&f, "f", &[floats(&[1.0, 2.0]).into(), Value::Int(2)]),
        [101.0, 201.0]
    );
    assert_eq!(
        call(&f, "f", &[floats(&[-1.0, 0.0]).into(), Value::Int(1)]),
        [-11.0, -1.0]
    );
    let again = saved(&session, &f);
    assert_eq!(
        call(&again, "f", &[floats(&[1.0, 2.0]).into(), Value::Int(2)]),
        [101.0, 201.0]
    );

    // So does a module's method, and a trace that calls all of these.
    let source = "class Net(nn.Module):\n    def forward(self, x):\n        return tenfold(x) + 1\n";
    let Loaded::Model(net) = session.script(Path::new("net.py"), source, &known[..1]).unwrap() else {
        panic!("a class of modules makes a module");
    };
    assert_eq!(call(&net, "forward", &[floats(&[1.0]).into()]), [11.0]);
    let wrong = session
        .script(Path::new("net.py"), source, &[])
        .map(drop)
        .expect_err("nothing is called so");
    assert!(wrong.to_string().contains("tenfold"), "{wrong}");
}

#[test]
fn traced_modules_take_submodules_and_methods_too() {
    let session = Session::new();
    let mut parameters = Parameters::new("Traced");
    parameters.parameter("block.scale", floats(&[2.0]));
    let x = [floats(&[3.0])];
    let forward = Method {
        name: "forward",
        function: &|p, x| Ok((&x[0] * p.get("block.scale")?)?.into()),
        inputs: &x,
    };
    let trace = session
        .trace_module(&parameters, &[forward], &TraceOptions::default())
        .unwrap();
    let mut traced = trace.to_model();
    traced.add_module("add", &model(&session, ADDER)).unwrap();
    traced
        .define("def plus(self, x):\n    return self.add(self.forward(x))\n")
        .unwrap();
    assert_eq!(call(&traced, "plus", &[floats(&[3.0]).into()]), [7.0]);
    assert_eq!(call(&saved(&session, &traced), "plus", &[floats(&[3.0]).into()]), [7.0]);
}
