//! Random numbers are drawn when a program runs, never at compile time.

use frazil::{Engine, EngineKind, EngineOptions, Loaded, Session};
use std::path::Path;

#[test]
fn every_call_draws_anew() {
    let program = "
import torch

def f():
    return torch.rand([3])

def g(x: torch.Tensor):
    y = torch.relu(x) + torch.randn_like(x)
    return y * torch.bernoulli(torch.full_like(x, 0.5)) + torch.rand([64]).sum()

def h():
    return torch.randperm(64) + torch.randint(1000, [64])
";
    let loaded = Session::new().load_bytes(Path::new("random.py"), program.as_bytes().to_vec());
    let model = match &loaded.unwrap() {
        Loaded::Model(model) => model.clone(),
        Loaded::Graphs(graphs) => graphs.to_model(),
    };
    for kind in [EngineKind::Native, EngineKind::Interpreter] {
        let options = EngineOptions::default()
            .kind(kind)
            .methods(["f", "g", "h"].map(str::to_owned).to_vec());
        let mut engine = model.engine(&options).unwrap();
        let x = frazil::Tensor::full(frazil::ir::DType::Float, &[64], 1.0.into()).unwrap();
        for (name, arguments) in [("f", vec![]), ("g", vec![x.into()]), ("h", vec![])] {
            let mut draw = || engine.call(name, &arguments).unwrap().as_tensor().unwrap().to_f64_vec();
            assert_ne!(draw(), draw(), "{name} by {kind:?}");
        }
    }
}

/// The expressions that draw, their mean and variance, and the interval of the values.
const DISTRIBUTIONS: &[(&str, f64, f64, f64, f64)] = &[
    ("e.random_(10)", 4.5, 8.25, 0.0, 9.0),
    ("e.random_(-3, 4)", 0.0, 4.0, -3.0, 3.0),
    ("e.to(torch.int8).random_()", 63.5, 1365.25, 0.0, 127.0),
    ("e.to(torch.bool).random_()", 0.5, 0.25, 0.0, 1.0),
    ("e.to(torch.bfloat16).random_()", 128.0, 5504.0, 0.0, 256.0),
    ("torch.randint_like(e, 5)", 2.0, 2.0, 0.0, 4.0),
    ("torch.randint_like(e, 5, dtype=torch.int64)", 2.0, 2.0, 0.0, 4.0),
    ("torch.randint_like(e, 2, 5)", 3.0, 2.0 / 3.0, 2.0, 4.0),
    ("torch.normal(e + 3, e + 2)", 3.0, 4.0, f64::NEG_INFINITY, f64::INFINITY),
    ("torch.normal(e + 3, 0.5)", 3.0, 0.25, f64::NEG_INFINITY, f64::INFINITY),
    ("torch.normal(2.0, e + 3)", 2.0, 9.0, f64::NEG_INFINITY, f64::INFINITY),
    (
        "torch.normal(2.0, 3.0, [20000])",
        2.0,
        9.0,
        f64::NEG_INFINITY,
        f64::INFINITY,
    ),
    ("torch.poisson(e + 2.5)", 2.5, 2.5, 0.0, f64::INFINITY),
    ("torch.poisson(e + 60)", 60.0, 60.0, 0.0, f64::INFINITY),
    ("torch.binomial(e + 8, e + 0.25)", 2.0, 1.5, 0.0, 8.0),
    ("torch.binomial(e + 8, e + 0.75)", 6.0, 1.5, 0.0, 8.0),
    ("torch.binomial(e + 100, e + 0.4)", 40.0, 24.0, 0.0, 100.0),
    ("e.geometric_(0.25)", 4.0, 12.0, 1.0, f64::INFINITY),
    ("e.to(torch.int64).geometric_(0.5)", 2.0, 2.0, 1.0, f64::INFINITY),
    (
        "e.log_normal_(0.0, 0.5)",
        1.1331484530668263,
        0.3646958540123865,
        0.0,
        f64::INFINITY,
    ),
    ("e.exponential_(2.0)", 0.5, 0.25, 0.0, f64::INFINITY),
    ("e.uniform_(-1.0, 3.0)", 1.0, 16.0 / 12.0, -1.0, 3.0),
    ("e.to(torch.bfloat16).uniform_()", 0.498, 1.0 / 12.0, 0.0, 0.9999),
    ("torch.rand_like(e.to(torch.half))", 0.4998, 1.0 / 12.0, 0.0, 0.9999),
    // The median and the half width of a Cauchy distribution, after the arc tangent, which makes it uniform.
    (
        "e.cauchy_(1.0, 2.0).sub(1.0).div(2.0).atan()",
        0.0,
        0.8224670334241132,
        -1.58,
        1.58,
    ),
    ("torch._standard_gamma(e + 3)", 3.0, 3.0, 0.0, f64::INFINITY),
    ("torch._standard_gamma(e + 0.5)", 0.5, 0.5, 0.0, f64::INFINITY),
    (
        "torch._sample_dirichlet((e + 2).reshape([-1, 4]))",
        0.25,
        0.1875 / 9.0,
        0.0,
        1.0,
    ),
];

/// Arguments that PyTorch refuses, and its messages.
const REFUSED: &[(&str, &str)] = &[
    (
        "e.random_(0)",
        "random_ expects 'from' to be less than 'to', but got from=0 >= to=0",
    ),
    (
        "e.to(torch.int8).random_(0, 1000)",
        "to - 1 is out of bounds for signed char",
    ),
    (
        "e.to(torch.uint8).random_(-1, 3)",
        "from is out of bounds for unsigned char",
    ),
    (
        "torch.randint_like(e.to(torch.int8), 2, 500)",
        "to - 1 is out of bounds for signed char",
    ),
    ("torch.normal(e, e - 1)", "normal expects all elements of std >= 0.0"),
    ("torch.normal(e, -2.0)", "normal expects std >= 0.0, but found std -2"),
    (
        "torch.normal(e.to(torch.int64), 2.0)",
        "\"normal_kernel_cpu\" not implemented for 'Long'",
    ),
    (
        "torch.poisson(e - 1)",
        "invalid Poisson rate, expected rate to be non-negative",
    ),
    (
        "torch.poisson(e.to(torch.int64))",
        "\"poisson_cpu\" not implemented for 'Long'",
    ),
    (
        "torch.binomial(e.to(torch.int64), e)",
        "binomial only supports floating-point dtypes for count, got: Long",
    ),
    (
        "torch.binomial(e, e.to(torch.float64))",
        "Found dtype Double but expected Float",
    ),
    ("e.cauchy_(1.0, 0.0)", "cauchy_ expects sigma > 0.0, but found sigma=0"),
    (
        "e.to(torch.int64).cauchy_()",
        "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified long int",
    ),
    ("e.geometric_(1.0)", "geometric_ expects p to be in (0, 1), but got p=1"),
    (
        "e.log_normal_(0.0, 0.0)",
        "log_normal_ expects std > 0.0, but found std=0",
    ),
    (
        "e.exponential_(0.0)",
        "exponential_ expects lambda > 0.0, but found lambda=0",
    ),
    (
        "e.uniform_(3.0, 1.0)",
        "uniform_ expects to return a [from, to) range, but found from=3 > to=1",
    ),
    (
        "e.to(torch.half).uniform_(-1e6, 1e6)",
        "from is out of bounds for c10::Half",
    ),
    (
        "torch.rand_like(e.to(torch.int64))",
        "\"check_uniform_bounds\" not implemented for 'Long'",
    ),
];

/// Returns an engine with a function `f0`, `f1`, ... for each expression over `e`, a tensor of 20000 zeros.
fn engine_of<'a>(expressions: impl Iterator<Item = &'a str>) -> Engine {
    let mut program = "import torch\n".to_owned();
    let mut names = Vec::new();
    for (i, expression) in expressions.enumerate() {
        program += &format!("\ndef f{i}():\n    e = torch.zeros([20000])\n    return {expression}\n");
        names.push(format!("f{i}"));
    }
    let loaded = Session::new().load_bytes(Path::new("random.py"), program.into_bytes());
    let model = match &loaded.unwrap() {
        Loaded::Model(model) => model.clone(),
        Loaded::Graphs(graphs) => graphs.to_model(),
    };
    let options = EngineOptions::default().kind(EngineKind::Interpreter).methods(names);
    model.engine(&options).unwrap()
}

#[test]
fn distributions_have_their_moments() {
    let mut engine = engine_of(DISTRIBUTIONS.iter().map(|row| row.0));
    for (i, &(expression, mean, variance, low, high)) in DISTRIBUTIONS.iter().enumerate() {
        let result = engine.call(&format!("f{i}"), &[]).unwrap();
        let numbers = result.as_tensor().unwrap().to_f64_vec();
        let count = numbers.len() as f64;
        let found = numbers.iter().sum::<f64>() / count;
        let spread = numbers.iter().map(|x| (x - found) * (x - found)).sum::<f64>() / count;
        // Six standard errors: the probability of a larger deviation is below one in a hundred million.
        let margin = 6.0 * (variance / count).sqrt() + 1e-3;
        assert!(
            (found - mean).abs() < margin,
            "{expression}: mean {found} instead of {mean}"
        );
        assert!(
            (spread / variance - 1.0).abs() < 0.25,
            "{expression}: variance {spread} instead of {variance}"
        );
        assert!(
            numbers.iter().all(|x| (low..=high).contains(x)),
            "{expression}: outside of {low}..={high}"
        );
    }
}

#[test]
fn what_pytorch_refuses_is_refused_in_its_words() {
    let mut engine = engine_of(REFUSED.iter().map(|row| row.0));
    for (i, (expression, words)) in REFUSED.iter().enumerate() {
        let error = engine.call(&format!("f{i}"), &[]).expect_err(expression).to_string();
        assert!(error.contains(words), "{expression}: {error}");
    }
}
