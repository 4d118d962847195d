//! Loading whole archives: identity of what is shared, source ranges, and what is said about damaged ones.

use crate::common;

use std::sync::Arc;

use common::catalogue;
use frazil_ir::{Constant, Module, symbols};
use frazil_torchscript::{LoadError, LoadOptions, SaveOptions, load_bytes, save_bytes};
use proptest::prelude::*;

const CODE: &str = "\
class Net(Module):
  __parameters__ = [\"w\", ]
  __buffers__ = [\"b\", ]
  w : Tensor
  b : Tensor
  l : List[int]
  m : List[int]
  scale : Final[float] = 2.5
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    w = self.w
    _0 = torch.add(torch.mul(x, w), CONSTANTS.c0)
    if torch.gt(torch.dim(x), 1):
      y = torch.neg(_0)
    else:
      y = _0
    return y
";

/// A storage reference, then offset, sizes, strides, no gradient, no hooks: a tensor of three floats.
fn tensor(key: &str, offset: u8) -> Vec<u8> {
    let mut out = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n".to_vec();
    out.extend([b'X', 1, 0, 0, 0]);
    out.extend(key.as_bytes());
    out.extend(b"X\x03\0\0\0cpuK\x04tQK");
    out.push(offset);
    out.extend(b"K\x03\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR");
    out
}

/// The records of an archive of `Net`, whose two tensors are windows of one storage and whose two lists are one.
fn records(code: &str) -> Vec<(&'static str, Vec<u8>)> {
    let mut data = b"\x80\x02c__torch__\nNet\n)\x81}(X\x01\0\0\0w".to_vec();
    data.extend(tensor("0", 0));
    data.extend(b"X\x01\0\0\0b");
    data.extend(tensor("0", 1));
    data.extend(b"X\x01\0\0\0lctorch.jit._pickle\nbuild_intlist\n](K\x05K\x06e\x85Rq\x07X\x01\0\0\0mh\x07ub.");
    let mut constants = b"\x80\x02".to_vec();
    constants.extend(tensor("0", 0));
    constants.extend(b"\x85.");
    let floats: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|f| f.to_le_bytes()).collect();
    vec![
        ("version", b"3\n".to_vec()),
        ("data.pkl", data),
        ("data/0", floats.clone()),
        ("constants.pkl", constants),
        ("constants/0", floats),
        ("code/__torch__.py", code.into()),
        ("extra/notes.txt", b"hello".to_vec()),
    ]
}

fn pack<B: AsRef<[u8]>>(records: &[(&str, B)]) -> Vec<u8> {
    common::pack("net", records)
}

fn archive(code: &str) -> Vec<u8> {
    pack(&records(code))
}

fn load(bytes: Vec<u8>) -> Result<Module, LoadError> {
    let (ctx, catalogue) = catalogue();
    load_bytes(bytes, &LoadOptions::new(&ctx, &catalogue))
}

#[test]
fn what_is_shared_stays_shared() {
    let module = load(archive(CODE)).unwrap();
    let ctx = module.ctx();
    let attribute = |name: &str| module.attribute(module.root, ctx.symbol(name)).unwrap().clone();
    let (Constant::Tensor(w), Constant::Tensor(b)) = (attribute("w"), attribute("b")) else {
        panic!("tensors")
    };
    assert!(w.shares_storage(&b));
    assert_eq!((w.offset, b.offset, b.sizes.as_slice()), (0, 1, &[3][..]));
    assert_eq!(b.to_bytes()[..4], 2.0f32.to_le_bytes());
    let (Constant::List(l), Constant::List(m)) = (attribute("l"), attribute("m")) else {
        panic!("lists")
    };
    assert!(Arc::ptr_eq(&l, &m));
    assert_eq!(&*module.extra_files["notes.txt"], b"hello");
    let class = module.class_of(module.root).unwrap();
    assert_eq!(class.constants[&ctx.symbol("scale")].as_float(), Some(2.5));
}

/// Hooks of an archive have to fit `forward` as those of source do: their calls take that for granted.
#[test]
fn hooks_have_the_signature_that_forward_asks_for() {
    let with = |hook: &str, list: &str| {
        let class = CODE.replace("  scale : Final", &format!("  {list} = [\"h\", ]\n  scale : Final"));
        load(archive(&format!("{class}  def h(self: __torch__.Net,\n    {hook}\n")))
    };
    let (before, after) = ("__forward_pre_hooks__", "__forward_hooks__");
    with("input: Tuple[Tensor]) -> Tensor:\n    return (input)[0]", before).unwrap();
    with(
        "input: Tuple[Tensor],\n    output: Tensor) -> Tensor:\n    return output",
        after,
    )
    .unwrap();
    for (hook, list, message) in [
        (
            "input: int) -> int:\n    return input",
            before,
            "Pre-hook 'h' on module 'Net' expected the input argument to be typed as a Tuple but found type: 'int' instead.",
        ),
        (
            "input: Tuple[Tensor]) -> str:\n    return \"a\"",
            before,
            "Pre-hook 'h' on module 'Net' returned the wrong type of: 'str'.",
        ),
        (
            "input: Tuple[Tensor],\n    output: str) -> str:\n    return output",
            after,
            "Hook 'h' on module 'Net' has the wrong type for the output argument. Received type: 'str'. Expected type: 'Tensor'.",
        ),
    ] {
        let error = with(hook, list).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn defaults_may_be_named_tuples() {
    let class = CODE.replace(
        "    x: Tensor) -> Tensor:",
        "    x: Tensor,\n    p: __torch__.Pair=__torch__.Pair(1, 2.)) -> Tensor:",
    );
    let code = format!("{class}class Pair(NamedTuple):\n  a : int\n  b : float\n");
    let module = load(archive(&code)).unwrap();
    let schema = &module.method_function(symbols::FORWARD).unwrap().schema;
    let default = schema.arguments[2].default.clone().unwrap();
    assert_eq!(default.ty(module.ctx()), schema.arguments[2].ty);
    assert!(matches!(
        default.items(),
        Some([Constant::Int(1), Constant::Float(2.0)])
    ));
    for wrong in ["1", "1, 2., 3", "\"a\", 2.", "1, 2"] {
        let result = load(archive(&code.replace("Pair(1, 2.)", &format!("Pair({wrong})"))));
        // An `int` is taken for a `float`, as in other constants.
        assert_eq!(result.is_ok(), wrong == "1, 2", "{wrong}");
    }
}

#[test]
fn nodes_know_their_place() {
    let module = load(archive(CODE)).unwrap();
    let graph = &module.method_function(symbols::FORWARD).unwrap().graph;
    let neg = graph
        .all_nodes()
        .into_iter()
        .find(|&n| graph.kind_name(n) == "aten::neg")
        .unwrap();
    let range = graph.source_range(neg).unwrap();
    assert_eq!(range.display(module.ctx()).to_string(), "code/__torch__.py:14:10");
}

#[test]
fn damage_is_explained_with_its_place() {
    let message = |code: &str| load(archive(code)).unwrap_err().to_string();
    let found = message(&CODE.replace("torch.neg(_0)", "torch.nope(_0)"));
    assert!(
        found.starts_with("code/__torch__.py:14:11: object has no attribute nope"),
        "{found}"
    );
    let found = message(&CODE.replace("CONSTANTS.c0", "CONSTANTS.c7"));
    assert!(found.contains("the archive has no constant `CONSTANTS.c7`"), "{found}");
    let found = message(&CODE.replace("  l : List[int]\n", "  l : List[int]\n  n : int\n"));
    assert!(
        found.contains("`data.pkl`") && found.contains("expected the attribute `n` of `__torch__.Net`"),
        "{found}"
    );
    let found = message(&CODE.replace("class Net", "class Other"));
    assert!(found.contains("not `__torch__.Net`"), "{found}");
    // The record of the storage is shorter than the reference claims.
    let mut short = records(CODE);
    short[2].1.truncate(11);
    let found = load(pack(&short)).unwrap_err().to_string();
    assert!(
        found.contains("`data/0`") && found.contains("11 bytes, too few for 4 elements"),
        "{found}"
    );
}

/// Archives of version 3 divide integers as PyTorch 1.5 did; `torch.div` of version 4 is true division.
#[test]
fn old_operators_keep_their_meaning() {
    let kinds = |version: &str| {
        let mut records = records(&CODE.replace("torch.neg(_0)", "torch.div(_0, w)"));
        records[0].1 = version.into();
        let module = load(pack(&records)).unwrap();
        let names: Vec<String> = module
            .unit
            .functions()
            .map(|(_, f)| module.ctx().name(f.name).to_owned())
            .collect();
        let graph = &module.method_function(symbols::FORWARD).unwrap().graph;
        let kinds: Vec<String> = graph
            .all_nodes()
            .into_iter()
            .map(|n| graph.kind_name(n).to_owned())
            .collect();
        (
            kinds.iter().any(|kind| kind == "aten::div"),
            kinds.iter().any(|kind| kind == "prim::CallFunction"),
            names.len(),
        )
    };
    assert_eq!(kinds("4"), (true, false, 1));
    assert_eq!(kinds("3"), (false, true, 2));
}

/// Every function that stands for an old operator compiles.
#[test]
fn upgraders_compile() {
    let calls = [
        "div(w, w)",
        "div(w, 2)",
        "div_(w, w)",
        "div_(w, 2)",
        "full([2], 1)",
        "linspace(0, 1, None)",
        "logspace(0, 1, None)",
        "full([2], 1, dtype=4, layout=None, device=torch.device(\"cpu\"), pin_memory=False)",
        "logspace(0, -3, 5, 10., dtype=6, layout=None, device=torch.device(\"cpu\"), pin_memory=False)",
        "linspace(0, 1, None, out=w)",
    ];
    for call in calls {
        let mut records = records(&CODE.replace("torch.neg(_0)", &format!("torch.{call}")));
        records[0].1 = b"1".to_vec();
        let (ctx, catalogue) = catalogue();
        let options = LoadOptions::new(&ctx, &catalogue);
        let module = load_bytes(pack(&records), &options).unwrap_or_else(|e| panic!("{call}: {e}"));
        // Calls of them can be written, and be read again.
        let saved = save_bytes(&module, &catalogue, &SaveOptions::default()).unwrap_or_else(|e| panic!("{call}: {e}"));
        let again = load_bytes(saved, &options).unwrap_or_else(|e| panic!("{call}, saved: {e}"));
        assert_eq!(again.unit.functions().count(), 2, "{call}");
        let mut functions = module.unit.functions();
        let (_, upgrader) = functions.nth(1).unwrap();
        assert!(functions.next().is_none(), "{call}");
        // None of them calls itself.
        let nodes = upgrader.graph.all_nodes();
        assert!(
            nodes
                .iter()
                .all(|&n| upgrader.graph.kind_name(n) != "prim::CallFunction"),
            "{call}"
        );
    }
}

/// A list that contains itself has no end.
#[test]
fn cyclic_pickles_end() {
    let data = b"\x80\x02]q\x00h\x00a.";
    let constants = b"\x80\x02](]q\x00h\x00ae.".to_vec();
    let records = [
        ("version", b"3".to_vec()),
        ("data.pkl", data.to_vec()),
        ("constants.pkl", constants),
    ];
    let found = load(pack(&records)).unwrap_err().to_string();
    assert!(found.contains("levels of nesting"), "{found}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Code with pieces cut out, doubled or changed never panics.
    #[test]
    fn damaged_code_never_panics(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8), 1..4)) {
        let mut words: Vec<&str> = CODE.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
        for (at, other, kind) in edits {
            let (at, other) = (at.index(words.len()), other.index(words.len()));
            match kind {
                0 => { words.remove(at); }
                1 => words.insert(at, words[other]),
                2 => words.swap(at, other),
                _ => words[at] = ["None", "self", "(", "[x]", "for x in x:\n", "return", "__torch__.Net"][other % 7],
            }
            if words.is_empty() { break; }
        }
        let _ = load(archive(&words.concat()));
    }

    /// Records and archives with changed bytes never panic.
    #[test]
    fn damaged_archives_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        record in prop::option::of(0..4usize),
    ) {
        let mut records = records(CODE);
        let mut whole = pack(&records);
        for (at, value) in edits {
            let bytes = match record {
                Some(record) => &mut records[record].1,
                None => &mut whole,
            };
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = load(if record.is_some() { pack(&records) } else { whole });
    }
}
