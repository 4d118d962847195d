//! Eager kernels against the programs that they replace.
//!
//! The interpreter runs an eager kernel where native code runs the operator's program, so that a difference between the two is one between the engines.
//! The operators come from the registry: one without samples here fails the test.

use frazil_ir::{Context, DType};
use frazil_recorded::bits::{Within, difference};
use frazil_recorded::random::Random;
use frazil_runtime::import::Importer;
use frazil_runtime::op::{Operator, Variant};
use frazil_runtime::value::{ListValue, Value};
use frazil_runtime::{Registry, Tensor};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::calls::{Differences, by_call, by_program, each_recorded, name_of, registry};
use crate::random::{laid_out_otherwise, like, number};

/// Kernels whose results may differ from the program's: operator, units in the last place of the largest element, reason.
const TOLERANCES: &[(&str, f64, &str)] = &[];

/// Kernels that raise where the program returns something: operator, and the reason.
const RAISE: &[(&str, &str)] = &[(
    "aten::view",
    "a view that the strides do not allow is refused; programs number elements row by row and know no strides",
)];

/// Programs that raise where the kernel returns something: operator, and the reason.
const PROGRAMS_RAISE: &[(&str, &str)] = &[(
    "aten::_unsafe_index.Tensor",
    "where nothing is read the kernel ignores indices that are out of range, as PyTorch does; programs check them, after which the native engine runs the interpreter",
)];

/// Dtypes of the samples. Programs know no complex numbers.
const DTYPES: &[DType] = &[
    DType::Double,
    DType::Float,
    DType::Half,
    DType::BFloat16,
    DType::Long,
    DType::Byte,
    DType::Bool,
];

/// What came of a comparison.
enum Outcome {
    /// No program covers the arguments.
    NoProgram,
    Equal,
    Differs(String),
}

fn compare(ctx: &Context, op: &Operator, args: &[Value]) -> Outcome {
    let complex = |v: &Value| v.as_tensor().is_some_and(|t| t.dtype().is_complex());
    if args.iter().any(complex) {
        return Outcome::NoProgram;
    }
    let Some(want) = by_program(ctx, op, args) else {
        return Outcome::NoProgram;
    };
    let name = name_of(ctx, op);
    let listed = TOLERANCES.iter().find(|t| t.0 == name);
    let within = listed.map_or(Within::Bits, |t| Within::Units(t.1));
    match (want, by_call(ctx, op, args)) {
        (Ok(want), Ok(got)) => difference(&want, &got, within).map_or(Outcome::Equal, Outcome::Differs),
        (Err(_), Err(_)) => Outcome::Equal,
        (Ok(_), Err(_)) if RAISE.iter().any(|r| r.0 == name) => Outcome::Equal,
        (Ok(_), Err(e)) => Outcome::Differs(format!("the kernel raises {e}")),
        (Err(_), Ok(_)) if PROGRAMS_RAISE.iter().any(|r| r.0 == name) => Outcome::Equal,
        (Err(e), Ok(_)) => Outcome::Differs(format!("the program raises {e}")),
    }
}

/// Names of the overloads for which the interpreter runs a kernel in place of the program.
fn eager_operators(registry: &Registry) -> impl Iterator<Item = &str> {
    registry
        .entries()
        .filter(|(_, entry)| entry.is_eager())
        .map(|(name, _)| name)
}

/// The overload of a name such as `aten::index.Tensor`.
fn find(registry: &Registry, name: &str) -> Operator {
    let (base, overload) = name.split_once('.').unwrap_or((name, ""));
    let op = registry.find(base, overload);
    op.expect("what has an eager kernel has a schema")
}

#[test]
fn eager_kernels_return_what_programs_return() {
    let registry = registry();
    let ctx = registry.ctx();
    let differences = Differences::default();
    let mut without = Vec::new();
    for (seed, name) in (0..).zip(eager_operators(&registry)) {
        let op = find(&registry, name);
        assert!(op.sees_strides(), "{name}: the kernel is not used");
        let mut compared = 0;
        for sample in samples(name, &mut Random::new(seed)) {
            let args = complete(&op, sample);
            match compare(ctx, &op, &args) {
                Outcome::NoProgram => {}
                Outcome::Equal => compared += 1,
                Outcome::Differs(what) => {
                    compared += 1;
                    let dtypes: Vec<String> = args
                        .iter()
                        .filter_map(Value::as_tensor)
                        .map(|t| t.dtype().to_string())
                        .collect();
                    differences.add(name, format!("{what} ({})", dtypes.join(", ")));
                }
            }
        }
        if compared < 2 {
            without.push(name);
        }
    }
    assert!(
        without.is_empty(),
        "eager kernels without samples that their programs cover: {without:?}"
    );
    differences.assert_none();
}

#[test]
fn eager_kernels_return_what_programs_return_on_recorded_samples() {
    let registry = registry();
    let shared: Arc<(Differences, Mutex<BTreeSet<String>>)> = Arc::default();
    let (state, operators) = (shared.clone(), registry.clone());
    each_recorded(&registry, move |case, op, args| {
        if !op.sees_strides() || op.variant() != Variant::Functional || op.schema().is_mutable() {
            return;
        }
        let ctx = operators.ctx();
        for args in [
            args.to_vec(),
            like(&mut Random::new(7), args, false),
            like(&mut Random::new(8), args, true),
        ] {
            let name = name_of(ctx, op);
            match compare(ctx, op, &args) {
                Outcome::NoProgram => continue,
                Outcome::Equal => {}
                Outcome::Differs(what) => state.0.add(&name, format!("{case}: {what}")),
            }
            state.1.lock().expect("no panic holds the lock").insert(name);
        }
    });
    shared.0.assert_none();
    let compared = shared.1.lock().expect("no panic holds the lock");
    assert!(compared.len() >= 8, "only {compared:?} occur in the samples");
}

#[test]
fn exceptions_name_eager_kernels() {
    let registry = registry();
    let known: BTreeSet<&str> = eager_operators(&registry).collect();
    let lists = RAISE.iter().chain(PROGRAMS_RAISE).map(|r| r.0);
    let listed = TOLERANCES.iter().map(|t| t.0).chain(lists);
    // `_unsafe_index` is another name of `index`.
    let stale: Vec<&str> = listed
        .filter(|name| !known.contains(name.replace("_unsafe_", "").as_str()))
        .collect();
    assert!(stale.is_empty(), "{stale:?}");
}

/// The arguments with the schema's defaults for those that are not given.
fn complete(op: &Operator, mut given: Vec<Value>) -> Vec<Value> {
    let mut importer = Importer::new();
    for argument in op.schema().arguments.iter().skip(given.len()) {
        let default = argument.default.as_ref();
        given.push(default.map_or(Value::None, |c| importer.value(c, None).expect("a plain value")));
    }
    given
}

/// Tensors of all dtypes and of two layouts each, with and without special numbers. Sums of so many elements show their order.
fn tensors(random: &mut Random, sizes: &[i64]) -> Vec<Tensor> {
    let mut all = Vec::new();
    for &dtype in DTYPES {
        for specials in [false, true] {
            let t = random.tensor(dtype, sizes, specials && dtype.is_floating_point());
            all.extend(laid_out_otherwise(&t));
            all.push(t);
        }
    }
    all
}

fn floats(value: &[f64]) -> Value {
    Value::List(ListValue::new(
        frazil_ir::types::FLOAT,
        value.iter().map(|&x| Value::Float(x)).collect(),
    ))
}

fn dtype(dtype: DType) -> Value {
    Value::Int(dtype.code())
}

/// The leading arguments of calls of `name`; nothing for a kernel that this table does not know.
fn samples(name: &str, random: &mut Random) -> Vec<Vec<Value>> {
    let base = name.split_once('.').map_or(name, |(base, _)| base);
    match base {
        "aten::zeros_like" | "aten::ones_like" => on(random, &[&[3, 5], &[]], &[vec![], vec![dtype(DType::Half)]]),
        "aten::empty_like" => on(random, &[&[3, 5]], &[vec![]]),
        "aten::full_like" => on(
            random,
            &[&[3, 5], &[]],
            &[
                vec![Value::Int(3)],
                vec![Value::Float(0.1)],
                vec![Value::Float(f64::NAN), dtype(DType::Float)],
            ],
        ),
        "aten::full" => vec![
            vec![Value::ints([2, 3]), Value::Float(0.1)],
            vec![Value::ints([]), Value::Int(-7)],
            vec![Value::ints([4]), Value::Bool(true)],
            vec![Value::ints([4]), Value::Float(0.1), dtype(DType::Half)],
            vec![Value::ints([0, 2]), Value::Int(1), dtype(DType::Double)],
        ],
        "aten::new_full" => on(
            random,
            &[&[3]],
            &[
                vec![Value::ints([2, 3]), Value::Float(0.1)],
                vec![Value::ints([]), Value::Int(7), dtype(DType::BFloat16)],
            ],
        ),
        "aten::upsample_bilinear2d" | "aten::upsample_bicubic2d" => resized(name, random),
        "aten::batch_norm" | "aten::instance_norm" => normalised(base, random),
        "aten::index" => indexed(random, name.ends_with("twin")),
        "aten::view" => on(
            random,
            &[&[6, 20]],
            &[
                vec![Value::ints([4, 30])],
                vec![Value::ints([-1])],
                vec![Value::ints([6, 4, 5])],
            ],
        ),
        "aten::ravel" => on(random, &[&[6, 20], &[], &[2, 0]], &[vec![]]),
        "aten::to" => converted(name, random),
        "aten::contiguous" | "aten::clone" => on(random, &[&[3, 4], &[2, 3, 4, 5]], &[vec![], vec![Value::Int(0)]]),
        "aten::nan_to_num" => on(
            random,
            &[&[9, 31]],
            &[
                vec![],
                vec![Value::Float(0.3), Value::Float(7.7), Value::Float(-7.7)],
                vec![Value::None, Value::Float(1e300), Value::None],
            ],
        ),
        "aten::mH" | "aten::adjoint" | "aten::matrix_H" => on(random, &[&[17, 9]], &[vec![]]),
        "aten::real"
        | "aten::conj"
        | "aten::_conj"
        | "aten::resolve_conj"
        | "aten::resolve_neg"
        | "aten::conj_physical"
        | "aten::_conj_physical"
        | "aten::angle"
        | "aten::isreal" => on(random, &[&[9, 31], &[]], &[vec![]]),
        _ => Vec::new(),
    }
}

/// Each of the tensors, followed by each of `rests`.
fn on(random: &mut Random, sizes: &[&[i64]], rests: &[Vec<Value>]) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for sizes in sizes {
        for t in tensors(random, sizes) {
            all.extend(
                rests
                    .iter()
                    .map(|rest| [&[Value::from(t.clone())], rest.as_slice()].concat()),
            );
        }
    }
    all
}

fn resized(name: &str, random: &mut Random) -> Vec<Vec<Value>> {
    let mut rests = Vec::new();
    for corners in [false, true] {
        for sizes in [[11, 7], [3, 19], [5, 9]] {
            rests.push(vec![Value::ints(sizes), Value::Bool(corners)]);
            if name.ends_with(".vec") {
                rests.last_mut().expect("it was pushed").push(Value::None);
            }
        }
        match name.ends_with(".vec") {
            true => rests.push(vec![Value::None, Value::Bool(corners), floats(&[1.7, 0.6])]),
            false => rests.push(vec![
                Value::ints([8, 5]),
                Value::Bool(corners),
                Value::Float(1.7),
                Value::Float(0.6),
            ]),
        }
    }
    on(random, &[&[2, 3, 5, 9]], &rests)
}

fn normalised(name: &str, random: &mut Random) -> Vec<Vec<Value>> {
    let channels: [i64; 1] = [5];
    let mut all = Vec::new();
    for x in tensors(random, &[3, 5, 7, 6]) {
        if !x.dtype().is_floating_point() {
            continue;
        }
        let vector = |random: &mut Random| random.tensor(x.dtype(), &channels, false);
        // Variances are positive.
        let variance = |random: &mut Random| {
            let v: Vec<f32> = vector(random)
                .to_f64_vec()
                .iter()
                .map(|x| x.abs() as f32 + 0.1)
                .collect();
            Tensor::from_f32(&v, &channels)
                .and_then(|t| t.to_dtype(x.dtype()))
                .expect("numbers convert")
        };
        for (affine, statistics) in [(true, true), (false, true), (true, false)] {
            let part = |random: &mut Random| if affine { vector(random).into() } else { Value::None };
            let (weight, bias) = (part(random), part(random));
            // Without the statistics of the input, running ones are needed.
            let from_input = !statistics;
            let (mean, var) = match statistics {
                true => (vector(random).into(), variance(random).into()),
                false => (Value::None, Value::None),
            };
            let flags = [
                Value::Bool(from_input),
                Value::Float(0.1),
                Value::Float(1e-5),
                Value::Bool(true),
            ];
            all.push([vec![x.clone().into(), weight, bias, mean, var], flags.to_vec()].concat());
        }
        // The statistics of the input, which also update the running ones.
        let flags = [
            Value::Bool(true),
            Value::Float(0.3),
            Value::Float(1e-5),
            Value::Bool(true),
        ];
        let running = vec![vector(random).into(), variance(random).into()];
        all.push(
            [
                vec![x.clone().into(), Value::None, Value::None],
                running,
                flags.to_vec(),
            ]
            .concat(),
        );
    }
    assert!(!all.is_empty(), "{name}");
    all
}

fn indexed(random: &mut Random, all_tensors: bool) -> Vec<Vec<Value>> {
    let mut lists: Vec<Vec<Value>> = vec![
        vec![random.indices(&[4], 6).into()],
        vec![random.indices(&[2, 3], 6).into(), random.indices(&[3], 5).into()],
        vec![random.indices(&[], 6).into()],
        vec![
            random.indices(&[2, 1], 6).into(),
            random.indices(&[3], 5).into(),
            random.indices(&[1], 7).into(),
        ],
        // Counted from the end.
        vec![Tensor::from_i64(&[-1, -6, 2], &[3]).expect("three").into()],
    ];
    if !all_tensors {
        lists.push(vec![Value::None, random.indices(&[4], 5).into()]);
        lists.push(vec![
            random.indices(&[3], 6).into(),
            Value::None,
            random.indices(&[3], 7).into(),
        ]);
    }
    let lists: Vec<Vec<Value>> = lists
        .into_iter()
        .map(|items| vec![Value::List(ListValue::new(frazil_ir::types::TENSOR, items))])
        .collect();
    on(random, &[&[6, 5, 7]], &lists)
}

fn converted(name: &str, random: &mut Random) -> Vec<Vec<Value>> {
    let device = Value::Device(frazil_ir::Device::CPU);
    let flags = |copy: bool| [Value::Bool(false), Value::Bool(copy)];
    let mut rests = Vec::new();
    for to in [
        DType::Double,
        DType::Float,
        DType::Half,
        DType::BFloat16,
        DType::Int,
        DType::Bool,
    ] {
        for copy in [false, true] {
            let leading = match name {
                "aten::to.device" => vec![device.clone(), dtype(to)],
                "aten::to.dtype" | "aten::to.prim_dtype" => vec![dtype(to)],
                "aten::to.other" => vec![number(to, 1.0).into()],
                "aten::to.dtype_layout" => vec![dtype(to), Value::None, Value::None, Value::None],
                "aten::to.prim_Device" => vec![device.clone(), dtype(to)],
                "aten::to.prim_other" => Vec::new(),
                _ => return Vec::new(),
            };
            rests.push([leading, flags(copy).to_vec()].concat());
        }
    }
    on(random, &[&[3, 4], &[]], &rests)
}
