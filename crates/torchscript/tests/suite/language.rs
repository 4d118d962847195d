//! Hand-written TorchScript: what `compile_source` makes of it, and what it says about mistakes.

use crate::common;

use common::{catalogue, show};
use frazil_torchscript::{LoadOptions, compile_source};

/// Compiles one function and gives its graph as text.
fn compiled(text: &str) -> String {
    let (ctx, catalogue) = catalogue();
    let unit =
        compile_source("test.py", text, &LoadOptions::new(&ctx, &catalogue)).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for (_, function) in unit.functions() {
        function
            .graph
            .verify(Some(&catalogue))
            .unwrap_or_else(|e| panic!("{e}\n{text}\n{}", show(&function.graph)));
    }
    let (_, function) = unit.functions().next().unwrap();
    show(&function.graph)
}

/// The message about a text that does not compile.
fn mistake(text: &str) -> String {
    let (ctx, catalogue) = catalogue();
    match compile_source("test.py", text, &LoadOptions::new(&ctx, &catalogue)) {
        Ok(_) => panic!("compiles:\n{text}"),
        Err(e) => e.to_string(),
    }
}

/// Programs and the graphs that are made of them: reviewed by eye, kept as snapshots.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "aliases",
        r#"
def f(x: Tensor):
    y = torch.multiply(x, 2).absolute()
    return torch.concat([y, x.clip_(0, 1)]), torch.true_divide(x, y), x.greater(0)
"#,
    ),
    (
        "early_return",
        r#"
def f(x: Tensor, n: int) -> Tensor:
    if n > 3:
        return x + 1
    y = x * n
    return y.relu()
"#,
    ),
    (
        "early_return_elif",
        r#"
def f(x: Tensor, n: int) -> Tensor:
    if n > 3:
        return x + 1
    elif n > 2:
        x = x * 2
    return x
"#,
    ),
    (
        "return_and_break_in_loop",
        r#"
def f(xs: List[Tensor]) -> Tensor:
    for i, x in enumerate(xs):
        if i > 2:
            break
        if x.sum() > 0:
            return x
    return xs[0]
"#,
    ),
    (
        "continue_and_break",
        r#"
def f(n: int) -> int:
    i = 0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        if i > 7:
            break
    return i
"#,
    ),
    (
        "optional_refinement_and",
        r#"
def f(x: Optional[Tensor], y: Tensor) -> Tensor:
    if x is not None and x.dim() > 1:
        y = y + x
    return y
"#,
    ),
    (
        "optional_refinement_raise",
        r#"
def f(x: Optional[Tensor]) -> Tensor:
    if x is None:
        raise ValueError('no')
    return x + 1
"#,
    ),
    (
        "literals",
        r#"
def f(x: Tensor):
    a, b = x.shape[0], x.size(1)
    return [a, b], {'a': x}, (x, a)
"#,
    ),
    (
        "comprehension",
        r#"
def f(x: Tensor):
    return [float(i) for i in range(3)]
"#,
    ),
    (
        "tensor_indexing",
        r#"
def f(x: Tensor, i: int):
    y = x[0, :, None, 1:i]
    y[0] = 1.5
    x[i] += 1
    return y, x[..., 0], x[x > 0]
"#,
    ),
    (
        "functional",
        r#"
def f(x: Tensor, w: Tensor, b: Optional[Tensor] = None):
    return torch.nn.functional.linear(x, w, b)
"#,
    ),
    (
        "strings",
        r#"
def f(x: Tensor, k: int):
    s = 'a' if k > 1 else 'b'
    return s + f'{k} {x.dim()}' + '%d' % k
"#,
    ),
    (
        "calls_with_defaults",
        r#"
def g(x: Tensor, n: int = 2):
    return x * n
def f(x: Tensor):
    return g(x) + g(x, n=3)
"#,
    ),
    (
        "assertion",
        r#"
def f(x: Tensor):
    assert x.dim() == 2, 'rank'
    return x.t()
"#,
    ),
    (
        "union_isinstance",
        r#"
def f(x: Union[int, str, float]):
    if isinstance(x, int):
        return x + 1
    else:
        return 0
"#,
    ),
    (
        "class_by_hand",
        r#"
class A:
    def __init__(self, n: int):
        self.n = n
    def more(self, k: int) -> int:
        self.n += k
        return self.n
def f():
    a = A(3)
    return a.more(2) + a.n
"#,
    ),
    (
        "enum_and_named_tuple",
        r#"
from enum import Enum
class C(Enum):
    A = 1
    B = 2
class P(NamedTuple):
    x: int
    c: C = C.A
def f(c: C):
    p = P(3, C.B)
    if c == C.A:
        return p.x, p.c, c.value, c.name
    return p.x + 1, C.B, 3, 'q'
"#,
    ),
    (
        "unjoined_variable_unused",
        r#"
def f(x: Tensor, n: int):
    if n > 0:
        y = x
        z = 1
    else:
        y = x + 1
        z = 'a'
    return y
"#,
    ),
    (
        "fork",
        r#"
def f(x: Tensor):
    a = torch.jit.fork(g, x)
    b = torch.jit.fork(torch.relu, x)
    return torch.jit.wait(a) + b.wait()
def g(x: Tensor):
    return x + 1
"#,
    ),
    (
        "assignment_forms",
        r#"
def f(x: Tensor):
    a, *b, c = (1, 2, 3, x)
    (d, e), g = (a, c), b
    for _ in range(1, 10, 2):
        x = x.mul_(2).to(torch.float64)
    return x.sum(-1, keepdim=True), torch.zeros(2, 3), torch.zeros([2], dtype=torch.int64), x.view(-1, 2), d
"#,
    ),
    (
        "list_operations",
        r#"
def f(x: List[int]):
    x[0] = 3
    y = x[1:] + [1]
    return y[-1], sorted(y), sum(y), 3 in y, [1, 2] == y
"#,
    ),
    (
        "any_isinstance",
        r#"
def f(x: Any):
    if isinstance(x, List[int]):
        return x[0]
    return 0
"#,
    ),
    (
        "untyped_list",
        r#"
def f(x: Tensor):
    l = []
    for i in range(3):
        l.append(x)
    return torch.cat(l, dim=-1)
"#,
    ),
    (
        "dict_zip",
        r#"
def f(x: Tensor, d: Dict[str, int]):
    s = 0
    for k in d:
        s += d[k]
    for a, b in zip([1, 2], [3, 4]):
        s = s + a * b
    d['x'] = s
    return s
"#,
    ),
    (
        "builtins",
        r#"
def f(a: int, b: float):
    return max(a, 3), min(b, 2.0), abs(a), a // 2, a / 2, a ** 2, -b, not a, a and b > 1, len([1]), math.sqrt(b)
"#,
    ),
];

#[test]
fn programs_compile_to_their_graphs() {
    for (name, text) in PROGRAMS {
        insta::assert_snapshot!(*name, compiled(text));
    }
}

#[test]
fn mistakes_are_explained() {
    for (text, expected) in [
        (
            "def f(x: Tensor):\n    return x + y\n",
            "test.py:2:16: undefined value y",
        ),
        (
            "def f(x: Tensor):\n    return x.foo()\n",
            "test.py:2:12: 'Tensor' object has no attribute or method 'foo'.",
        ),
        (
            "def f(x: Tensor):\n    return torch.nope(x)\n",
            "test.py:2:12: object has no attribute nope\n  help: the operator catalogue has no `aten::nope`",
        ),
        (
            "def f(x: Foo):\n    return x\n",
            "test.py:1:10: Unknown type name 'Foo'",
        ),
        (
            "def f(x: Tensor):\n    return torch.relu(x, 1)\n",
            "aten::relu(Tensor self) -> Tensor:\n  Expected at most 1 arguments but found 2 positional arguments.",
        ),
        (
            "def f(x: int) -> str:\n    return x\n",
            "Return value was annotated as having type str but is actually of type int",
        ),
        (
            "def f(x: int):\n    while x > 0:\n        x = 'a'\n",
            "Variable 'x' previously had type int but is now being assigned to a value of type str",
        ),
        (
            "def f(c: bool):\n    if c:\n        z = 1\n    else:\n        z = 'a'\n    return z\n",
            "test.py:6:12: Type mismatch: z is set to type int in the true branch and type str in the false branch",
        ),
        (
            "def f(c: bool):\n    if c:\n        z = 1\n    return z\n",
            "z is not defined in the false branch",
        ),
        (
            "def f(n: int):\n    return f(n)\n",
            "function 'f' is called recursively. Recursive calls are not supported",
        ),
        (
            "def f(*a):\n    return a\n",
            "Compiled functions can't take variable number of arguments",
        ),
        ("def f(x):\n  return (\n", "syntax error"),
        (
            "class T(NamedTuple):\n  t: List[T]\n",
            "the NamedTuple `T` contains itself",
        ),
        ("def f():\n    break\n", "'break' outside loop"),
        (
            "def f(x: Tuple[int, str]):\n    return x[2]\n",
            "Tuple index out of range. Tuple is length 2 and index is 2",
        ),
        ("def f(x: Tensor):\n    lambda: x\n", "Lambda aren't supported"),
    ] {
        let message = mistake(text);
        assert!(message.contains(expected), "{message}\nfor\n{text}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let levels = 100_000;
    for text in [
        format!(
            "def f(x: int):\n    return {}x{}\n",
            "(".repeat(levels),
            ")".repeat(levels)
        ),
        format!("def f(x: int):\n    return {}x\n", "-".repeat(levels)),
        format!("def f(x: int):\n    return {}x\n", "not ".repeat(levels)),
        format!("def f(x: int):\n    return x{}\n", " + x".repeat(levels)),
        format!("def f(x: int):\n    return x{}\n", ".a".repeat(levels)),
        format!(
            "def f(x: {}int{}):\n    return x\n",
            "List[".repeat(levels),
            "]".repeat(levels)
        ),
    ] {
        let message = mistake(&text);
        assert!(
            message.contains("levels of nesting"),
            "{}",
            &message[..message.len().min(300)]
        );
    }
    let nested: String = (0..5000).map(|i| format!("{}if x > 0:\n", " ".repeat(i + 1))).collect();
    let message = mistake(&format!("def f(x: int):\n{nested}{}pass\n", " ".repeat(5001)));
    assert!(message.contains("levels of nesting"), "{message}");
}

#[test]
fn hostile_constructors_are_refused() {
    let module = |init: &str| {
        format!(
            "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n{init}    def forward(self, x: Tensor):\n        return x\n"
        )
    };
    for (init, expected) in [
        (
            "        while True:\n            pass\n",
            "running the text takes more than 500",
        ),
        ("        self.me = self\n", "a module contains itself"),
        (
            "        a = []\n        a.append(a)\n        b = []\n        b.append(b)\n        assert a == b\n",
            "this comparison cannot be evaluated without Python",
        ),
        (
            "        for a in [0] * 1000000000:\n            pass\n",
            "cannot be evaluated without Python",
        ),
        (
            "        self.w = nn.Parameter(torch.zeros(1000000, 1000000))\n",
            "cannot be evaluated without Python",
        ),
        ("        self.x = 1 // 0\n", "division by zero"),
        (
            "        if 2 ** 5000 > 0:\n            pass\n",
            "cannot be evaluated without Python",
        ),
        ("        self.x = M()\n", "nest too deeply"),
    ] {
        let message = mistake(&module(init));
        assert!(message.contains(expected), "{message}\nfor\n{init}");
    }
    // Nested lists are dropped without running out of stack.
    compiled(&module(
        "        a = []\n        for i in range(100000):\n            a = [a]\n",
    ));
}
