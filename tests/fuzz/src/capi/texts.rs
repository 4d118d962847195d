//! Texts that C functions are given.

use super::arguments::Argument;
use super::machine::Machine;
use std::ffi::{CString, c_char};
use std::ptr::null;

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $choose:expr;)*) => {
        $(
            $(#[$doc])*
            pub struct $name(Option<CString>);

            impl Argument for $name {
                type Raw = *const c_char;

                fn choose(machine: &mut Machine<'_>) -> Self {
                    let choose: fn(&mut Machine<'_>) -> Option<CString> = $choose;
                    $name(choose(machine))
                }

                fn raw(&mut self) -> *const c_char {
                    self.0.as_ref().map_or(null(), |text| text.as_ptr())
                }
            }
        )*
    };
}

texts! {
    /// A name, a path of attributes, a type, a device.
    Text: text;
    /// A file.
    FilePath: |machine| CString::new(machine.path().into_os_string().into_encoded_bytes()).ok();
    /// Source of methods.
    Source: |machine| one_of(machine, &[
        "def h(self, x):\n    return x + 1\n",
        "def h(self, n: int) -> int:\n    return self.n * n\n",
        "def forward(self, x):\n    return self.h(x)\n",
        "def h(self):\n    return self\n",
        "def h(self\n",
    ]);
    /// A pipeline.
    Pipeline: |machine| one_of(machine, &[
        "inline,dce", "freeze", "cse,constant-propagation", "repeat{max=3}(peephole,dce)", "methods{only=forward}(inline)", "dce(", "nothing",
        "remove-mutation,lower-all-tuples", "canonicalize,propagate-shapes", "inline,create-functional-graphs,inline-functional-graphs",
    ]);
    /// An operator.
    OperatorName: |machine| one_of(machine, &[
        "aten::add", "aten::relu", "relu_", "aten::cat", "aten::size", "aten::item", "aten::matmul", "aten::view", "aten::sum", "aten::index", "split",
        "aten::zeros", "aten::nonzero", "prim::ListConstruct", "aten::nothing", "prim::If", "aten::linear", "aten::mul.Scalar", "",
    ]);
}

fn one_of(machine: &mut Machine<'_>, items: &[&str]) -> Option<CString> {
    match machine.choices.byte() {
        255 => text(machine),
        n => CString::new(items[usize::from(n) % items.len()]).ok(),
    }
}

const TEXTS: [&str; 34] = [
    "forward",
    "f",
    "g",
    "h",
    "x",
    "y",
    "n",
    "fc",
    "fc.weight",
    "fc.bias",
    "b",
    "training",
    "a.b",
    "",
    "%x",
    "%y",
    "List[int]",
    "Tensor",
    "Dict[str, int]",
    "Optional[List[Tensor]]",
    "Tuple[int, float]",
    "cpu",
    "cuda:0",
    "P",
    "E",
    "A",
    "__torch__.P",
    "k",
    "m.py",
    "m.ir",
    "m.pt",
    "host",
    "self",
    "Net",
];

/// A text, no text, or one that is not UTF-8.
pub fn text(machine: &mut Machine<'_>) -> Option<CString> {
    match machine.choices.byte() {
        255 => None,
        254 => CString::new(vec![0xff, b'a']).ok(),
        250..254 => {
            let bytes = machine.choices.take(12);
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            CString::new(&bytes[..end]).ok()
        }
        n => CString::new(TEXTS[usize::from(n) % TEXTS.len()]).ok(),
    }
}

/// An array of pointers, and what they point to.
pub struct Texts(Vec<CString>, Vec<*const c_char>);

impl Argument for Texts {
    type Raw = *const *const c_char;

    fn choose(machine: &mut Machine<'_>) -> Self {
        let texts: Vec<CString> = (0..machine.len).map(|_| text(machine).unwrap_or_default()).collect();
        let pointers = texts.iter().map(|text| text.as_ptr()).collect();
        Texts(texts, pointers)
    }

    fn raw(&mut self) -> *const *const c_char {
        debug_assert_eq!(self.0.len(), self.1.len());
        self.1.as_ptr()
    }
}
