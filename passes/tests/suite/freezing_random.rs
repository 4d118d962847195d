//! Random modules before and after freezing, each pass alone, and random pipelines, compared call by call, including the arguments after the
//! calls. `FRAZIL_RANDOM_MODULES` is the number of modules (300 by default), `FRAZIL_RANDOM_SEED` the first seed.

use crate::common;

use common::module::random_module;
use common::{Dice, exact_passes, number, registry};
use frazil_ir::{Builder, Constant, Module, symbols};
use frazil_passes::pass::{PassError, TorchScriptError};
use frazil_passes::{FreezeError, FreezeOptions, PassManager, PassRegistry, freeze_module};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::{Registry, Tensor, Value};
use frazil_syntax::{NoTensors, parse_module, print_module_to_string};
use std::sync::Arc;

/// For each call the bits of its result and of its argument afterwards; `None` if it failed.
type Results = Vec<Option<Vec<u64>>>;

/// Returns the results of six consecutive calls on one instance.
fn results(registry: &Arc<Registry>, module: &Module, seed: u64) -> Results {
    let interpreter = Interpreter::with_module(registry.clone(), Arc::new(module.clone())).unwrap();
    let mut dice = Dice::new(seed);
    let call = |i: usize| {
        let (method, c) = (*dice.pick(&["forward", "other"]), dice.chance(50));
        let x: Value = Tensor::from_f32(&[i as f32 + 1.0, -2.0], &[2]).unwrap().into();
        let result = interpreter.call(method, &[x.clone(), Value::Bool(c)]).ok()?;
        let bits = |v: &Value| v.as_tensor().unwrap().to_f64_vec().into_iter().map(number_bits);
        Some(bits(&result).chain(bits(&x)).collect())
    };
    (0..6).map(call).collect()
}

/// Returns the bits of a number; equal for all NaNs, and for both zeros.
fn number_bits(x: f64) -> u64 {
    if x.is_nan() {
        f64::NAN.to_bits()
    } else {
        (x + 0.0).to_bits()
    }
}

fn module_of(registry: &Registry, seed: u64) -> (String, Module) {
    let text = random_module(&mut Dice::new(seed));
    let module =
        parse_module(registry.ctx(), &text, &NoTensors).unwrap_or_else(|e| panic!("{text}\n{:?}", e.diagnostics));
    (text, module)
}

/// Freezes a module and applies `after`. Returns `None` if PyTorch would refuse to freeze it; else the results of both.
fn both(seed: u64, after: impl Fn(Module) -> Module) -> (String, Option<(Results, Results)>) {
    let registry = registry();
    let (text, module) = module_of(&registry, seed);
    let mut options = FreezeOptions::default();
    options.freeze.preserve = vec!["other".to_owned()];
    let frozen = match freeze_module(&module, &options, &*registry) {
        Ok(frozen) => after(frozen),
        Err(PassError::Ir(TorchScriptError::Freeze(FreezeError::Overlap { .. }))) => {
            return (text, None);
        }
        Err(e) => panic!("seed {seed}: {e}\n{text}"),
    };
    let results = (results(&registry, &module, seed), results(&registry, &frozen, seed));
    (text, Some(results))
}

/// Returns the seeds of the modules.
fn seeds() -> std::ops::Range<u64> {
    let first = number("FRAZIL_RANDOM_SEED", 1);
    first..first + number("FRAZIL_RANDOM_MODULES", 300)
}

#[test]
fn random_modules_behave_the_same_frozen() {
    let (mut compared, mut refused, mut ran) = (0, 0, 0);
    for seed in seeds() {
        let (text, results) = both(seed, |m| m);
        let Some((expected, got)) = results else {
            refused += 1;
            continue;
        };
        assert_eq!(expected, got, "seed {seed}\n{text}");
        compared += 1;
        ran += expected.iter().filter(|r| r.is_some()).count();
    }
    println!("{compared} modules compared in {ran} calls, {refused} refused for overlaps");
    assert!(ran > 4 * seeds().count(), "most calls give something: {ran} did");
    assert!(10 * refused < compared, "{refused} of them were refused");
}

/// On each module, runs one pass alone, another one for each module, and then a random pipeline of five.
#[test]
fn random_modules_behave_the_same_after_passes() {
    let registry = registry();
    let passes = PassRegistry::standard();
    let names = exact_passes();
    for seed in seeds() {
        let (text, module) = module_of(&registry, seed);
        let expected = results(&registry, &module, seed);
        let mut dice = Dice::new(seed);
        let random: Vec<&str> = (0..5).map(|_| dice.pick(&names).as_str()).collect();
        let alone = &names[seed as usize % names.len()];
        for pipeline in [alone.clone(), format!("inline,{}", random.join(","))] {
            let mut manager = PassManager::from_pipeline(&passes, &pipeline).unwrap();
            manager.verify_each(true);
            let mut after = module.clone();
            manager
                .run(&mut after, &*registry)
                .unwrap_or_else(|e| panic!("seed {seed}, {pipeline}: {e}\n{text}"));
            let got = results(&registry, &after, seed);
            let now = || print_module_to_string(&after, Default::default());
            assert!(
                expected == got,
                "seed {seed}, {pipeline}: {expected:?} became {got:?}\n{text}\nbecame\n{}",
                now()
            );
        }
    }
}

/// Returns an incorrect freezing: folds the remaining attributes although they are written.
fn fold_everything(mut module: Module) -> Module {
    let root = module.root;
    let names: Vec<_> = module.class_of(root).unwrap().methods.keys().copied().collect();
    for name in names {
        let id = module.method(name).unwrap();
        let mut graph = module.unit.function(id).graph.clone();
        for node in graph.all_nodes() {
            let of_root = graph.operand(node, 0) == graph.inputs().first().copied();
            let attribute = graph.attribute_symbol(node, symbols::ATTR_NAME);
            let (symbols::PRIM_GET_ATTR, true, Some(attribute)) = (graph.kind(node), of_root, attribute) else {
                continue;
            };
            if let Some(value @ (Constant::Tensor(_) | Constant::Int(_))) = module.attribute(root, attribute) {
                let new = Builder::before(&mut graph, node).constant(value.clone());
                let old = graph.output(node).unwrap();
                graph.replace_all_uses_with(old, new);
                graph.erase(node);
            }
        }
        module.unit.function_mut(id).graph = graph;
    }
    module
}

#[test]
fn a_freezing_that_folds_too_much_is_caught() {
    let caught = (1..300)
        .filter(|seed| matches!(both(*seed, fold_everything).1, Some((a, b)) if a != b))
        .count();
    assert!(caught > 5, "{caught} of 299 modules tell");
}
