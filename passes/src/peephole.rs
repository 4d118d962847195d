//! Peephole rewrites: `peephole`.
//!
//! Small rewrites that follow from types and operands, in PyTorch's order: those below, then [lists](crate::peephole_list_idioms),
//! [dictionaries](crate::peephole_dict_idioms), [tensors](crate::peephole_alias_sensitive), [numbers, bools and None](crate::peephole_non_tensor), and
//! [concatenations](crate::combine_concats). Unused nodes are then removed.
//!
//! - `aten::dim`, `aten::size`, `prim::dtype`, `prim::device`, `prim::is_cuda`, `aten::is_floating_point` and `aten::is_complex` of a tensor whose type
//!   determines them become constants, and so does the length of its sizes (unless `disable-shape-peepholes` is set);
//! - `x.t().t()`, `x.type_as(y)` of one dtype and device, and `x.expand(x.size())` become `x`;
//! - `aten::device` of constants becomes one;
//! - unpacking or indexing a tuple that was just built is replaced by its elements;
//! - the rank of a convolution's result is that of its weight.
//!
//! **Sound** for any use. The properties in a tensor's type are true as long as the tensor is not written, so shapes are used only for values without writers
//! (in-place operators may resize). A view is replaced by its base only if the difference is not observable.
//!
//! **One exception**, as in PyTorch: a convolution whose input has no batch dimension has a result with one dimension less. If the rank only decides
//! whether an exception is raised (the check of a batch norm after a convolution), a batch dimension is assumed: runs without an exception have the same
//! results. PyTorch assumes it for every use; so does this pass with `like-pytorch`, which is the default in pipelines but not in freezing.

use crate::dce::DeadCodeElimination;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::peephole_alias_sensitive::PeepholeAliasSensitive;
use crate::peephole_dict_idioms::PeepholeDictIdioms;
use crate::peephole_list_idioms::PeepholeListIdioms;
use crate::peephole_non_tensor::PeepholeNonTensor;
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support::rewrite::{Replacement, built_by, element_index, int, rewrite_nodes};
use crate::{AliasDb, support};
use frazil_ir::{Constant, Device, DeviceKind, Dim, Graph, NodeId, TensorType, TypeKind, ValueId, symbols};

/// Declaration of the pass `peephole` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "peephole",
    summary: "Rewrites single nodes whose result follows from their types or operands.",
    before: "graph(%x : Float(2, 3), %y : Tensor):
  %d : int = aten::dim(%x)
  %t : Tensor = aten::t(%y)
  %u : Tensor = aten::t(%t)
  %z : Tensor = aten::relu(%u)
  return (%d, %z)
",
    after: "graph(%x : Float(2, 3), %y : Tensor):
  %6 : int = prim::Constant[value=2]()
  %z : Tensor = aten::relu(%y)
  return (%6, %z)
",
    options: &[
        OptionInfo {
            name: "disable-shape-peepholes",
            kind: OptionKind::Bool,
            default: "false",
            doc: "Do not rely on the sizes and dtypes in tensor types.",
        },
        OptionInfo {
            name: "like-pytorch",
            kind: OptionKind::Bool,
            default: "true",
            doc: "Make PyTorch's assumptions: inputs of convolutions have a batch dimension, tensors of unknown dtype are not bool, integers can be represented as floats.",
        },
    ],
    build: |options| {
        AnyPass::graph(Peephole {
            disable_shape_peepholes: options.bool("disable-shape-peepholes"),
            like_pytorch: options.bool("like-pytorch"),
        })
    },
};

/// The pass `peephole`. See the [module documentation](self).
#[derive(Clone, Debug, Default)]
pub struct Peephole {
    /// Does not use the sizes and dtypes in tensor types.
    pub disable_shape_peepholes: bool,
    /// Makes PyTorch's assumptions: inputs of convolutions have a batch dimension, tensors of unknown dtype are not bool tensors, integers
    /// are representable as floats.
    pub like_pytorch: bool,
}

const STATISTIC: &str = "nodes rewritten";

impl GraphPass<TorchScript> for Peephole {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let revision = graph.revision();
        let db = cx.alias_db(graph);
        rewrite_nodes(graph, cx, STATISTIC, |g, n| self.rewrite(g, n, &db));
        cx.run_part(&PeepholeListIdioms::default(), graph)?;
        cx.run_part(&PeepholeDictIdioms, graph)?;
        let alias_sensitive = PeepholeAliasSensitive {
            disable_shape_peepholes: self.disable_shape_peepholes,
            like_pytorch: self.like_pytorch,
        };
        cx.run_part(&alias_sensitive, graph)?;
        let non_tensor = PeepholeNonTensor {
            like_pytorch: self.like_pytorch,
        };
        cx.run_part(&non_tensor, graph)?;
        cx.run_part(&crate::combine_concats::CombineConcats, graph)?;
        if graph.revision() == revision {
            return Ok(());
        }
        cx.run_part(&DeadCodeElimination::default(), graph)
    }
}

impl Peephole {
    fn rewrite(&self, graph: &Graph, node: NodeId, db: &AliasDb) -> Option<Replacement> {
        let operand = |i: usize| graph.operand(node, i);
        let same = |value: ValueId| {
            let output = graph.output(node)?;
            db.safe_to_merge_values(graph, value, output)
                .then_some(Replacement::Value(value))
        };
        match graph.kind(node) {
            symbols::PRIM_TUPLE_UNPACK => {
                let tuple = built_by(graph, operand(0)?, symbols::PRIM_TUPLE_CONSTRUCT)?;
                let values: Vec<_> = graph.operands(tuple).collect();
                (values.len() == graph.node_outputs(node).len()).then_some(Replacement::Values(values))
            }
            symbols::PRIM_TUPLE_INDEX => {
                let tuple = built_by(graph, operand(0)?, symbols::PRIM_TUPLE_CONSTRUCT)?;
                let index = element_index(int(graph, operand(1)?)?, graph.operand_count(tuple))?;
                Some(Replacement::Value(graph.operand(tuple, index)?))
            }
            _ => match graph.kind_name(node) {
                "aten::t" => {
                    let inner = graph.defining_node(operand(0)?)?;
                    let base = graph
                        .operand(inner, 0)
                        .filter(|_| graph.kind_name(inner) == "aten::t")?;
                    same(base)
                }
                "aten::type_as" if !self.disable_shape_peepholes => {
                    let (of, like) = (tensor_type(graph, operand(0)?)?, tensor_type(graph, operand(1)?)?);
                    let alike =
                        of.dtype.is_some() && of.device.is_some() && (of.dtype, of.device) == (like.dtype, like.device);
                    // The node then returns its operand itself, and not a copy.
                    alike.then_some(Replacement::Value(operand(0)?))
                }
                "aten::expand" if !self.disable_shape_peepholes => {
                    let tensor = operand(0).filter(|v| !db.has_writers(*v))?;
                    let wanted = graph.constant(operand(1)?)?.as_ints()?;
                    if known_sizes(graph, tensor)? != wanted {
                        return None;
                    }
                    same(tensor)
                }
                "aten::device" => device(graph, node),
                "aten::len" if !self.disable_shape_peepholes => {
                    let sizes = operand(0)?;
                    let asked = graph.defining_node(sizes).filter(|n| {
                        graph.kind_name(*n) == "aten::size" && graph.operand_count(*n) == 1 && !db.has_writers(sizes)
                    })?;
                    let tensor = graph.operand(asked, 0).filter(|v| !db.has_writers(*v))?;
                    let rank = graph.ctx().dims(tensor_type(graph, tensor)?.sizes?).len();
                    Some(Replacement::Constant(Constant::Int(rank as i64)))
                }
                _ => self.property(graph, node, db),
            },
        }
    }

    /// Replaces a query of a tensor's property whose value the tensor's type determines.
    fn property(&self, graph: &Graph, node: NodeId, db: &AliasDb) -> Option<Replacement> {
        let asks = graph.kind_name(node);
        if !matches!(
            asks,
            "aten::dim"
                | "aten::size"
                | "prim::dtype"
                | "prim::device"
                | "prim::is_cuda"
                | "aten::is_floating_point"
                | "aten::is_complex"
        ) {
            return None;
        }
        let tensor = graph.operand(node, 0)?;
        if asks == "aten::dim"
            && let Some(rank) = self.convolution_rank(graph, tensor, node, db)
        {
            return Some(Replacement::Constant(rank.into()));
        }
        let ty = tensor_type(graph, tensor)?;
        if self.disable_shape_peepholes || db.has_writers(tensor) {
            return None;
        }
        let dims = ty.sizes.map(|s| graph.ctx().dims(s));
        Some(Replacement::Constant(match (asks, graph.operand_count(node)) {
            ("aten::dim", 1) => Constant::Int(dims?.len() as i64),
            ("prim::dtype", 1) => Constant::Int(ty.dtype?.code()),
            ("prim::device", 1) => Constant::Device(ty.device?),
            ("prim::is_cuda", 1) => Constant::Bool(ty.device?.kind == DeviceKind::Cuda),
            ("aten::is_floating_point", 1) => Constant::Bool(ty.dtype?.is_floating_point()),
            ("aten::is_complex", 1) => Constant::Bool(ty.dtype?.is_complex()),
            ("aten::size", 1) => {
                // Each call returns a new list, while a constant is one list.
                let sizes = graph.output(node)?;
                if db.has_writers(sizes) || db.escapes_scope(&[sizes]) {
                    return None;
                }
                Constant::ints(known_sizes(graph, tensor)?)
            }
            ("aten::size", 2) => {
                let dims = dims?;
                let index = element_index(int(graph, graph.operand(node, 1)?)?, dims.len())?;
                match dims[index] {
                    Dim::Known(n) => Constant::Int(n),
                    _ => return None,
                }
            }
            _ => return None,
        }))
    }

    /// Returns the rank of the result of the convolution that defines `value`, if the rank only guards exceptions, or if the input is known to have a batch
    /// dimension.
    fn convolution_rank(&self, graph: &Graph, value: ValueId, dim: NodeId, db: &AliasDb) -> Option<i64> {
        let convolution = graph.defining_node(value)?;
        let rank = match graph.kind(convolution) {
            symbols::ATEN_CONV1D => 3,
            symbols::ATEN_CONV2D => 4,
            symbols::ATEN_CONV3D => 5,
            _ => return None,
        };
        if db.has_writers(value) {
            return None;
        }
        (self.like_pytorch || only_guards(graph, graph.output(dim)?, 0)).then_some(rank)
    }
}

fn tensor_type(graph: &Graph, value: ValueId) -> Option<TensorType> {
    match graph.ctx().type_kind(graph.ty(value)) {
        TypeKind::Tensor(ty) => Some(ty),
        _ => None,
    }
}

/// Returns the sizes of a tensor, if its type contains all of them.
fn known_sizes(graph: &Graph, tensor: ValueId) -> Option<Vec<i64>> {
    let dims = graph.ctx().dims(tensor_type(graph, tensor)?.sizes?);
    let known = dims.iter().map(|d| match d {
        Dim::Known(n) => Some(*n),
        _ => None,
    });
    known.collect()
}

/// Replaces a call such as `torch.device("cuda", 1)` by a constant.
fn device(graph: &Graph, node: NodeId) -> Option<Replacement> {
    let constant = |i: usize| graph.operand(node, i).and_then(|v| graph.constant(v));
    let kind = constant(0)?;
    let text = match constant(1) {
        None if graph.operand_count(node) == 1 => kind.as_str()?.to_owned(),
        Some(Constant::Int(index)) => format!("{}:{index}", kind.as_str()?),
        Some(Constant::None) => kind.as_str()?.to_owned(),
        _ => return None,
    };
    Some(Replacement::Constant(Constant::Device(Device::parse(&text)?)))
}

/// Maximum number of comparisons in a chain that is followed.
const MAX_GUARD_DEPTH: usize = 8;

/// Returns true if `value` only decides whether an exception is raised, or appears in its message.
fn only_guards(graph: &Graph, value: ValueId, depth: usize) -> bool {
    depth < MAX_GUARD_DEPTH
        && graph.uses(value).all(|u| {
            if graph.enclosing_blocks(u.user).any(|b| raises(graph, b)) {
                return true;
            }
            match graph.kind(u.user) {
                symbols::PRIM_IF => {
                    let blocks = graph.node_blocks(u.user);
                    let harmless =
                        |b: &frazil_ir::BlockId| raises(graph, *b) || graph.nodes(*b).all(|n| is_comparison(graph, n));
                    blocks.iter().all(harmless)
                        && graph
                            .node_outputs(u.user)
                            .iter()
                            .all(|v| only_guards(graph, *v, depth + 1))
                }
                symbols::PRIM_RETURN => {
                    let branch = graph.parent(u.user).and_then(|b| graph.owner(b));
                    branch.filter(|n| graph.kind(*n) == symbols::PRIM_IF).is_some_and(|n| {
                        graph
                            .node_outputs(n)
                            .get(u.index)
                            .is_some_and(|v| only_guards(graph, *v, depth + 1))
                    })
                }
                _ => {
                    is_comparison(graph, u.user)
                        && graph
                            .node_outputs(u.user)
                            .iter()
                            .all(|v| only_guards(graph, *v, depth + 1))
                }
            }
        })
}

fn is_comparison(graph: &Graph, node: NodeId) -> bool {
    let comparison = matches!(
        graph.kind_name(node),
        "aten::eq" | "aten::ne" | "aten::lt" | "aten::le" | "aten::gt" | "aten::ge" | "aten::__not__" | "aten::dim"
    );
    comparison || graph.kind(node) == symbols::PRIM_CONSTANT
}

/// Returns true if `block` always raises an exception.
fn raises(graph: &Graph, block: frazil_ir::BlockId) -> bool {
    graph
        .nodes(block)
        .any(|n| graph.kind(n) == symbols::PRIM_RAISE_EXCEPTION)
}
