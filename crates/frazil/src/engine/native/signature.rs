//! Call signatures: the properties of arguments and state for which native code is specialised. Tensors contribute shape and kind of strides, other values
//! their value.

use crate::engine::options::InputSpec;
use frazil_ir::{Context, Device, Graph, SymbolId, TypeKind, symbols};
use frazil_planner::specialise::{self, NumberKind, ObjectSpec};
use frazil_runtime::Tensor;
use frazil_runtime::layout::representative_strides;
use frazil_runtime::structured::{Dims, TensorShape};
use frazil_runtime::value::{Key, ObjectValue, TensorCell, Value};
use std::collections::HashSet;
use std::sync::Arc;

fn tensor_shape(spec: &InputSpec) -> TensorShape {
    TensorShape {
        dtype: spec.dtype,
        sizes: spec.sizes.as_slice().into(),
    }
}

pub(crate) fn tensor_spec(spec: &InputSpec) -> specialise::ArgumentSpec {
    specialise::ArgumentSpec::Tensor(tensor_shape(spec))
}

/// The contribution of one argument to a call signature: for a tensor its shape, for any other value the value itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Argument {
    None,
    Bool(bool),
    Int(i64),
    Float(u64),
    Str(Arc<str>),
    Device(Device),
    /// A row-major tensor.
    Tensor(InputSpec),
    /// A tensor that is not row-major, with its canonical strides.
    Strided(InputSpec, Dims),
    /// The same tensor as the tensor with the given index.
    Same(u32),
    /// The object with the given index.
    Object(u32),
    /// A scalar of the given kind that is an input of the compiled code, so that its value does not matter.
    Number(NumberKind),
    List(Vec<Argument>),
    Tuple(Vec<Argument>),
    Dict(Vec<(Argument, Argument)>),
}

/// Tensors and objects found so far in the description of arguments.
#[derive(Default)]
struct Found {
    /// Variables of the tensors, by index.
    cells: Vec<TensorCell>,
    /// The tensors at the time of the description. Another thread may assign another tensor to a variable before the tensors are used.
    tensors: Vec<Tensor>,
    /// Objects, if they are allowed. If so, an argument list with one tensor twice is also distinguished from one with two tensors.
    objects: Option<Vec<ObjectValue>>,
}

/// Returns the key of `value` and its specification; `None` if native code does not support it.
fn describe(value: &Value, found: &mut Found) -> Option<(Argument, specialise::ArgumentSpec)> {
    let fixed = |key| Some((key, specialise::ArgumentSpec::Value(value.clone())));
    let mut each = |items: &[Value]| -> Option<(Vec<Argument>, Vec<specialise::ArgumentSpec>)> {
        let described: Option<Vec<_>> = items.iter().map(|v| describe(v, found)).collect();
        Some(described?.into_iter().unzip())
    };
    match value {
        Value::None => fixed(Argument::None),
        Value::Bool(b) => fixed(Argument::Bool(*b)),
        Value::Int(i) => fixed(Argument::Int(*i)),
        Value::Float(f) => fixed(Argument::Float(f.to_bits())),
        Value::Str(s) => fixed(Argument::Str(s.clone())),
        Value::Device(d) => fixed(Argument::Device(*d)),
        Value::Tensor(cell) => {
            let again = found.cells.iter().position(|c| c.is(cell));
            if let (Some(number), Some(_)) = (again, &found.objects) {
                let number = number as u32;
                return Some((Argument::Same(number), specialise::ArgumentSpec::Same(number)));
            }
            let tensor = cell.get();
            let spec = InputSpec::new(tensor.dtype(), tensor.sizes());
            let strides = (!tensor.is_contiguous()).then(|| representative_strides(tensor.sizes(), tensor.strides()));
            found.cells.push(cell.clone());
            found.tensors.push(tensor);
            Some(match strides {
                None => {
                    let described = specialise::ArgumentSpec::Tensor(tensor_shape(&spec));
                    (Argument::Tensor(spec), described)
                }
                Some(strides) => {
                    let described = specialise::ArgumentSpec::Strided(tensor_shape(&spec), strides.clone());
                    (Argument::Strided(spec, strides), described)
                }
            })
        }
        Value::Object(object) => {
            let objects = found.objects.as_mut()?;
            let number = objects.iter().position(|o| o.is(object)).unwrap_or(objects.len());
            if number == objects.len() {
                objects.push(object.clone());
            }
            let number = number as u32;
            Some((Argument::Object(number), specialise::ArgumentSpec::Object(number)))
        }
        Value::List(l) => {
            let (keys, specs) = each(&l.items())?;
            Some((Argument::List(keys), specialise::ArgumentSpec::List(l.element, specs)))
        }
        Value::Tuple(t) => {
            let (keys, specs) = each(&t.items)?;
            Some((Argument::Tuple(keys), specialise::ArgumentSpec::Tuple(specs)))
        }
        Value::Dict(d) => {
            let entries: Vec<(Key, Value)> = d.with(|e| e.iter().map(|(k, v)| (k.clone(), v.clone())).collect());
            let mut keys = Vec::with_capacity(entries.len());
            let mut specs = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                let (name, _) = describe(&key.0, &mut Found::default())?;
                let (described, spec) = describe(&value, found)?;
                keys.push((name, described));
                specs.push((key, spec));
            }
            Some((
                Argument::Dict(keys),
                specialise::ArgumentSpec::Dict(d.key, d.value, specs),
            ))
        }
        _ => None,
    }
}

/// Described arguments: the keys for specialisation, the specifications for the compiler, and the tensors in the arguments.
pub(crate) type Described = (Vec<Argument>, Vec<specialise::ArgumentSpec>, Vec<Tensor>);

/// Describes all arguments with [`describe`].
pub(crate) fn describe_all(args: &[Value]) -> Option<Described> {
    let (described, _) = describe_cells(args)?;
    Some(described)
}

/// Describes all arguments as [`describe_all`] does, with the tensors' variables.
pub(crate) fn describe_cells(args: &[Value]) -> Option<(Described, Vec<TensorCell>)> {
    let mut found = Found::default();
    let described: Option<Vec<_>> = args.iter().map(|a| describe(a, &mut found)).collect();
    let (keys, specs) = described?.into_iter().unzip();
    Some(((keys, specs, found.tensors), found.cells))
}

/// Describes a number in an attribute, as [`describe`] does, as an input of the compiled code. Returns `None` if `value` is not a number.
fn describe_number(value: &Value, found: &mut Found) -> Option<(Argument, specialise::ArgumentSpec)> {
    let kind = NumberKind::of_value(value).filter(|k| *k != NumberKind::Bool)?;
    let tensor = Tensor::scalar(kind.dtype(), value.as_scalar()?);
    found.cells.push(TensorCell::new(tensor.clone()));
    found.tensors.push(tensor);
    Some((Argument::Number(kind), specialise::ArgumentSpec::Number(kind)))
}

/// The call signature of a call, with the tensors and objects of the call.
pub(crate) struct CallSignature {
    /// The properties of arguments and objects for which code is specialised.
    pub keys: Vec<Argument>,
    /// The specifications of the arguments, for the compiler.
    pub specs: Vec<specialise::ArgumentSpec>,
    /// The specifications of the objects, for the compiler.
    pub objects: Vec<ObjectSpec>,
    /// The objects: that of the method first, then those reachable from it and from the arguments.
    pub state: Vec<ObjectValue>,
    /// The tensor variables of the arguments and objects.
    pub cells: Vec<TensorCell>,
    /// The tensors in `cells`.
    pub tensors: Vec<Tensor>,
}

impl CallSignature {
    /// Returns the call signature; `None` if native code does not support an argument or attribute.
    ///
    /// `changes` returns whether the method sets an attribute of a class. Numbers in such attributes are inputs of the code and not part of the signature,
    /// because they rarely repeat.
    pub fn new(
        ctx: &Context,
        own: Option<&ObjectValue>,
        args: &[Value],
        changes: &dyn Fn(SymbolId, usize) -> bool,
    ) -> Option<CallSignature> {
        let mut found = Found {
            objects: Some(own.cloned().into_iter().collect()),
            ..Found::default()
        };
        let described: Option<Vec<_>> = args.iter().map(|a| describe(a, &mut found)).collect();
        let (mut keys, specs): (Vec<_>, Vec<_>) = described?.into_iter().unzip();
        let mut objects = Vec::new();
        while let Some(object) = found.objects.as_ref()?.get(objects.len()).cloned() {
            let slot = |(number, value): (usize, &Value)| {
                let changes = changes(object.class(), number);
                let as_number = changes.then(|| describe_number(value, &mut found)).flatten();
                as_number.or_else(|| describe(value, &mut found))
            };
            let slots: Option<Vec<_>> = object.slots().iter().enumerate().map(slot).collect();
            let (mut described, slots): (Vec<_>, Vec<_>) = slots?.into_iter().unzip();
            described.push(Argument::Str(ctx.name(object.class()).into()));
            keys.push(Argument::Tuple(described));
            objects.push(ObjectSpec {
                class: object.class(),
                slots,
            });
        }
        Some(CallSignature {
            keys,
            specs,
            objects,
            state: found.objects?,
            cells: found.cells,
            tensors: found.tensors,
        })
    }
}

/// Returns the attributes that a graph sets, as pairs of class and name.
pub(super) fn attributes_set(graph: &Graph) -> HashSet<(SymbolId, SymbolId)> {
    let nodes = graph.nodes_recursive(graph.root()).into_iter();
    let sets = nodes.filter(|&n| graph.kind(n) == symbols::PRIM_SET_ATTR);
    let attribute = |node| {
        let TypeKind::Class(class) = graph.ctx().type_kind(graph.ty(graph.operand(node, 0)?)) else {
            return None;
        };
        Some((class, graph.attribute_symbol(node, symbols::ATTR_NAME)?))
    };
    sets.filter_map(attribute).collect()
}
