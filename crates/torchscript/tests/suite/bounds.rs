//! Hostile programs and pickles: deep nesting, cycles, claims of huge sizes. Each is an error that names its place.

use crate::common;

use std::io::{Cursor, Write};

use frazil_torchscript::archive::ArchiveError;
use frazil_torchscript::{LoadError, LoadOptions, compile_source, load_bytes};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

const DEEP: usize = 100_000;

fn compile(text: &str) -> Result<(), LoadError> {
    let (ctx, catalogue) = common::catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    compile_source("deep.py", text, &options).map(|_| ())
}

#[test]
fn nesting_of_source_is_bounded() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("not ", ""),
        ("x and ", ""),
        ("x or ", ""),
        ("x + ", ""),
        ("x ** ", ""),
        ("x < ", ""),
        ("x if x else ", ""),
        ("lambda: ", ""),
        ("f(", ")"),
        ("(y := ", ")"),
    ] {
        let text = format!(
            "def f(x: int) -> int:\n    return {}x{}\n",
            open.repeat(DEEP),
            close.repeat(DEEP)
        );
        let error = compile(&text).unwrap_err().to_string();
        assert!(error.starts_with("deep.py:2:"), "{open}: {error}");
    }
    for chain in [".a", "()", "[0]"] {
        let text = format!("def f(x: int) -> int:\n    return x{}\n", chain.repeat(DEEP));
        let error = compile(&text).unwrap_err().to_string();
        assert!(error.starts_with("deep.py:2:"), "{chain}: {error}");
    }
    let branches: String = (0..DEEP)
        .map(|i| format!("    elif x == {i}:\n        return {i}\n"))
        .collect();
    let text = format!("def f(x: int) -> int:\n    if x == 0:\n        return 1\n{branches}    return x\n");
    assert!(compile(&text).unwrap_err().to_string().contains("levels of nesting"));
}

#[test]
fn words_that_hold_operators_do_not_count() {
    let sum = "order_and_note + 1, ".repeat(400);
    let text = format!("def f(order_and_note: int) -> List[int]:\n    return [{sum}{sum}{sum}]\n");
    compile(&text).unwrap();
}

/// Loads an archive of one class with one attribute, and this pickle.
fn load(attribute: &str, pickle: &[u8]) -> Result<(), LoadError> {
    load_packed(attribute, "", pickle, CompressionMethod::Stored)
}

/// Loads an archive of one class with one attribute, `more` code, and this pickle.
fn load_packed(attribute: &str, more: &str, pickle: &[u8], method: CompressionMethod) -> Result<(), LoadError> {
    let code = format!(
        "class N(Module):\n  __parameters__ = []\n  __buffers__ = []\n  x : {attribute}\n  def forward(self: __torch__.N, y: Tensor) -> Tensor:\n    return y\n{more}"
    );
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in [
        ("m/version", &b"3\n"[..]),
        ("m/constants.pkl", b"\x80\x02)."),
        ("m/code/__torch__.py", code.as_bytes()),
        ("m/data/0", &[0; 4]),
        ("m/data.pkl", pickle),
    ] {
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file(name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    let bytes = zip.finish().unwrap().into_inner();
    let (ctx, catalogue) = common::catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    load_bytes(bytes, &options).map(|_| ())
}

#[test]
fn what_reading_needs_is_bounded_by_the_size() {
    let deflated = CompressionMethod::Deflated;
    let refused = |result: Result<(), LoadError>| match result {
        Err(LoadError::Exceeded(exceeded)) => assert_eq!(exceeded.name(), "reading"),
        other => panic!("{other:?}"),
    };
    // A byte of pickle for a list of its own, and for another reference to one value; text of a byte a token.
    let tuple = |item: &[u8], count: usize| object(&[b"(", &item.repeat(count)[..], b"t"].concat());
    refused(load("Any", &tuple(b"]", 2_000_000)));
    refused(load_packed("Any", "", &tuple(b"]", 2_000_000), deflated));
    refused(load_packed(
        "int",
        &"[],".repeat(1_000_000),
        &object(b"K\x05"),
        CompressionMethod::Stored,
    ));
    // What is compressed counts as it is, and is refused before it is unpacked.
    refused(load_packed(
        "int",
        &"\n".repeat(50_000_000),
        &object(b"K\x05"),
        deflated,
    ));
    // Long lists of numbers and texts fit.
    let list = |item: &[u8], count: usize| {
        object(
            &[
                b"ctorch.jit._pickle\nbuild_intlist\n](",
                &item.repeat(count)[..],
                b"e\x85R",
            ]
            .concat(),
        )
    };
    load("List[int]", &list(b"K\x01", 1_000_000)).unwrap();
    load("List[int]", &list(b"J\x01\x02\x03\x04", 1_000_000)).unwrap();
    let words: Vec<u8> = (0..200_000)
        .flat_map(|i| [b"X\x08\0\0\0", format!("w{i:07}").as_bytes(), b"K\x01"].concat())
        .collect();
    load("Dict[str, int]", &object(&[b"}(", &words[..], b"u"].concat())).unwrap();
}

/// The pickle of an object whose attribute is what `value` pushes.
fn object(value: &[u8]) -> Vec<u8> {
    [b"\x80\x02c__torch__\nN\n)\x81}X\x01\x00\x00\x00x", value, b"sb."].concat()
}

fn archive_error(attribute: &str, pickle: &[u8]) -> ArchiveError {
    match load(attribute, pickle).unwrap_err() {
        LoadError::Archive(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn nesting_and_cycles_of_pickles_are_bounded() {
    load("int", &object(b"K\x05")).unwrap();
    let lists = [b"]".repeat(DEEP), b"a".repeat(DEEP - 1)].concat();
    let tuples = [b")".to_vec(), b"\x85".repeat(DEEP)].concat();
    for value in [&lists[..], &tuples, b"]q\x00h\x00a", b"}q\x00K\x01h\x00s"] {
        let error = archive_error("Any", &object(value));
        let place =
            matches!(error, ArchiveError::Unexpected { ref entry, offset, .. } if entry == "data.pkl" && offset > 0);
        assert!(place, "{error}");
    }
    // An object that holds itself is a program's right.
    load(
        "__torch__.N",
        b"\x80\x02c__torch__\nN\n)\x81q\x00}X\x01\x00\x00\x00xh\x00sb.",
    )
    .unwrap();
}

#[test]
fn what_could_execute_or_claims_too_much_is_refused_with_its_place() {
    for (pickle, offset) in [
        (&b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R."[..], 2),
        (b"\x80\x02cbuiltins\neval\n.", 2),
        (b"\x80\x02(ios\nsystem\n.", 3),
        (b"\x80\x02N\x82\x01.", 3),
        (b"\x80\x02X\xff\xff\xff\xff.", 2),
        (b"\x80\x02\x8b\xff\xff\xff\x7f.", 2),
        (b"\x80\x02h\x07.", 2),
    ] {
        let error = archive_error("int", pickle);
        assert!(
            matches!(error, ArchiveError::Pickle { ref entry, .. } if entry == "data.pkl"),
            "{error}"
        );
        assert!(error.to_string().contains(&format!("pickle byte {offset}:")), "{error}");
    }
}

/// The pickle of a tensor with one size, one stride, an offset, and a storage of `count` elements.
fn tensor(size: i64, stride: i64, offset: i64, count: i64) -> Vec<u8> {
    let long = |n: i64| [&b"\x8a\x08"[..], &n.to_le_bytes()].concat();
    let text = |s: &str| [&b"X"[..], &(s.len() as u32).to_le_bytes(), s.as_bytes()].concat();
    [
        b"ctorch._utils\n_rebuild_tensor_v2\n((".to_vec(),
        text("storage"),
        b"ctorch\nFloatStorage\n".to_vec(),
        text("0"),
        text("cpu"),
        long(count),
        b"tQ".to_vec(),
        long(offset),
        b"(".to_vec(),
        long(size),
        b"t(".to_vec(),
        long(stride),
        b"t\x89ccollections\nOrderedDict\n)RtR".to_vec(),
    ]
    .concat()
}

#[test]
fn tensors_stay_in_their_storage() {
    load("Tensor", &object(&tensor(1, 1, 0, 1))).unwrap();
    for value in [
        tensor(2, 1, 0, 1),
        tensor(-1, 1, 0, 1),
        tensor(1 << 62, 1, 0, 1),
        tensor(2, 1 << 62, 0, 1),
        tensor(1, 1, i64::MAX, 1),
        tensor(1, 1, -1, 1),
        tensor(1, 1, 0, i64::MAX),
        tensor(1, 1, 0, -1),
    ] {
        let error = archive_error("Tensor", &object(&value));
        let place = match &error {
            ArchiveError::Unexpected { entry, offset, .. } => entry == "data.pkl" && *offset > 0,
            ArchiveError::Entry { entry, .. } => entry == "data/0",
            _ => false,
        };
        assert!(place, "{error}");
    }
}
