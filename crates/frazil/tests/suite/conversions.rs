//! Conversion of modules and submodules, devices, and hooks of state dictionaries, beyond the programs of PyTorch's pages.

use frazil::ir::{DType, Device, DeviceKind};
use frazil::{
    Conversion, EngineKind, EngineOptions, Error, MemoryFormat, Model, SaveOptions, Session, StateDict, Tensor, ToEmpty,
};

const META: Device = Device {
    kind: DeviceKind::Meta,
    index: None,
};
const CUDA: Device = Device {
    kind: DeviceKind::Cuda,
    index: Some(1),
};

fn model() -> Model {
    let source = "class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer('n', torch.zeros(2))
    def forward(self, x):
        self.n += 1
        return x * self.w + self.n
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Sub()
        self.b = Sub()
        self.plain = torch.ones(1)
    def forward(self, x):
        return self.a(x) + self.b(x)
model = Net().eval()
";
    let loaded = Session::new().script("net.py".as_ref(), source, &[]).unwrap();
    loaded.to_model("forward").unwrap()
}

fn options() -> EngineOptions {
    EngineOptions::default().kind(EngineKind::Interpreter)
}

fn text<T>(result: Result<T, Error>) -> String {
    result.err().map_or_else(String::new, |e| e.to_string())
}

#[test]
fn an_error_changes_nothing() {
    let mut model = model();
    model.submodule_mut("a").unwrap().requires_grad_(false).unwrap();
    let error = text(model.to_type(DType::Int));
    assert!(
        error.contains("data set to a tensor that requires gradients"),
        "{error}"
    );
    let dtypes = model.state_dict().unwrap().into_iter().map(|(_, t)| t.dtype());
    assert!(dtypes.into_iter().all(|dtype| dtype == DType::Float));
    assert!(text(model.to(CUDA)).contains("no device cuda"));
    assert!(
        text(model.to(Conversion {
            copy: true,
            ..Conversion::default()
        }))
        .contains("copy")
    );
    model.submodule_mut("a").unwrap().to_type(DType::Int).unwrap();
    assert!(text(model.submodule_mut("a").unwrap().requires_grad_(true)).contains("floating point"));
    assert!(text(model.submodule_mut("c").map(drop)).contains("no attribute `c`"));
    assert!(text(model.submodule_mut("a.w").map(drop)).contains("not an nn.Module"));
}

#[test]
fn tensors_without_elements_are_refused_until_they_have_some() {
    let mut model = model();
    let state = model.state_dict().unwrap();
    model.to(META).unwrap();
    assert!(text(model.state_dict()).contains("Cannot copy out of meta tensor; no data!"));
    assert!(text(model.engine(&options()).map(drop)).contains("meta"));
    assert!(text(model.to(Device::CPU)).contains("to_empty()"));
    // Nothing is copied into them, and the rest of the module is unchanged.
    model.load_state_dict(&state, true).unwrap();
    assert!(model.root().get_parameter("a.w").is_err() && model.root().attribute("plain").is_ok());
    let archive = model.save_bytes(&SaveOptions::default()).unwrap();
    let loaded = Session::new().load_bytes("net.pt".as_ref(), archive).unwrap();
    assert!(loaded.to_model("forward").unwrap().root().get_parameter("a.w").is_err());
    model.submodule_mut("a").unwrap().to_empty(Device::CPU).unwrap();
    assert!(model.root().get_parameter("a.w").unwrap().requires_grad());
    let own = ToEmpty {
        recurse: false,
        ..ToEmpty::from(Device::CPU)
    };
    model.to_empty(own).unwrap();
    assert!(model.root().get_parameter("b.w").is_err());
    model.to_empty(Device::CPU).unwrap();
    model.load_state_dict(&state, true).unwrap();
    let mut engine = model.engine(&options()).unwrap();
    let result = engine.call("forward", &[Tensor::from_f32(&[1.0, 2.0], &[2]).unwrap().into()]);
    assert_eq!(result.unwrap().as_tensor().unwrap().to_f64_vec(), [4.0, 6.0]);
}

#[test]
fn models_are_loaded_onto_devices() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.pt");
    model().save(&path, &SaveOptions::default()).unwrap();
    let session = Session::new();
    for device in [None, Some(Device::CPU)] {
        let model = session.load_on(&path, device).unwrap();
        assert_eq!(model.root().get_parameter("a.w").unwrap().to_f64_vec(), [1.0, 1.0]);
    }
    let meta = session.load_on(&path, Some(META)).unwrap();
    assert!(meta.root().get_parameter("a.w").is_err() && meta.root().attribute("plain").is_err());
    let error = text(session.load_on(&path, Some(CUDA)));
    assert!(
        error.contains("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"),
        "{error}"
    );
}

#[test]
fn hooks_belong_to_objects() {
    let mut model = model();
    let hook = model
        .submodule_mut("b")
        .unwrap()
        .register_state_dict_post_hook(|module, state, options| {
            assert_eq!(module.original_name(), "Sub");
            state.retain(|name, _| !name.starts_with(&options.prefix) || name.ends_with("w"));
            Ok(())
        });
    let names = |model: &Model| -> Vec<String> { model.state_dict().unwrap().into_keys().collect() };
    assert_eq!(names(&model), ["a.w", "a.n", "b.w"]);
    assert_eq!(names(&model.clone()), ["a.w", "a.n", "b.w"]);
    let mut engine = model.engine(&options()).unwrap();
    engine
        .call("forward", &[Tensor::from_f32(&[1.0], &[1]).unwrap().into()])
        .unwrap();
    assert_eq!(names(&engine.snapshot().unwrap()), ["a.w", "a.n", "b.w"]);
    let before = model.clone();
    assert!(model.remove_state_hook(hook) && !model.remove_state_hook(hook));
    assert_eq!(names(&model).len(), 4);
    assert_eq!(names(&before).len(), 3, "a clone has hooks of its own");
    model.register_load_state_dict_pre_hook(|_, _| Err(Error::StateDict("no".to_owned())));
    assert_eq!(text(model.load_state_dict(&StateDict::new(), false)), "no");
}

#[test]
fn formats_stay_and_are_saved() {
    let source = "class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 3, 4, 5))
    def forward(self, x):
        return x * self.w
model = Net().eval()
";
    let loaded = Session::new().script("net.py".as_ref(), source, &[]).unwrap();
    let mut model = loaded.to_model("forward").unwrap();
    model.to(MemoryFormat::ChannelsLast).unwrap();
    let strides = |model: &Model| model.root().get_parameter("w").unwrap().strides().to_vec();
    assert_eq!(strides(&model), [60, 1, 15, 3]);
    model.half().unwrap();
    assert_eq!(strides(&model), [60, 1, 15, 3]);
    assert!(text(model.to(MemoryFormat::ChannelsLast3d)).contains("required rank 5 tensor"));
    model.to((Device::CPU, DType::Double)).unwrap();
    let archive = model.save_bytes(&SaveOptions::default()).unwrap();
    let again = Session::new().load_bytes("net.pt".as_ref(), archive).unwrap();
    assert_eq!(strides(&again.to_model("forward").unwrap()), [60, 1, 15, 3]);
}

#[test]
fn tensors_that_programs_make_require_no_gradients() {
    let source = "class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer('b', torch.zeros(2))
        self.register_buffer('c', torch.zeros(2))
    def forward(self, x):
        self.b = self.w.detach()
        self.c = self.w + x
        return self.w
model = Net().eval()
";
    let loaded = Session::new().script("net.py".as_ref(), source, &[]).unwrap();
    let mut engine = loaded.to_model("forward").unwrap().engine(&options()).unwrap();
    engine
        .call("forward", &[Tensor::from_f32(&[1.0], &[1]).unwrap().into()])
        .unwrap();
    let model = engine.snapshot().unwrap();
    let grads = |path: &str| model.root().tensor_info(path).unwrap().requires_grad;
    assert_eq!([grads("w"), grads("b"), grads("c")], [true, false, false]);
}
