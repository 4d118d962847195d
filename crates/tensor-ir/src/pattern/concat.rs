//! Recognition of concatenations: nests that select one of several shifted reads by the coordinate along one dimension.

use crate::affine::{as_loop, range};
use crate::graph::TensorGraph;
use frazil_runtime::expr::{BinaryOp, ExprId, ExprOp, UnaryOp};
use frazil_runtime::structured::{Access, Affine, Structured, TensorId};
use std::ops::Range;

/// A concatenation of tensors along one dimension, or a slice of one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcatClass {
    /// The dimension.
    pub axis: usize,
    /// The parts along that dimension, in order, without gaps.
    pub parts: Vec<ConcatPart>,
}

/// One part of a concatenation: a slice of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcatPart {
    /// The source. Its sizes are those of the result, except along the axis.
    pub tensor: TensorId,
    /// First coordinate of the source along the axis.
    pub from: i64,
    /// First coordinate of the result along the axis.
    pub to: i64,
    /// Number of coordinates along the axis.
    pub count: i64,
}

/// Recognises a nest whose body selects one of its reads by comparisons of one coordinate with constants, or that copies a
/// slice of a tensor.
pub(super) fn recognise(graph: &TensorGraph, s: &Structured) -> Option<ConcatClass> {
    if s.finish.is_some() {
        return None;
    }
    if let [access] = s.inputs.as_slice() {
        return slice(graph, s, access);
    }
    let choice = Choice::of(s)?;
    let extent = *s.domain.get(choice.axis)?;
    let mut parts: Vec<ConcatPart> = Vec::new();
    for (run, input) in choice.selected()? {
        let low = *choice.breaks.get(run.start)?;
        let high = choice.breaks.get(run.end).copied().unwrap_or(extent);
        if low >= high {
            continue;
        }
        let access = s.inputs.get(input)?;
        let sizes = &graph.shape(access.tensor).sizes;
        if access.map.len() != s.domain.len() || graph.shape(access.tensor).dtype != s.output.dtype {
            return None;
        }
        let mut from = 0;
        for (d, (map, &size)) in access.map.iter().zip(sizes).enumerate() {
            if d == choice.axis {
                from = low + map.offset;
                let mut shifted = map.clone();
                shifted.offset = 0;
                if as_loop(&shifted) != Some(d) || from < 0 || from + (high - low) > size {
                    return None;
                }
            } else if size != s.domain[d] || (as_loop(map) != Some(d) && range(map, &s.domain) != (0, 0)) {
                return None;
            }
        }
        match parts.last_mut() {
            Some(p) if p.tensor == access.tensor && p.from + p.count == from => p.count += high - low,
            _ => parts.push(ConcatPart {
                tensor: access.tensor,
                from,
                to: low,
                count: high - low,
            }),
        }
    }
    (parts.len() >= 2).then_some(ConcatClass {
        axis: choice.axis,
        parts,
    })
}

/// Recognises a copy of a slice of a tensor along one dimension.
fn slice(graph: &TensorGraph, s: &Structured, access: &Access) -> Option<ConcatClass> {
    let sizes = &graph.shape(access.tensor).sizes;
    let is_copy = matches!(s.body.nodes(), [n] if n.op == ExprOp::Input(0));
    if !is_copy || graph.shape(access.tensor).dtype != s.output.dtype || sizes.len() != s.domain.len() {
        return None;
    }
    let mut found = None;
    for (d, (map, &size)) in access.map.iter().zip(sizes).enumerate() {
        let (low, high) = range(map, &s.domain);
        let moves = as_loop(&Affine {
            offset: 0,
            ..map.clone()
        }) == Some(d);
        // A loop of one iteration may be the coordinate of a dimension that is constant, but not that of a diagonal, which depends on another loop.
        let stands = s.domain[d] == 1 && low == high;
        let inside = low >= 0 && high < size && (moves || stands);
        if !inside {
            return None;
        }
        let whole = s.domain[d] == size;
        if !whole && found.replace((d, low)).is_some() {
            return None;
        }
    }
    let (axis, from) = found?;
    let part = ConcatPart {
        tensor: access.tensor,
        from,
        to: 0,
        count: s.domain[axis],
    };
    Some(ConcatClass {
        axis,
        parts: vec![part],
    })
}

/// A loop nest whose body selects one of its inputs by comparing the coordinate along one axis with constants.
struct Choice<'a> {
    s: &'a Structured,
    axis: usize,
    root: ExprId,
    /// 0 and the coordinates at which the result of a comparison may change, ascending.
    breaks: Vec<i64>,
}

impl<'a> Choice<'a> {
    fn of(s: &'a Structured) -> Option<Choice<'a>> {
        let nodes = s.body.nodes();
        let mut axis = None;
        let mut breaks = vec![0];
        for node in nodes {
            match node.op {
                ExprOp::Index(d) if axis.is_none_or(|a| a == d) => axis = Some(d),
                ExprOp::Const(c) => {
                    let c = c.as_i64();
                    breaks.extend([c, c.saturating_add(1)]);
                }
                ExprOp::Input(_) | ExprOp::Binary(..) | ExprOp::Select(..) | ExprOp::Unary(UnaryOp::Not, _) => {}
                _ => return None,
            }
        }
        let axis = axis? as usize;
        let extent = *s.domain.get(axis)?;
        breaks.retain(|b| (0..extent.max(1)).contains(b));
        breaks.sort_unstable();
        breaks.dedup();
        Some(Choice {
            s,
            axis,
            root: (nodes.len() - 1) as ExprId,
            breaks,
        })
    }

    /// Returns the inputs that are selected, each with the range of positions in `breaks` at which it is selected, in ascending order. The body is evaluated
    /// for ranges of coordinates rather than for each coordinate, because a body with many parts is a long chain of selections.
    fn selected(&self) -> Option<Vec<(Range<usize>, usize)>> {
        let mut selected = Vec::new();
        let mut pending = vec![(self.root, 0..self.breaks.len())];
        while let Some((id, run)) = pending.pop() {
            match self.s.body.nodes().get(id as usize)?.op {
                ExprOp::Input(input) => selected.push((run, input as usize)),
                ExprOp::Select(condition, then, other) => {
                    for (run, is_true) in self.runs(condition, run)? {
                        pending.push((if is_true { then } else { other }, run));
                    }
                }
                _ => return None,
            }
        }
        selected.sort_unstable_by_key(|(run, _)| run.start);
        Some(selected)
    }

    /// Divides the positions `range` in `breaks` into runs in which the condition `id` is constant. Returns each run with the value of the condition.
    fn runs(&self, id: ExprId, range: Range<usize>) -> Option<Vec<(Range<usize>, bool)>> {
        let holds = |position: usize| Some(self.value_at(id, *self.breaks.get(position)?)? != 0);
        let mut runs = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let is_true = holds(start)?;
            let end = match self.changes_once(id) {
                true => {
                    let mut end = range.end;
                    let (mut low, mut high) = (start + 1, range.end);
                    while low < high {
                        let middle = low.midpoint(high);
                        match holds(middle)? == is_true {
                            true => low = middle + 1,
                            false => (high, end) = (middle, middle),
                        }
                    }
                    end
                }
                false => {
                    let mut end = start + 1;
                    while end < range.end && holds(end)? == is_true {
                        end += 1;
                    }
                    end
                }
            };
            runs.push((start..end, is_true));
            start = end;
        }
        Some(runs)
    }

    /// Returns true if `id` is an order comparison (`<`, `<=`, `>`, `>=`) of the coordinate with a constant. Its value changes at most once as the coordinate
    /// increases.
    fn changes_once(&self, id: ExprId) -> bool {
        let op = |id: ExprId| self.s.body.nodes().get(id as usize).map(|node| node.op);
        let Some(ExprOp::Binary(BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge, a, b)) = op(id) else {
            return false;
        };
        matches!(
            (op(a), op(b)),
            (Some(ExprOp::Index(_)), Some(ExprOp::Const(_))) | (Some(ExprOp::Const(_)), Some(ExprOp::Index(_)))
        )
    }

    /// Returns the value of a condition, or of an integer operand of a condition, at coordinate `at`.
    fn value_at(&self, id: ExprId, at: i64) -> Option<i64> {
        let value = |id| self.value_at(id, at);
        Some(match self.s.body.nodes().get(id as usize)?.op {
            ExprOp::Index(_) => at,
            ExprOp::Const(c) => c.as_i64(),
            ExprOp::Unary(UnaryOp::Not, a) => i64::from(value(a)? == 0),
            ExprOp::Binary(op, a, b) => {
                let (a, b) = (value(a)?, value(b)?);
                i64::from(match op {
                    BinaryOp::Lt => a < b,
                    BinaryOp::Le => a <= b,
                    BinaryOp::Gt => a > b,
                    BinaryOp::Ge => a >= b,
                    BinaryOp::Eq => a == b,
                    BinaryOp::Ne => a != b,
                    BinaryOp::And => a != 0 && b != 0,
                    BinaryOp::Or => a != 0 || b != 0,
                    _ => return None,
                })
            }
            _ => return None,
        })
    }
}
