//! Objects of plain classes: constants as a whole or in parts, and the remaining members of those that change.

use super::Case;

/// The text of a module that has the objects `range` and `fixed` of a class whose method `widen` changes them, with this body of `forward`.
macro_rules! of_ranges {
    ($forward:literal) => {
        concat!(
            r#"frazil module 1
root object<0>

class __torch__.Range {
  attribute low : int
  attribute high : int
  method widen = __torch__.Range.widen
}

module __torch__.Net {
  attribute training : bool
  attribute range : __torch__.Range
  attribute fixed : __torch__.Range
  attribute same : __torch__.Range
  method forward = __torch__.Net.forward
}

function __torch__.Range.widen(self : __torch__.Range) -> (NoneType) as __torch__.Range.widen
graph(%self : __torch__.Range):
  %0 : NoneType = prim::Constant()
  %1 : int = prim::Constant[value=1]()
  %high : int = prim::GetAttr[name="high"](%self)
  %2 : int = aten::add(%high, %1)
   = prim::SetAttr[name="high"](%self, %2)
  return (%0)

function __torch__.Net.forward(self : __torch__.Net, x : Tensor) -> (Tensor) as __torch__.Net.forward
graph(%self : __torch__.Net,
      %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %first : Tensor = aten::select(%x, %zero, %zero)
  %i : int = aten::Int(%first)
  %range : __torch__.Range = prim::GetAttr[name="range"](%self)
  %fixed : __torch__.Range = prim::GetAttr[name="fixed"](%self)
  %same : __torch__.Range = prim::GetAttr[name="same"](%self)
"#,
            $forward,
            r#"
object<0> = __torch__.Net {
  training = False
  range = object<1>
  fixed = object<2>
  same = object<1>
}

object<1> = __torch__.Range {
  low = 2
  high = 9
}

object<2> = __torch__.Range {
  low = 1
  high = 3
}
"#
        )
    };
}

pub const CASES: &[Case] = &[
    Case {
        name: "an object that is used as a value and never changes is a constant",
        source: of_ranges!(
            r#"  %ranges : __torch__.Range[] = prim::ListConstruct(%range, %range, %range)
  %chosen : __torch__.Range = aten::__getitem__(%ranges, %i)
  %low : int = prim::GetAttr[name="low"](%fixed)
  %high : int = prim::GetAttr[name="high"](%chosen)
  %y : Tensor = aten::mul(%x, %high)
  %z : Tensor = aten::add(%y, %low, %one)
  return (%z)
"#
        ),
        preserve: &[],
        attributes: &[],
        methods: &["forward"],
    },
    Case {
        name: "one that changes is kept, and what others of its class have with it",
        source: of_ranges!(
            r#"  %ranges : __torch__.Range[] = prim::ListConstruct(%range, %range, %range)
  %chosen : __torch__.Range = aten::__getitem__(%ranges, %i)
  %none : NoneType = prim::CallMethod[name="widen"](%chosen)
  %low : int = prim::GetAttr[name="low"](%fixed)
  %high : int = prim::GetAttr[name="high"](%chosen)
  %y : Tensor = aten::mul(%x, %high)
  %z : Tensor = aten::add(%y, %low, %one)
  return (%z)
"#
        ),
        preserve: &[],
        attributes: &["range.high", "range.low"],
        methods: &["forward", "range.widen"],
    },
    Case {
        name: "which object a thing is can be told without keeping it",
        source: of_ranges!(
            r#"  %equal : bool = aten::__is__(%range, %same)
  %other : bool = aten::__isnot__(%range, %fixed)
  %wrong : bool = aten::__is__(%range, %fixed)
  %high : int = prim::GetAttr[name="high"](%range)
  %1 : int = aten::Int(%equal)
  %2 : int = aten::Int(%other)
  %3 : int = aten::Int(%wrong)
  %a : Tensor = aten::mul(%x, %high)
  %b : Tensor = aten::add(%a, %1, %one)
  %c : Tensor = aten::mul(%b, %2)
  %d : Tensor = aten::add(%c, %3, %one)
  return (%d)
"#
        ),
        preserve: &[],
        attributes: &[],
        methods: &["forward"],
    },
    Case {
        name: "an attribute that is assigned may be any object",
        source: of_ranges!(
            r#"  %equal : bool = aten::__is__(%range, %fixed)
   = prim::SetAttr[name="range"](%self, %fixed)
  %high : int = prim::GetAttr[name="high"](%range)
  %1 : int = aten::Int(%equal)
  %a : Tensor = aten::mul(%x, %high)
  %b : Tensor = aten::add(%a, %1, %one)
  return (%b)
"#
        ),
        preserve: &[],
        attributes: &["range.high", "range.low"],
        methods: &["forward", "range.widen"],
    },
];
