//! The public names of `torch.jit`, `ScriptModule` and `ScriptFunction` (PyTorch 2.15), each with our equivalent, which is called here, or with
//! the reason why there is none. `docs/pytorch-names.md` is generated from the list; `FRAZIL_BLESS=1` writes it.

use frazil::ir::{DType, Device, FunctionId};
use frazil::trace::{Outputs, TraceOptions};
use frazil::{
    EngineKind, EngineOptions, Error, FreezeOptions, HookOptions, Loaded, MemberOptions, Model, PassOptions, Session,
    StateDict, StateDictOptions, Tensor, Value,
};
use std::path::{Path, PathBuf};

/// Our counterpart of a name.
enum Ours {
    /// Our name for it, and a use of it that must succeed.
    Is(&'static str, fn(&Case) -> bool),
    /// None, for this reason.
    None(&'static str),
    /// A method of that name, which returns an error with the reason.
    Raises(fn(&Model) -> frazil::Result<()>),
}

use Ours::{Is, None as Without, Raises};

/// The subject of the uses: a model that PyTorch saved.
struct Case {
    session: Session,
    model: Model,
    loaded: Loaded,
    x: Tensor,
}

impl Case {
    fn new() -> Case {
        let session = Session::new();
        let model = session.load(fixture()).unwrap();
        Case {
            loaded: Loaded::Model(model.clone()),
            model,
            session,
            x: Tensor::full(DType::Float, &[1, 3, 32, 32], 0.5.into()).unwrap(),
        }
    }

    fn changed(&self, change: impl FnOnce(&mut Model) -> bool) -> bool {
        change(&mut self.model.clone())
    }

    /// Returns another module of the same session.
    fn small(&self) -> Model {
        let source = "class Small(nn.Module):\n    def forward(self, x):\n        return x + 1\n";
        match self.source(source) {
            Loaded::Model(model) => model,
            Loaded::Graphs(_) => panic!("a class of modules makes a module"),
        }
    }

    fn runs(&self, model: &Model) -> bool {
        let options = EngineOptions::default().kind(EngineKind::Interpreter);
        let mut engine = model.engine(&options).unwrap();
        engine.call("forward", &[self.x.clone().into()]).is_ok()
    }

    fn source(&self, text: &str) -> Loaded {
        self.session
            .load_bytes(Path::new("source.py"), text.as_bytes().to_vec())
            .unwrap()
    }

    fn has_dtype(&self, dtype: DType, change: impl FnOnce(&mut Model) -> frazil::Result<()>) -> bool {
        self.changed(|model| {
            change(model).unwrap();
            model
                .root()
                .named_parameters(&MemberOptions::default())
                .unwrap()
                .iter()
                .all(|(_, t)| t.dtype() == dtype)
        })
    }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/models/residual_cnn/model.pt")
}

#[rustfmt::skip]
const TORCH_JIT: &[(&str, Ours)] = &[
    ("Attribute", Is("`Model::register_attribute`", |c| c.changed(|m| { m.register_attribute("more", &Value::Int(3)).unwrap(); matches!(m.root().attribute("more"), Ok(Value::Int(3))) }))),
    ("CompilationUnit", Is("`Graphs`, `ir::CompilationUnit`", |c| matches!(c.source(FUNCTION), Loaded::Graphs(g) if g.unit().functions().count() == 1))),
    ("Error", Is("`CallError`", |c| c.model.engine(&EngineOptions::default().kind(EngineKind::Interpreter)).unwrap().call("forward", &[]).is_err())),
    ("Future", Is("`runtime::value::FutureValue`", |_| frazil::runtime::value::FutureValue::done(Ok(Value::Int(1))).wait().is_ok())),
    ("ScriptFunction", Is("`Graphs`", |c| matches!(c.source(FUNCTION), Loaded::Graphs(_)))),
    ("ScriptModule", Is("`Model`, `ScriptModule`", |c| c.model.root().id() == c.model.module().root)),
    ("annotate", Is("in source", |c| matches!(c.source("def f(x):\n    y = torch.jit.annotate(List[int], [])\n    return len(y)\n"), Loaded::Graphs(_)))),
    ("enable_onednn_fusion", Is("`Session::enable_onednn_fusion`, which only `onednn_fusion_enabled` sees: `EngineOptions::fuse` says what engines fuse", |c| { c.session.enable_onednn_fusion(true); let on = c.session.onednn_fusion_enabled(); c.session.enable_onednn_fusion(false); on })),
    ("export", Is("in source", |c| matches!(c.source(EXPORTED), Loaded::Model(m) if m.root().has_method("other")))),
    ("export_opnames", Is("`ir::Graph::all_nodes`, `kind_name`", |c| c.loaded.graph("forward").is_ok_and(|g| g.all_nodes().iter().any(|&n| g.kind_name(n).starts_with("prim::"))))),
    ("fork", Is("in source; `EngineOptions::threads`", |c| doubles(c, FORKING))),
    ("freeze", Is("`Model::freeze`", |c| c.model.freeze(&FreezeOptions::default()).is_ok())),
    ("ignore", Without("code that stays Python cannot run here")),
    ("interface", Is("in source and archives", |c| matches!(c.source(INTERFACE), Loaded::Graphs(_)))),
    ("isinstance", Is("in source", |c| matches!(c.source("def f(x: Optional[int]):\n    return torch.jit.isinstance(x, int)\n"), Loaded::Graphs(_)))),
    ("load", Is("`Session::load`, `load_bytes`; `load_on` has `map_location`", |c| c.session.load(fixture()).is_ok() && c.session.load_on(fixture(), Some(Device::CPU)).is_ok())),
    ("onednn_fusion_enabled", Is("`Session::onednn_fusion_enabled`", |c| !c.session.onednn_fusion_enabled())),
    ("optimize_for_inference", Is("`Model::optimize_for_inference`", |c| c.model.optimize_for_inference(&FreezeOptions::default()).is_ok())),
    ("save", Is("`Model::save`", |c| c.model.save_bytes(&frazil::SaveOptions::default()).is_ok())),
    ("script", Is("`Session::load`, `load_bytes` of source", |c| matches!(c.source(FUNCTION), Loaded::Graphs(_)))),
    ("script_if_tracing", Is("`Graphs::call_if_tracing`", |c| {
        let Loaded::Graphs(functions) = c.source(FUNCTION) else { return false };
        let x = c.session.eager().var(c.x.clone());
        functions.call_if_tracing("f", x.ops(), &[&x], |_| Ok(x.clone().into())).is_ok()
    })),
    ("set_fusion_strategy", Is("`EngineOptions::fusion_strategy` (STATIC), `specialisations` (STATIC and DYNAMIC together), `fuse`", |c| c.model.engine(&EngineOptions::default().fusion_strategy(frazil::FusionStrategy { static_shapes: 2 }).specialisations(Some(12)).fuse(false).kind(EngineKind::Interpreter)).is_ok())),
    ("strict_fusion", Is("`EngineOptions`, `jit-run --strict`: all that cannot be compiled is one error", |c| c.model.engine(&EngineOptions::default().strict(true).kind(EngineKind::Interpreter)).is_ok())),
    ("trace", Is("`Session::trace`", |c| c.session.trace(|x| x[0].relu().call(), std::slice::from_ref(&c.x), &TraceOptions::default()).is_ok())),
    ("trace_module", Is("`Session::trace_module`", |c| {
        let mut parameters = frazil::trace::Parameters::new("Net");
        parameters.parameter("scale", Tensor::scalar(DType::Float, 2.0.into()));
        let forward = frazil::trace::Method { name: "forward", function: &|p, x| Ok((&x[0] * p.get("scale")?)?.into()), inputs: std::slice::from_ref(&c.x) };
        c.session.trace_module(&parameters, &[forward], &TraceOptions::default()).is_ok_and(|t| t.to_model().root().has_attribute("scale"))
    })),
    ("unused", Without("code that stays Python cannot run here")),
    ("wait", Is("in source", |c| doubles(c, FORKING))),
];

#[rustfmt::skip]
const SCRIPT_MODULE: &[(&str, Ours)] = &[
    ("T_destination", Without("a name for type checkers")),
    ("add_module", Is("`Model::add_module`", |c| c.changed(|m| { m.add_module("more", &c.small()).unwrap(); m.root().get_submodule("more").is_ok() }))),
    ("apply", Is("`Model::apply`", |c| c.changed(|m| { let mut paths = Vec::new(); m.apply(|_, path| { paths.push(path.to_owned()); Ok(()) }).unwrap(); paths.len() == 34 && paths.last().is_some_and(String::is_empty) }))),
    ("bfloat16", Is("`Model::bfloat16`", |c| c.has_dtype(DType::BFloat16, Model::bfloat16))),
    ("buffers", Is("`ScriptModule::named_buffers`", |c| !c.model.root().named_buffers(&MemberOptions::default()).unwrap().is_empty())),
    ("call_super_init", Raises(Model::call_super_init)),
    ("children", Is("`ScriptModule::named_children`", |c| !c.model.root().named_children().is_empty())),
    ("code", Is("`ScriptModule::code`, `Loaded::code`", |c| c.model.root().code("stem.0.forward").is_ok() && c.loaded.code(Some("forward"), false).is_ok())),
    ("code_with_constants", Is("`ScriptModule::code_with_constants`", |c| c.model.freeze(&FreezeOptions::default()).is_ok_and(|m| m.root().code_with_constants("forward").is_ok_and(|(_, constants)| constants.get("c0").is_some())))),
    ("compile", Is("`Model::compile`: native code, in memory", compiles)),
    ("cpu", Is("`Model::to(Device::CPU)`", |c| c.changed(|m| m.to(Device::CPU).is_ok() && c.runs(m)))),
    ("cuda", Raises(Model::cuda)),
    ("define", Is("`Model::define`", |c| c.changed(|m| { m.define("def twice(self, x):\n    return self.forward(x) * 2\n").unwrap(); m.root().has_method("twice") }))),
    ("double", Is("`Model::double`", |c| c.has_dtype(DType::Double, Model::double))),
    ("dump_patches", Raises(Model::dump_patches)),
    ("eval", Is("`Model::eval`", |c| c.changed(|m| { m.eval(); !m.root().is_training() }))),
    ("extra_repr", Is("`ScriptModule::extra_repr`; `Display` has the text of the whole module", |c| c.model.root().extra_repr().starts_with("original_name=") && c.model.root().to_string().starts_with("RecursiveScriptModule(\n  original_name="))),
    ("float", Is("`Model::float`", |c| c.has_dtype(DType::Float, Model::float))),
    ("forward", Is("`Engine::call`", |c| c.runs(&c.model))),
    ("forward_magic_method", Raises(Model::forward_magic_method)),
    ("get_buffer", Is("`ScriptModule::get_buffer`", |c| c.model.root().get_buffer(&c.model.root().named_buffers(&MemberOptions::default()).unwrap()[0].0).is_ok())),
    ("get_debug_state", Is("`Engine::notes`", |c| c.model.engine(&EngineOptions::default().kind(EngineKind::Interpreter)).unwrap().notes().is_empty())),
    ("get_extra_state", Raises(Model::get_extra_state)),
    ("get_parameter", Is("`ScriptModule::get_parameter`", |c| c.model.root().get_parameter("stem.0.weight").is_ok())),
    ("get_submodule", Is("`ScriptModule::get_submodule`", |c| c.model.root().get_submodule("stem.0").is_ok())),
    ("graph", Is("`ScriptModule::graph`, `Model::graph`", |c| c.model.root().get_submodule("stem").is_ok_and(|m| m.graph("0.forward").is_ok()) && c.model.graph("forward").is_ok())),
    ("graph_for", Is("`Engine::graph_for`; `jit-opt --emit=kernels` shows what is compiled of it", |c| c.model.engine(&EngineOptions::default().kind(EngineKind::Interpreter)).unwrap().graph_for("forward").is_ok())),
    ("half", Is("`Model::half`", |c| c.has_dtype(DType::Half, Model::half))),
    ("inlined_graph", Is("`Model::run_passes(\"inline\", ..)`", |c| {
        let (inlined, _) = c.model.run_passes("inline", &PassOptions::default()).unwrap();
        let graph = inlined.graph("forward").unwrap();
        !graph.all_nodes().iter().any(|&n| graph.kind_name(n) == "prim::CallMethod")
    })),
    ("ipu", Raises(Model::ipu)),
    ("load_state_dict", Is("`Model::load_state_dict`, `load_state_dict_with`", |c| c.changed(|m| { let state = m.state_dict().unwrap(); m.load_state_dict(&state, true).is_ok() }))),
    ("modules", Is("`ScriptModule::named_modules`", |c| c.model.root().named_modules().len() == 34)),
    ("mtia", Raises(Model::mtia)),
    ("named_buffers", Is("`ScriptModule::named_buffers`", |c| c.model.root().named_buffers(&MemberOptions::default()).unwrap().len() == 27)),
    ("named_children", Is("`ScriptModule::named_children`", |c| c.model.root().named_children().len() == 5)),
    ("named_modules", Is("`ScriptModule::named_modules`, `named_modules_with`", |c| c.model.root().named_modules_with(&MemberOptions::default().prefix("net".to_owned())).is_ok_and(|modules| modules[0].0 == "net"))),
    ("named_parameters", Is("`ScriptModule::named_parameters`", |c| c.model.root().named_parameters(&MemberOptions::default()).unwrap().len() == 29)),
    ("original_name", Is("`ScriptModule::original_name`", |c| !c.model.root().original_name().contains('.'))),
    ("parameters", Is("`ScriptModule::named_parameters`", |c| c.model.root().named_parameters(&MemberOptions::own()).unwrap().is_empty())),
    ("register_backward_hook", Raises(Model::register_backward_hook)),
    ("register_buffer", Is("`Model::register_buffer`", |c| c.changed(|m| { m.register_buffer("more", &c.x, true).unwrap(); m.root().get_buffer("more").is_ok() }))),
    ("register_forward_hook", Is("`Engine::register_forward_hook`, `register_forward_hook_with`", |c| { let mut engine = c.model.engine(&EngineOptions::default().kind(EngineKind::Interpreter)).unwrap(); let first = HookOptions::default().prepend(true).always_call(true); let hook = engine.register_forward_hook(|_, _| Ok(Some(Value::Int(3)))); engine.register_forward_hook_with(&first, |_, _| Ok(Some(Value::Int(4)))).unwrap(); matches!(engine.call_module(&[c.x.clone().into()]), Ok(Value::Int(3))) && engine.remove_hook(hook) })),
    ("register_forward_pre_hook", Is("`Engine::register_forward_pre_hook`, `register_forward_pre_hook_with`", |c| { let mut engine = c.model.engine(&EngineOptions::default().kind(EngineKind::Interpreter)).unwrap(); let of_stem = HookOptions::default().module("stem".to_owned()); engine.register_forward_pre_hook_with(&of_stem, |_| Err(frazil::CallError::Raised("no".to_owned()))).unwrap(); engine.call("stem", &[c.x.clone().into()]).is_err() && engine.call_module(&[c.x.clone().into()]).is_ok() })),
    ("register_full_backward_hook", Raises(Model::register_full_backward_hook)),
    ("register_full_backward_pre_hook", Raises(Model::register_full_backward_pre_hook)),
    ("register_load_state_dict_post_hook", Is("`Model::register_load_state_dict_post_hook`", |c| c.changed(|m| { m.register_load_state_dict_post_hook(|_, keys| { keys.missing_keys.clear(); Ok(()) }); m.load_state_dict(&StateDict::new(), true).is_ok() }))),
    ("register_load_state_dict_pre_hook", Is("`Model::register_load_state_dict_pre_hook`", |c| c.changed(|m| { let state = m.state_dict().unwrap(); let hook = m.register_load_state_dict_pre_hook(|_, loading| { loading.error_msgs.push("no".to_owned()); Ok(()) }); m.load_state_dict(&state, true).is_err() && m.remove_state_hook(hook) }))),
    ("register_module", Is("`Model::register_module`", |c| c.changed(|m| { m.register_module("more", &c.small()).unwrap(); m.root().get_submodule("more").is_ok() }))),
    ("register_parameter", Is("`Model::register_parameter`", |c| c.changed(|m| { m.register_parameter("more", &c.x, false).unwrap(); m.root().get_parameter("more").is_ok() }))),
    ("register_state_dict_post_hook", Is("`Model::register_state_dict_post_hook`", |c| c.changed(|m| { m.register_state_dict_post_hook(|_, state, _| { state.clear(); Ok(()) }); m.state_dict().is_ok_and(|state| state.is_empty()) }))),
    ("register_state_dict_pre_hook", Is("`Model::register_state_dict_pre_hook`", |c| c.changed(|m| { m.register_state_dict_pre_hook(|_, options| if options.prefix.is_empty() { Ok(()) } else { Err(Error::StateDict(options.prefix.clone())) }); m.state_dict().is_ok() && m.root().state_dict_with(&StateDictOptions::default().prefix("net.".to_owned())).is_err() }))),
    ("requires_grad_", Is("`Model::requires_grad_`, `set_requires_grad`; `Tensor::requires_grad` of a parameter tells", |c| c.changed(|m| { m.requires_grad_(false).unwrap(); m.set_requires_grad("stem.0.weight", true).unwrap(); m.root().named_parameters(&MemberOptions::default()).unwrap().iter().filter(|(_, t)| t.requires_grad()).count() == 1 }))),
    ("save", Is("`Model::save`", |c| c.model.save_bytes(&frazil::SaveOptions::default()).is_ok())),
    ("save_to_buffer", Is("`Model::save_bytes`", |c| c.model.save_bytes(&frazil::SaveOptions::default()).unwrap().starts_with(b"PK"))),
    ("set_extra_state", Raises(Model::set_extra_state)),
    ("set_submodule", Is("`Model::set_submodule`; `replace_submodule` is the strict one", |c| c.changed(|m| { m.set_submodule("more", &c.small()).unwrap(); m.replace_submodule("more", &c.small()).is_ok() && m.replace_submodule("other", &c.small()).is_err() }))),
    ("share_memory", Is("`Model::share_memory`, which has nothing to do: clones share weights", |c| { c.model.share_memory(); c.runs(&c.model.clone()) })),
    ("state_dict", Is("`Model::state_dict`, `ScriptModule::state_dict_with`, `state_dict_into`", |c| c.model.state_dict().is_ok() && c.model.root().state_dict_with(&StateDictOptions::default().prefix("net.".to_owned()).keep_vars(true)).is_ok_and(|state| state["net.stem.0.weight"].requires_grad()))),
    ("to", Is("`Model::to` of a `Conversion`; `Model::submodule_mut`", |c| c.has_dtype(DType::Double, |m| m.to((Device::CPU, DType::Double))))),
    ("to_empty", Is("`Model::to_empty`", |c| c.changed(|m| { m.to_empty(Device::CPU).unwrap(); m.root().get_parameter("stem.0.weight").is_ok_and(|t| t.to_f64_vec().iter().all(|x| *x == 0.0)) }))),
    ("train", Is("`Model::train`", |c| c.changed(|m| { m.train(true); m.root().is_training() }))),
    ("type", Is("`Model::to_type`, `to_type_named`", |c| c.changed(|m| m.to_type(DType::Float).is_ok() && m.to_type_named("torch.DoubleTensor").is_ok()))),
    ("xpu", Raises(Model::xpu)),
    ("zero_grad", Is("`Model::zero_grad`, which has nothing to do: there are no gradients", |c| { c.model.zero_grad(); c.runs(&c.model) })),
];

#[rustfmt::skip]
const SCRIPT_FUNCTION: &[(&str, Ours)] = &[
    ("code", Is("`Loaded::code`", |c| c.source(FUNCTION).code(None, false).is_ok())),
    ("get_debug_state", Without("engines are made of modules: `Graphs::to_model`")),
    ("graph", Is("`Loaded::graph`", |c| c.source(FUNCTION).graph("f").is_ok())),
    ("graph_for", Is("`Engine::graph_for` of `Graphs::to_model`", |c| { let Loaded::Graphs(g) = c.source(FUNCTION) else { return false }; g.to_model().engine(&EngineOptions::default().kind(EngineKind::Interpreter).methods(vec!["f".to_owned()])).unwrap().graph_for("f").is_ok() })),
    ("inlined_graph", Is("`Loaded::run_passes(\"inline\", ..)`", |c| c.source(FUNCTION).run_passes("inline", &PassOptions::default()).is_ok())),
    ("name", Is("`ir::Function::name`", |c| with_function(c, |text, _| text.ends_with('f')))),
    ("qualified_name", Is("`ir::Function::name`", |c| with_function(c, |text, _| text.contains("__torch__")))),
    ("save", Is("`Graphs::to_model`, `Model::save`", |c| matches!(c.source(FUNCTION), Loaded::Graphs(g) if g.to_model().save_bytes(&frazil::SaveOptions::default()).is_ok()))),
    ("save_to_buffer", Is("`Graphs::to_model`, `Model::save_bytes`", |c| matches!(c.source(FUNCTION), Loaded::Graphs(g) if g.to_model().save_bytes(&frazil::SaveOptions::default()).is_ok()))),
    ("schema", Is("`ir::Function::schema`", |c| with_function(c, |_, arguments| arguments == 1))),
];

const FUNCTION: &str = "def f(x):\n    return x + 1\n";
const FORKING: &str =
    "def g(x):\n    return x * 2\n\ndef f(x):\n    future = torch.jit.fork(g, x)\n    return torch.jit.wait(future)\n";
const INTERFACE: &str = "@torch.jit.interface\nclass Shape:\n    def area(self) -> float:\n        pass\n\ndef f(x: Shape) -> float:\n    return x.area()\n";
const EXPORTED: &str = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2
    def forward(self, x):
        return x
    @torch.jit.export
    def other(self, x):
        return x * self.scale
model = Net()
";

#[cfg(feature = "codegen")]
fn compiles(c: &Case) -> bool {
    let input = frazil::InputSpec::new(DType::Float, &[1, 3, 32, 32]);
    let frozen = c.model.freeze(&FreezeOptions::default()).unwrap();
    frozen.compile(&[input], &frazil::CompileOptions::default()).is_ok()
}

/// Stands for a use that is skipped without native code.
#[cfg(not(feature = "codegen"))]
fn compiles(_: &Case) -> bool {
    true
}

/// Returns whether function `f` of the source doubles its argument.
fn doubles(c: &Case, source: &str) -> bool {
    let Loaded::Graphs(functions) = c.source(source) else {
        return false;
    };
    let x = c.session.eager().var(Tensor::from_i64(&[1, 2], &[2]).unwrap());
    let Ok(Outputs::Tensor(y)) = functions.call("f", x.ops(), &[&x]) else {
        return false;
    };
    y.get().to_i64_vec() == [2, 4]
}

/// Evaluates a predicate on the name and the number of arguments of a function from source.
fn with_function(c: &Case, ask: fn(&str, usize) -> bool) -> bool {
    let Loaded::Graphs(graphs) = c.source(FUNCTION) else {
        return false;
    };
    let function: Option<(FunctionId, _)> = graphs.unit().functions().next();
    function.is_some_and(|(_, f)| ask(c.session.ctx().name(f.name), f.schema.arguments.len()))
}

#[test]
fn every_name_has_an_equivalent_that_works_or_a_reason() {
    let case = Case::new();
    let mut broken = Vec::new();
    for (of, table) in [
        ("torch.jit", TORCH_JIT),
        ("ScriptModule", SCRIPT_MODULE),
        ("ScriptFunction", SCRIPT_FUNCTION),
    ] {
        for (name, ours) in table {
            let holds = match ours {
                Is(_, works) => works(&case),
                Without(_) => true,
                Raises(raise) => matches!(raise(&case.model), Err(Error::NoCounterpart { name: n, .. }) if n == *name),
            };
            if !holds {
                broken.push(format!("{of}.{name}"));
            }
        }
        let sorted = table.windows(2).all(|pair| pair[0].0 < pair[1].0);
        assert!(sorted, "the names of {of} stand in order, each once");
    }
    assert!(broken.is_empty(), "these do not do what the table says: {broken:?}");
}

#[test]
fn the_page_of_names_is_true() {
    let mut page = String::from(
        "# PyTorch's names and ours\n\nThis page lists the public names of `torch.jit` and of its classes in PyTorch 2.15, with the names that Frazil has for them. \"In source\" means that the name\nis part of [TorchScript source](language.md). `crates/frazil/tests/suite/pytorch_names.rs` generates the page, and calls each function on it.\n",
    );
    for (of, table) in [
        ("torch.jit", TORCH_JIT),
        ("torch.jit.ScriptModule", SCRIPT_MODULE),
        ("torch.jit.ScriptFunction", SCRIPT_FUNCTION),
    ] {
        page += &format!("\n## {of}\n\n| PyTorch | Frazil |\n| --- | --- |\n");
        for (name, ours) in table {
            page += &match ours {
                Is(ours, _) => format!("| `{name}` | {ours} |\n"),
                Without(reason) => format!("| `{name}` | none: {reason} |\n"),
                Raises(raise) => match raise(&Case::new().model) {
                    Err(Error::NoCounterpart { reason, .. }) => {
                        format!("| `{name}` | none; the method is an error: {reason} |\n")
                    }
                    other => panic!("{name} gives {other:?}"),
                },
            };
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pytorch-names.md");
    if std::env::var_os("FRAZIL_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == there,
        "docs/pytorch-names.md is out of date: FRAZIL_BLESS=1 cargo test -p frazil --test suite pytorch_names"
    );
}
