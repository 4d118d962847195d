//! Engines with a code library: they compile nothing that the library has, and compute the same bits as without it.

#![cfg(all(feature = "codegen", target_arch = "x86_64"))]

use frazil::{
    CodeLibrary, CodeLibraryBuilder, Engine, EngineOptions, ErrorClass, FusionStrategy, Model, Session, Tensor, Value,
};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const SOURCE: &str = "
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(40, 70)
        self.down = nn.Linear(70, 20)

    def forward(self, x):
        return torch.softmax(self.down(torch.nn.functional.gelu(self.up(x))), -1)

net = Mlp()
";

const ROWS: [i64; 6] = [2, 3, 17, 64, 100, 333];

fn model() -> Model {
    let loaded = Session::new().script("net.py".as_ref(), SOURCE, &[]).unwrap();
    let mut model = loaded.to_model("net").unwrap();
    model.eval();
    model
}

fn input(rows: i64) -> [Value; 1] {
    let values: Vec<f32> = (0..rows * 40).map(|i| ((i * 7919) % 113 - 56) as f32 / 40.0).collect();
    [Tensor::from_f32(&values, &[rows, 40]).unwrap().into()]
}

/// The bytes of a library with the model's kernels.
fn library() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let mut builder = CodeLibraryBuilder::new();
        let mut engine = model().engine(&EngineOptions::default()).unwrap();
        for rows in ROWS {
            builder.add(&mut engine, "forward", &input(rows)).unwrap();
        }
        builder.compile().unwrap()
    })
}

fn engine(cpu: &str, bytes: Option<&[u8]>) -> Engine {
    let library = bytes.map(|bytes| CodeLibrary::open(bytes.to_vec()).unwrap());
    let options = EngineOptions::default().strict(true).code_library(library);
    let options = options.fusion_strategy(FusionStrategy { static_shapes: 0 });
    model().engine(&options.target_cpu(cpu.to_owned())).unwrap()
}

fn bits(engine: &mut Engine, rows: i64) -> Vec<u64> {
    let result = engine.call("forward", &input(rows)).unwrap();
    let values = result.as_tensor().unwrap().to_f64_vec();
    values.iter().map(|v| v.to_bits()).collect()
}

/// The numbers of kernels that were compiled and that came from the library, for each shape.
fn origins(engine: &Engine) -> Vec<(usize, usize)> {
    let parse = |note: &String| {
        let (compiled, rest) = note.strip_prefix("forward: ")?.split_once(" kernels compiled, ")?;
        let found = rest.strip_suffix(" from the code library")?;
        Some((compiled.parse().unwrap(), found.parse().unwrap()))
    };
    engine.notes().iter().filter_map(parse).collect()
}

#[test]
fn nothing_is_compiled_that_the_library_has() {
    // The processor, and the level below AVX-512, whose code every processor of the level above runs.
    for cpu in ["host", "x86-64-v3"] {
        let (mut without, mut with) = (engine(cpu, None), engine(cpu, Some(library())));
        for rows in ROWS {
            assert_eq!(bits(&mut with, rows), bits(&mut without, rows), "{cpu}, {rows} rows");
        }
        let origins = origins(&with);
        assert_eq!(origins.len(), ROWS.len(), "{cpu}");
        let (compiled, found) = origins.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert!(compiled == 0 && found >= 3, "{cpu}: {origins:?}");
    }
}

#[test]
fn other_kernels_are_compiled() {
    let mut engine = engine("host", Some(library()));
    // The number of one row is a constant.
    bits(&mut engine, 1);
    let [(compiled, _)] = origins(&engine)[..] else {
        panic!("one shape")
    };
    assert!(compiled > 0);
}

#[test]
fn libraries_of_other_versions_are_refused() {
    let mut other = library().to_vec();
    // The hash of the compiler's version follows the eight bytes of the format.
    other[8] ^= 1;
    let error = CodeLibrary::open(other).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Input);
    assert!(error.to_string().contains("another version"), "{error}");
    for bytes in [&library()[..100], &[]] {
        assert!(CodeLibrary::open(bytes.to_vec()).is_err());
    }
}

/// Damaged objects are compiled again.
#[test]
fn damaged_objects_are_not_used() {
    let mut bytes = library().to_vec();
    let count = CodeLibrary::open(bytes.clone()).unwrap().len();
    // The objects follow the header and the index.
    for byte in &mut bytes[76 + 60 * count..] {
        *byte ^= 0x55;
    }
    let (mut without, mut with) = (engine("host", None), engine("host", Some(&bytes)));
    for rows in ROWS {
        assert_eq!(bits(&mut with, rows), bits(&mut without, rows), "{rows} rows");
    }
    let origins = origins(&with);
    assert!(origins[0].0 > 0 && origins.iter().all(|one| one.1 == 0), "{origins:?}");
}

/// Numbers of shapes whose code came from the library, and of those that were compiled.
fn kinds(engine: &Engine) -> [usize; 2] {
    [", from the code library in", ", compiled in"]
        .map(|kind| engine.notes().iter().filter(|n| n.contains(kind)).count())
}

/// Calls `engine` with `rows` rows until it has compiled code for one more shape, and returns the result's bits.
fn bits_of_own_code(engine: &mut Engine, rows: i64) -> Vec<u64> {
    let before = kinds(engine)[1];
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let result = bits(engine, rows);
        if kinds(engine)[1] > before {
            return result;
        }
        assert!(Instant::now() < deadline, "no code of its own for {rows} rows");
    }
}

#[test]
fn only_shapes_that_are_called_for_long_get_code_of_their_own() {
    let library = CodeLibrary::open(library()).unwrap();
    let options = EngineOptions::default().strict(true).code_library(Some(library));
    let mut engine = model().engine(&options).unwrap();
    let first: Vec<Vec<u64>> = ROWS.iter().map(|&rows| bits(&mut engine, rows)).collect();
    assert_eq!(kinds(&engine), [ROWS.len(), 0]);
    let again: Vec<Vec<u64>> = ROWS.iter().map(|&rows| bits(&mut engine, rows)).collect();
    assert_eq!((again, kinds(&engine)[1]), (first.clone(), 0));
    // Code of their own for two shapes, which is the default; the others stay with the library.
    for (rows, first) in ROWS.iter().zip(&first).take(2) {
        assert_eq!(bits_of_own_code(&mut engine, *rows), *first);
    }
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        assert_eq!(bits(&mut engine, ROWS[2]), first[2]);
    }
    assert_eq!(kinds(&engine), [ROWS.len(), 2]);
    // A kernel that is missing in the library is compiled at the first call.
    bits(&mut engine, 1);
    assert_eq!(kinds(&engine)[0], ROWS.len());
}

#[test]
fn handles_share_code_of_their_own() {
    let library = CodeLibrary::open(library()).unwrap();
    let options = EngineOptions::default().strict(true).code_library(Some(library));
    let mut engine = model().engine(&options).unwrap();
    let mut other = engine.share();
    let results = [
        bits(&mut engine, 17),
        bits(&mut other, 17),
        bits_of_own_code(&mut engine, 17),
    ];
    // The other handle gets the code when it is due there, and compiles nothing.
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        assert_eq!(bits(&mut other, 17), results[0]);
    }
    assert!(results.iter().all(|result| *result == results[0]));
    assert_eq!(kinds(&engine), [1, 1]);
}

/// Modules with a megabyte of weights, and an input of each. The lengths and sides of those for convolutions are the likely ones, since tiles depend on them.
const LARGE: [(&str, &str, &[i64]); 6] = [
    (
        "nn.Conv2d(3, 8, 3), nn.Flatten(2), nn.Linear(49284, 8)",
        "images",
        &[1, 3, 224, 224],
    ),
    (
        "nn.Conv1d(80, 256, 9), nn.ReLU(), nn.Conv1d(256, 256, 5)",
        "sequences",
        &[1, 80, 64],
    ),
    ("nn.Linear(400, 900), nn.ReLU()", "matrices", &[5, 400]),
    (
        "nn.LayerNorm(300), nn.Linear(300, 1000)",
        "sequences of features",
        &[1, 9, 300],
    ),
    ("nn.Embedding(1000, 300), nn.Linear(300, 20)", "tokens", &[1, 7]),
    ("Recurrent()", "steps", &[1, 9, 160]),
];

/// A layer whose loop stays rolled.
const RECURRENT: &str = "
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(160, 320, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]
";

#[test]
fn weights_are_packed_when_an_engine_is_made() {
    for (layers, what, sizes) in LARGE {
        let source = format!("{RECURRENT}\nmodel = nn.Sequential({layers})\n");
        let loaded = Session::new().script("net.py".as_ref(), &source, &[]).unwrap();
        let mut model = loaded.to_model("model").unwrap();
        model.eval();
        let count = sizes.iter().product::<i64>();
        let input: [Value; 1] = match what {
            "tokens" => [Tensor::from_i64(&(0..count).collect::<Vec<_>>(), sizes).unwrap().into()],
            _ => {
                let values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 113 - 56) as f32 / 40.0).collect();
                [Tensor::from_f32(&values, sizes).unwrap().into()]
            }
        };
        let shared = EngineOptions::default().fusion_strategy(FusionStrategy { static_shapes: 0 });
        let mut builder = CodeLibraryBuilder::new();
        let mut without = model.engine(&shared).unwrap();
        builder.add(&mut without, "forward", &input).unwrap();
        let expected = without.call("forward", &input).unwrap();
        assert_eq!(without.kernel_counts().from_library, 0, "{what}");
        let own = CodeLibrary::open(builder.compile().unwrap()).unwrap();
        let mut with = model.engine(&shared_with(own)).unwrap();
        let counts = with.kernel_counts();
        assert!(counts.from_library > 0 && counts.compiled == 0, "{what}: {counts:?}");
        let result = with.call("forward", &input).unwrap();
        let elements = |value: &Value| value.as_tensor().unwrap().to_f64_vec();
        assert_eq!(elements(&result), elements(&expected), "{what}");
        assert_eq!(with.kernel_counts().compiled, 0, "{what}: {:?}", with.notes());
        // Nothing is compiled for likely inputs if the library has other kernels.
        let other = CodeLibrary::open(library()).unwrap();
        let counts = model.engine(&shared_with(other)).unwrap().kernel_counts();
        assert_eq!((counts.compiled, counts.from_library), (0, 0), "{what}");
    }
    // Small weights are packed by the first call.
    assert_eq!(engine("host", Some(library())).kernel_counts().from_library, 0);
}

/// Options with a library, with which all sizes are arguments of the code.
fn shared_with(library: CodeLibrary) -> EngineOptions {
    let options = EngineOptions::default().code_library(Some(library));
    options.fusion_strategy(FusionStrategy { static_shapes: 0 })
}
