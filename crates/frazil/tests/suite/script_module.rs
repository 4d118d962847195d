//! Modules as objects: the rules of `torch.jit.ScriptModule`, on a model that PyTorch saved.

use frazil::ir::DType;
use frazil::{
    EngineKind, EngineOptions, Error, MemberOptions, Model, Session, StateDict, Tensor, Value, read_safetensors,
    write_safetensors,
};
use std::path::PathBuf;

fn fixture(name: &str) -> Model {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/fixtures/models/{name}/model.pt"));
    Session::new().load(path).unwrap()
}

fn interpreter(model: &Model) -> frazil::Engine {
    let options = EngineOptions::default().kind(EngineKind::Interpreter);
    model.engine(&options).unwrap()
}

fn forward(model: &Model) -> Vec<f32> {
    let input = Tensor::full(DType::Float, &[1, 3, 32, 32], 0.5.into()).unwrap();
    let output = interpreter(model).call("forward", &[input.into()]).unwrap();
    output.as_tensor().unwrap().to_vec()
}

#[test]
fn names_are_those_of_pytorch_in_its_order() {
    let model = fixture("residual_cnn");
    let root = model.root();
    let modules: Vec<String> = root.named_modules().into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        modules[..9],
        [
            "",
            "stem",
            "stem.0",
            "stem.1",
            "stem.2",
            "pool",
            "blocks",
            "blocks.0",
            "blocks.0.conv1"
        ]
    );
    assert_eq!(modules.len(), 34);
    let children: Vec<&str> = root.named_children().into_iter().map(|(name, _)| name).collect();
    assert_eq!(children, ["stem", "pool", "blocks", "dropout", "classify"]);
    let parameters = root.named_parameters(&MemberOptions::default()).unwrap();
    let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names[..4],
        ["stem.0.weight", "stem.1.weight", "stem.1.bias", "blocks.0.conv1.weight"]
    );
    assert_eq!(names.len(), 29);
    assert!(root.named_parameters(&MemberOptions::own()).unwrap().is_empty());
    assert_eq!(root.named_buffers(&MemberOptions::default()).unwrap().len(), 27);
    let state = model.state_dict().unwrap();
    let names: Vec<&str> = state.keys().map(String::as_str).collect();
    assert_eq!(
        names[..6],
        [
            "stem.0.weight",
            "stem.1.weight",
            "stem.1.bias",
            "stem.1.running_mean",
            "stem.1.running_var",
            "stem.1.num_batches_tracked"
        ]
    );
    assert_eq!(names.len(), 56);
}

#[test]
fn dotted_paths_lead_to_submodules_parameters_and_buffers() {
    let model = fixture("residual_cnn");
    let root = model.root();
    let conv = root.get_submodule("blocks.0.conv1").unwrap();
    assert_eq!(conv.original_name(), "Conv2d");
    assert_eq!(root.get_parameter("stem.0.weight").unwrap().sizes(), [16, 3, 3, 3]);
    assert_eq!(root.get_buffer("stem.1.running_mean").unwrap().sizes(), [16]);
    assert!(root.has_method("forward") && !root.has_method("backward"));
    assert!(matches!(root.attribute("stem.1.training"), Ok(Value::Bool(false))));
    let message = |r: Result<Tensor, Error>| r.unwrap_err().to_string();
    assert!(message(root.get_parameter("stem.0.nothing")).ends_with("has no attribute `nothing`"));
    assert!(message(root.get_parameter("stem.1.running_mean")).ends_with("is not an nn.Parameter"));
    assert!(
        root.get_submodule("stem.0.weight")
            .is_err_and(|e| e.to_string().ends_with("is not an nn.Module"))
    );
}

#[test]
fn a_state_dict_goes_into_a_model_and_through_a_file() {
    let source = fixture("residual_cnn");
    let expected = forward(&source);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.safetensors");
    write_safetensors(&source.state_dict().unwrap(), &path).unwrap();

    let mut target = fixture("residual_cnn");
    let mut zeros = target.state_dict().unwrap();
    for t in zeros.values_mut() {
        *t = Tensor::zeros(t.dtype(), t.sizes()).unwrap();
    }
    target.load_state_dict(&zeros, true).unwrap();
    assert!(forward(&target).iter().all(|x| *x == 0.0), "all weights are zero");
    assert_ne!(expected, forward(&target));
    let keys = target.load_state_dict(&read_safetensors(&path).unwrap(), true).unwrap();
    assert_eq!(keys, frazil::IncompatibleKeys::default());
    assert_eq!(expected, forward(&target));
    assert_eq!(expected, forward(&source), "the other model was never touched");
}

#[test]
fn a_state_dict_that_does_not_fit_changes_nothing() {
    let mut model = fixture("residual_cnn");
    let before = forward(&model);
    let mut state = StateDict::new();
    state.insert("alien".to_owned(), Tensor::zeros(DType::Float, &[2]).unwrap());
    let error = model.load_state_dict(&state, true).unwrap_err().to_string();
    assert!(
        error.contains("\n\tMissing key(s) in state_dict: \"stem.0.weight\", "),
        "{error}"
    );
    assert!(
        error.ends_with(". \n\tUnexpected key(s) in state_dict: \"alien\". "),
        "{error}"
    );
    let keys = model.load_state_dict(&state, false).unwrap();
    assert_eq!(
        (keys.missing_keys.len(), keys.unexpected_keys),
        (56, vec!["alien".to_owned()])
    );

    let mut state = model.state_dict().unwrap();
    state["stem.1.bias"] = Tensor::zeros(DType::Float, &[16]).unwrap();
    state["stem.0.weight"] = Tensor::zeros(DType::Float, &[2]).unwrap();
    let error = model.load_state_dict(&state, true).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "size mismatch for stem.0.weight: copying a param with shape torch.Size([2]) from checkpoint, \
             the shape in current model is torch.Size([16, 3, 3, 3])."
        ),
        "{error}"
    );
    assert_eq!(before, forward(&model));
}

#[test]
fn conversion_keeps_integers_and_the_source() {
    let mut model = fixture("residual_cnn");
    let source = model.clone();
    model.double().unwrap();
    assert_eq!(
        model.root().get_parameter("stem.0.weight").unwrap().dtype(),
        DType::Double
    );
    assert_eq!(
        model.root().get_buffer("stem.1.num_batches_tracked").unwrap().dtype(),
        DType::Long
    );
    assert_eq!(
        source.root().get_parameter("stem.0.weight").unwrap().dtype(),
        DType::Float
    );
    model.to(DType::Float).unwrap();
    assert_eq!(forward(&model), forward(&source), "double holds every float");
    assert_eq!(
        model.to(DType::Int).unwrap_err().to_string(),
        "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.int32"
    );
}

#[test]
fn training_reaches_every_submodule() {
    let mut model = fixture("residual_cnn");
    model.train(true);
    assert!(model.root().named_modules().iter().all(|(_, m)| m.is_training()));
    model.eval();
    assert!(model.root().named_modules().iter().all(|(_, m)| !m.is_training()));
}

#[test]
fn attributes_are_set_within_their_types() {
    let mut model = fixture("residual_cnn");
    let zeros = Tensor::zeros(DType::Float, &[10]).unwrap();
    model.set_attribute("classify.bias", &zeros.into()).unwrap();
    assert_eq!(
        model.root().get_parameter("classify.bias").unwrap().to_vec::<f32>(),
        [0.0; 10]
    );
    let error = model.set_attribute("training", &Value::Int(3)).unwrap_err().to_string();
    assert_eq!(
        error,
        "Could not cast attribute 'training' to type bool: it is of type int"
    );
    assert!(model.set_attribute("nothing", &Value::Int(3)).is_err());

    model
        .register_buffer("scale", &Tensor::from_f32(&[2.0], &[1]).unwrap(), true)
        .unwrap();
    assert_eq!(model.root().get_buffer("scale").unwrap().to_vec::<f32>(), [2.0]);
    assert_eq!(model.state_dict().unwrap().len(), 57);
    assert!(model.register_attribute("a.b", &Value::Int(1)).is_err());
    assert!(model.register_attribute("forward", &Value::Int(1)).is_err());
}

#[test]
fn what_calls_change_is_in_the_snapshot() {
    let model = fixture("running_mean");
    let before = model.state_dict().unwrap();
    let mut engine = interpreter(&model);
    let input = Tensor::from_f32(&[1.0, 2.0, 3.0], &[1, 3]).unwrap();
    engine.call("forward", &[input.into()]).unwrap();
    let after = engine.snapshot().unwrap().state_dict().unwrap();
    let bytes = |state: &StateDict| state.values().map(|t| t.to_bytes().unwrap()).collect::<Vec<_>>();
    assert_ne!(bytes(&before), bytes(&after));
    assert_eq!(
        bytes(&before),
        bytes(&model.state_dict().unwrap()),
        "the model itself stays"
    );
}

#[test]
fn arguments_have_names() {
    let model = fixture("residual_cnn");
    let mut engine = interpreter(&model);
    let input: Value = Tensor::zeros(DType::Float, &[1, 3, 32, 32]).unwrap().into();
    let name = {
        let method = model
            .module()
            .method_function(model.session().ctx().symbol("forward"))
            .unwrap();
        model.session().ctx().name(method.schema.arguments[1].name).to_owned()
    };
    assert!(engine.call_with("forward", &[], &[(&name, input.clone())]).is_ok());
    let error = |e: Result<Value, frazil::CallError>| e.err().unwrap().to_string();
    let twice = error(engine.call_with("forward", std::slice::from_ref(&input), &[(&name, input.clone())]));
    let too_many =
        "forward() expected at most 2 argument(s) but received 3 argument(s). Declaration: forward(__torch__.";
    assert!(twice.contains(too_many), "{twice}");
    let unknown = error(engine.call_with("forward", std::slice::from_ref(&input), &[("volume", Value::Int(11))]));
    assert!(unknown.contains(too_many), "{unknown}");
    let missing = error(engine.call_with("forward", &[], &[]));
    assert!(
        missing.contains(&format!("is missing value for argument '{name}'")),
        "{missing}"
    );
}

/// PyTorch: `attribute 'a' already exists`.
#[test]
fn what_is_registered_takes_no_other_attributes_place() {
    let source = "class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = [1, 2]
        self.s = 'x'
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer('b', torch.ones(2))
    def forward(self, x):
        return x * self.weight + self.b, self.a, self.s
";
    let model = Session::new().script("net.py".as_ref(), source, &[]).unwrap();
    let mut model = model.to_model("forward").unwrap();
    let tensor = Tensor::full(DType::Float, &[2], 3.0.into()).unwrap();
    for name in ["a", "s", "b", "forward"] {
        let refused = model.register_parameter(name, &tensor, true).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("attribute '{name}' already exists")),
            "{refused}"
        );
    }
    for name in ["a", "s", "weight", "forward"] {
        let refused = model.register_buffer(name, &tensor, true).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("attribute '{name}' already exists")),
            "{refused}"
        );
    }
    for name in ["a", "weight", "forward"] {
        assert!(model.register_attribute(name, &Value::Int(3)).is_err());
    }
    // An attribute of the same kind is assigned.
    model.register_parameter("weight", &tensor, true).unwrap();
    model.register_buffer("b", &tensor, true).unwrap();
    let archive = model.save_bytes(&frazil::SaveOptions::default()).unwrap();
    let loaded = Session::new().load_bytes("net.pt".as_ref(), archive).unwrap();
    let result = interpreter(loaded.model("run").unwrap())
        .call("forward", &[tensor.into()])
        .unwrap();
    let first = result.items().unwrap()[0].as_tensor().unwrap();
    assert_eq!(first.to_f64_vec(), [12.0, 12.0]);
}

/// The answers are those of PyTorch 2.15.
#[test]
fn calls_of_functions_of_python_are_not_exported() {
    let saved = |body: &str| {
        let text = format!("import torch\nimport torch.nn as nn\nfrom torch import Tensor\n{body}");
        let model = Session::new().script("net.py".as_ref(), &text, &[]).unwrap();
        let model = model.to_model("forward").unwrap();
        model.save_bytes(&frazil::SaveOptions::default()).map(drop)
    };
    let method = |decorator: &str, forward: &str, more: &str| {
        format!(
            "class Net(nn.Module):\n    def forward(self, x):\n        return {forward}\n    {decorator}\n    def g(self, x):\n        return x + 1\n{more}"
        )
    };
    let exported = "    @torch.jit.export\n    def other(self, x):\n        return self.g(x)\n";
    let outer = "class Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = Net()\n    \
                 def forward(self, x):\n        return self.net(x)\nmodel = Outer()\n";
    let function = "@torch.jit.ignore\ndef g(x: Tensor) -> Tensor:\n    return x + 2\nclass Net(nn.Module):\n    \
                    def forward(self, x):\n        return g(x)\n";
    for (body, at) in [
        (method("@torch.jit.ignore", "self.g(x)", ""), "net.py:6:"),
        (method("@torch.jit.ignore", "x", exported), "net.py:12:"),
        (method("@torch.jit.ignore", "self.g(x)", outer), "net.py:6:"),
        (function.to_owned(), "net.py:9:"),
    ] {
        let refused = saved(&body).unwrap_err().to_string();
        let expected = "Could not export Python function call 'g'. Remove calls to Python functions before export.";
        assert!(refused.contains(expected) && refused.contains(at), "{body}\n{refused}");
    }
    for body in [
        method("@torch.jit.ignore", "x", ""),
        method("@torch.jit.unused", "self.g(x)", ""),
        method("@torch.jit.ignore(drop=True)", "self.g(x)", ""),
    ] {
        saved(&body).unwrap();
    }
}
