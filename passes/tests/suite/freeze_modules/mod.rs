//! Freezing of modules: remaining attributes and methods, and results, call by call. Every module is also frozen again, directly and after saving and loading.

mod attributes;
mod objects;
mod refused;
mod submodules;

use frazil_ir::{Constant, Context, DType, Encoding, Module, ObjectId, TensorData, TupleConstant};
use frazil_passes::freeze::{Freeze, Keeper, kept_attributes};
use frazil_passes::optimize_for_inference::optimize_module_for_inference;
use frazil_passes::pass::{ModulePass, PassContext};
use frazil_passes::{FreezeOptions, freeze_module};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::{Registry, Tensor, Value};
use frazil_syntax::{NoTensors, equal_modules, parse_module};
use frazil_torchscript::{LoadOptions, SaveOptions, Source, load_bytes, load_source, save_bytes};
use std::sync::Arc;

fn registry() -> Arc<Registry> {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    Arc::new(registry)
}

fn options(registry: &Registry) -> LoadOptions<'_> {
    LoadOptions::new(registry.ctx(), registry.catalogue())
}

/// Returns the module of `source`: `.ir` text, or TorchScript.
fn module(registry: &Registry, source: &str) -> Module {
    if source.starts_with("frazil module") {
        return parse_module(registry.ctx(), source, &NoTensors).unwrap_or_else(|e| panic!("{e}"));
    }
    match load_source("net.py", source, &options(registry)) {
        Ok(Source::Module(module)) => *module,
        Ok(Source::Unit(_)) => panic!("no module in\n{source}"),
        Err(e) => panic!("{e}\n{source}"),
    }
}

fn freeze(preserve: &[&str]) -> FreezeOptions {
    let mut options = FreezeOptions::default();
    options.freeze.preserve = preserve.iter().map(|name| (*name).to_owned()).collect();
    options
}

/// Paths of all attributes that are not submodules, and of all methods, sorted.
fn names(module: &Module) -> (Vec<String>, Vec<String>) {
    let ctx = module.ctx();
    let (mut attributes, mut methods) = (Vec::new(), Vec::new());
    let mut work: Vec<(ObjectId, String)> = vec![(module.root, String::new())];
    while let Some((object, base)) = work.pop() {
        let class = module.class_of(object).unwrap();
        methods.extend(class.methods.keys().map(|name| format!("{base}{}", ctx.name(*name))));
        for (name, value) in class.attributes.keys().zip(&module.object(object).slots) {
            let path = format!("{base}{}", ctx.name(*name));
            match value {
                Constant::Object(inner) => work.push((*inner, format!("{path}."))),
                _ => attributes.push(path),
            }
        }
    }
    attributes.sort();
    methods.sort();
    (attributes, methods)
}

/// Returns the results of calling `methods` in turn, for three rounds, on one instance.
fn results(registry: &Arc<Registry>, module: &Module, methods: &[&str]) -> Vec<String> {
    let interpreter = Interpreter::with_module(registry.clone(), Arc::new(module.clone())).unwrap();
    let call = |round: usize, method: &&str| {
        let x = Value::from(Tensor::from_f32(&[round as f32 + 0.5, 2.0], &[2]).unwrap());
        let result = interpreter.call(method, &[x]);
        match result {
            Ok(value) => value.as_tensor().map_or_else(
                || format!("{value:?}"),
                |t| format!("{:?} {:?}", t.sizes(), t.to_f64_vec()),
            ),
            Err(e) => format!("raises {e}"),
        }
    };
    (0..3)
        .flat_map(|round| methods.iter().map(move |method| (round, method)))
        .map(|(round, method)| call(round, method))
        .collect()
}

struct Case {
    name: &'static str,
    source: &'static str,
    preserve: &'static [&'static str],
    /// The remaining attributes.
    attributes: &'static [&'static str],
    /// The remaining methods.
    methods: &'static [&'static str],
}

/// Returns the methods of the module itself.
fn own<'a>(methods: &[&'a str]) -> Vec<&'a str> {
    methods.iter().copied().filter(|name| !name.contains('.')).collect()
}

#[test]
fn freezing_leaves_what_is_needed_and_gives_the_same_results() {
    let mut failures = Vec::new();
    let cases = attributes::CASES.iter().chain(submodules::CASES).chain(objects::CASES);
    for case in cases {
        let registry = registry();
        let original = module(&registry, case.source);
        let mut fail = |what: String| failures.push(format!("{}: {what}", case.name));
        let frozen = match freeze_module(&original, &freeze(case.preserve), &*registry) {
            Ok(frozen) => frozen,
            Err(e) => {
                fail(e.to_string());
                continue;
            }
        };
        let wanted = (case.attributes.iter(), case.methods.iter());
        let wanted: (Vec<String>, Vec<String>) = (
            wanted.0.map(|name| (*name).to_owned()).collect(),
            wanted.1.map(|name| (*name).to_owned()).collect(),
        );
        if names(&frozen) != wanted {
            fail(format!("{:?} is left", names(&frozen)));
        }
        let methods = own(case.methods);
        let expected = results(&registry, &original, &methods);
        if expected.iter().any(|result| result.starts_with("raises")) {
            fail(format!("the module itself: {expected:?}"));
        }
        if results(&registry, &frozen, &methods) != expected {
            fail("other results".to_owned());
        }
        match freeze_module(&frozen, &freeze(case.preserve), &*registry) {
            Ok(again) => {
                if let Err(difference) = equal_modules(&frozen, &again) {
                    fail(format!("frozen again: {difference}"));
                }
            }
            Err(e) => fail(format!("again: {e}")),
        }
        let bytes = save_bytes(&frozen, registry.catalogue(), &SaveOptions::default()).unwrap();
        let loaded = load_bytes(bytes, &options(&registry)).unwrap();
        if names(&loaded) != wanted || results(&registry, &loaded, &methods) != expected {
            fail("what an archive gives is different".to_owned());
        }
        match freeze_module(&loaded, &freeze(case.preserve), &*registry) {
            Ok(again) => {
                if names(&again) != wanted || results(&registry, &again, &methods) != expected {
                    fail("frozen again behind an archive, it is different".to_owned());
                }
            }
            Err(e) => fail(format!("again behind an archive: {e}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn refusals_have_pytorchs_words() {
    for (source, preserve, words) in refused::REFUSED {
        let registry = registry();
        let original = module(&registry, source);
        match freeze_module(&original, &freeze(preserve), &*registry) {
            Ok(_) => panic!("not refused with `{words}`:\n{source}"),
            Err(e) => assert!(e.to_string().contains(words), "`{e}` does not say `{words}`"),
        }
    }
}

#[test]
fn a_module_in_training_mode_keeps_its_parameters_and_what_it_asks_about_training() {
    let registry = registry();
    let source = "
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.rate = 0.5
    def forward(self, x):
        if self.training:
            return x * self.weight
        return x * self.rate
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.by = 3
    def forward(self, x):
        return self.part(x) * self.by
model = Net().train()
";
    let original = module(&registry, source);
    let mut frozen = original.clone();
    let mut cx = PassContext::new(&*registry);
    Freeze::default().run(&mut frozen, &mut cx).unwrap();
    assert_eq!(names(&frozen).0, ["part.training", "part.weight"]);
    assert_eq!(
        results(&registry, &frozen, &["forward"]),
        results(&registry, &original, &["forward"])
    );
}

#[test]
fn parameters_are_kept_when_asked_for() {
    let registry = registry();
    let source = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.by = 3
    def forward(self, x):
        return x * self.weight * self.by
model = Net().eval()
";
    let mut options = freeze(&[]);
    options.freeze.preserve_parameters = true;
    let original = module(&registry, source);
    let frozen = freeze_module(&original, &options, &*registry).unwrap();
    assert_eq!(names(&frozen).0, ["weight"]);
}

#[test]
fn the_modules_own_hooks_stay_with_what_they_read() {
    let registry = registry();
    let source = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = torch.zeros(2)
        self.bias = torch.ones(2)
    def forward(self, x):
        return x + self.bias
    @torch.jit.export
    def before(self, input: Tuple[Tensor]):
        self.seen.add_(input[0])
    @torch.jit.export
    def after(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
        return output * self.seen
    @torch.jit.export
    def other(self, x):
        return x
model = Net().eval()
";
    let mut original = module(&registry, source);
    let class = original.object(original.root).class;
    let class = original.unit.classes.get_mut(&class).unwrap();
    class.forward_pre_hooks.push(registry.ctx().symbol("before"));
    class.forward_hooks.push(registry.ctx().symbol("after"));
    let frozen = freeze_module(&original, &freeze(&[]), &*registry).unwrap();
    let bytes = save_bytes(&frozen, registry.catalogue(), &SaveOptions::default()).unwrap();
    for module in [&frozen, &load_bytes(bytes, &options(&registry)).unwrap()] {
        let (attributes, methods) = names(module);
        assert_eq!(attributes, ["seen"]);
        assert_eq!(methods, ["after", "before", "forward"]);
        let class = module.class_of(module.root).unwrap();
        assert_eq!((class.forward_pre_hooks.len(), class.forward_hooks.len()), (1, 1));
    }
}

/// PyTorch's own result with a convolution cannot be loaded after saving; with a vector as weight it fails.
#[test]
fn what_is_optimised_for_inference_goes_through_archives() {
    let registry = registry();
    let source = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.fc = nn.Linear(4, 5)
        self.vector = torch.tensor([0.5, 1.0, -1.0, 2.0, 0.25])
    def forward(self, x):
        y = x.reshape([1, 2, 1, 1]).expand([1, 2, 4, 4])
        z = torch.relu(self.norm(self.conv(y)) * 2 + 1)
        return F.linear(self.fc(torch.flatten(z, 2)), self.vector)
model = Net().eval()
";
    let original = module(&registry, source);
    let optimized = optimize_module_for_inference(&original, &freeze(&[]), &*registry).unwrap();
    let bytes = save_bytes(&optimized, registry.catalogue(), &SaveOptions::default()).unwrap();
    let loaded = load_bytes(bytes, &options(&registry)).unwrap();
    let numbers = |module: &Module| {
        let interpreter = Interpreter::with_module(registry.clone(), Arc::new(module.clone())).unwrap();
        let x = Value::from(Tensor::from_f32(&[0.5, -2.0], &[2]).unwrap());
        interpreter
            .call("forward", &[x])
            .unwrap()
            .as_tensor()
            .unwrap()
            .to_f64_vec()
    };
    let expected = numbers(&original);
    for module in [&optimized, &loaded] {
        let found = numbers(module);
        assert_eq!(found.len(), expected.len());
        for (a, b) in expected.iter().zip(found) {
            assert!((a - b).abs() < 1e-5, "{a} became {b}");
        }
    }
}

#[test]
fn sparse_tensors_and_what_holds_them_stay_attributes() {
    let registry = registry();
    let source = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.alone = torch.ones(2, 2)
        self.pair = (torch.ones(2), 3)
        self.weight = torch.ones(2)
    def forward(self, x):
        return torch.mm(self.alone, x), self.pair[0], self.weight
model = Net().eval()
";
    let mut original = module(&registry, source);
    let indices = TensorData::contiguous(DType::Long, &[2, 1], vec![0; 16]).unwrap();
    let values = TensorData::contiguous(DType::Float, &[1], 1.0f32.to_le_bytes().to_vec()).unwrap();
    let encoding = Encoding::SparseCoo {
        indices: Arc::new(indices),
        values: Arc::new(values),
    };
    let sparse = Constant::Tensor(Arc::new(
        TensorData::sparse(DType::Float, [2, 2].as_slice(), encoding).unwrap(),
    ));
    let (alone, pair) = (original.ctx().symbol("alone"), original.ctx().symbol("pair"));
    let Some(Constant::Tuple(tuple)) = original.attribute(original.root, pair).cloned() else {
        panic!("a tuple");
    };
    let items = vec![sparse.clone(), tuple.items[1].clone()];
    let tuple = Constant::Tuple(Arc::new(TupleConstant { ty: tuple.ty, items }));
    assert!(original.set_attribute(original.root, alone, sparse));
    assert!(original.set_attribute(original.root, pair, tuple));

    let frozen = freeze_module(&original, &freeze(&[]), &*registry).unwrap();
    assert_eq!(names(&frozen).0, ["alone", "pair"]);
    let kept = kept_attributes(&frozen, &*registry);
    assert!(kept.iter().all(|kept| kept.keeper == Keeper::NoConstant), "{kept:?}");
}
