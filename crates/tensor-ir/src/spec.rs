//! Descriptions of a method's arguments and results in terms of the inputs and outputs of its graph.

use frazil_ir::{DType, TypeId};
use frazil_runtime::Tensor;
use frazil_runtime::eval::view_layout;
use frazil_runtime::marks::Marks;
use frazil_runtime::number::NumberKind;
use frazil_runtime::structured::{Affine, Dims, TensorId, TensorShape, ViewKind, ViewMap};
use frazil_runtime::value::{DictValue, Key, ListValue, TupleValue, Value};
use serde::{Deserialize, Serialize};

/// The description of an argument at compile time.
#[derive(Clone, Debug)]
pub enum ArgumentSpec {
    /// A row-major tensor of this dtype and these sizes, given when the compiled function runs.
    Tensor(TensorShape),
    /// A tensor that is not row-major, with representative strides ([`frazil_runtime::layout::representative_strides`]). The compiled function receives its
    /// elements in row-major order.
    Strided(TensorShape, Dims),
    /// A value that is fixed when the function is compiled. Tensors in it are constants.
    Value(Value),
    /// A list, and the type of its elements.
    List(TypeId, Vec<ArgumentSpec>),
    /// A tuple.
    Tuple(Vec<ArgumentSpec>),
    /// A dictionary, and the types of its keys and values.
    Dict(TypeId, TypeId, Vec<(Key, ArgumentSpec)>),
    /// The same variable as the input tensor with this index, which an earlier argument describes.
    Same(u32),
    /// The object with this index among the objects at the start of a segment.
    Object(u32),
    /// A scalar that is known at run time only, as a tensor of [`NumberKind::dtype`] without dimensions. In segments only.
    Number(NumberKind),
}

/// A result of a method in terms of the outputs of its graph.
#[derive(Clone, Debug)]
pub enum ResultSpec {
    /// The output with this index.
    Tensor(u32),
    /// The output with this index. Its elements are in the order in which a tensor of these sizes and strides, which leave no gaps, stores them. Not in
    /// methods that return new tensors.
    Strided(u32, Vec<i64>, Vec<i64>),
    /// A value that does not depend on the inputs' elements.
    Value(Value),
    /// A list, and the type of its elements.
    List(TypeId, Vec<ResultSpec>),
    /// A tuple, with the type of a NamedTuple.
    Tuple(Option<TypeId>, Vec<ResultSpec>),
    /// A dictionary, and the types of its keys and values.
    Dict(TypeId, TypeId, Vec<(Key, ResultSpec)>),
    /// The input tensor with this index itself: the same variable. Only in segments, and in methods that return inputs and views of inputs.
    Input(u32),
    /// The scalar in the output with this index, a tensor without dimensions. In segments only.
    Number(u32),
    /// A view of the input tensor with this index, which is row-major: sizes, strides and offset, and the conjugate and negative bits relative to the
    /// input's.
    View(u32, Vec<i64>, Vec<i64>, i64, Marks),
    /// A tensor in the memory of an output, which other results share. Only in segments, and in methods that return inputs and views of inputs.
    Part {
        /// The index of the output.
        output: u32,
        /// The number of the variable: results with the same number are one variable.
        variable: u32,
        /// The sizes.
        sizes: Vec<i64>,
        /// The strides.
        strides: Vec<i64>,
        /// The index of the first element in the memory.
        offset: i64,
    },
    /// A view of the input tensor with this index, an [`ArgumentSpec::Strided`]: the views from the input to it, and the conjugate and negative bits relative
    /// to the input's.
    Window(u32, Vec<PathStep>, Marks),
}

impl ResultSpec {
    /// Returns the value for the outputs `tensors`. All tensors of the value must be whole outputs ([`ResultSpec::Tensor`]).
    pub fn value(&self, tensors: &[Value]) -> Value {
        self.value_with(&|leaf| match leaf {
            ResultSpec::Tensor(i) => tensors.get(*i as usize).cloned().unwrap_or_default(),
            _ => Value::None,
        })
    }

    /// Returns the value that this describes. `leaf` is called for each output, input and view of an input, and returns its value.
    pub fn value_with(&self, leaf: &dyn Fn(&ResultSpec) -> Value) -> Value {
        let all = |items: &[ResultSpec]| -> Vec<Value> { items.iter().map(|r| r.value_with(leaf)).collect() };
        match self {
            ResultSpec::Tensor(_)
            | ResultSpec::Strided(..)
            | ResultSpec::Input(_)
            | ResultSpec::View(..)
            | ResultSpec::Part { .. }
            | ResultSpec::Window(..) => leaf(self),
            ResultSpec::Number(i) => number_in(&leaf(&ResultSpec::Tensor(*i))).unwrap_or_default(),
            ResultSpec::Value(v) => v.clone(),
            ResultSpec::Tuple(ty, items) => Value::Tuple(TupleValue {
                ty: *ty,
                items: all(items).into(),
            }),
            ResultSpec::List(element, items) => Value::List(ListValue::new(*element, all(items))),
            ResultSpec::Dict(key, value, entries) => {
                let entries = entries.iter().map(|(k, v)| (k.clone(), v.value_with(leaf)));
                Value::Dict(DictValue::new(*key, *value, entries.collect()))
            }
        }
    }
}

/// Returns the scalar in a tensor without dimensions, as [`NumberKind::dtype`] stores it; `None` for other values.
pub fn number_in(value: &Value) -> Option<Value> {
    let tensor = value.as_tensor()?;
    Some(match (tensor.dtype(), tensor.item().ok()?) {
        (DType::Bool, scalar) => Value::Bool(scalar.as_bool()),
        (DType::Long, scalar) => Value::Int(scalar.as_i64()),
        (_, scalar) => Value::Float(scalar.as_f64()),
    })
}

/// One step from a storage's whole contents to a view of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "KeptStep", into = "KeptStep")]
pub struct PathStep {
    /// The map from the view to its base.
    pub kind: ViewKind,
    /// dtype and sizes of the view.
    pub shape: TensorShape,
}

impl PathStep {
    /// Returns the view of `base`; `None` if strides cannot express it.
    pub fn of(&self, base: &Tensor) -> Option<Tensor> {
        match &self.kind {
            ViewKind::Reshape => base.view(&self.shape.sizes),
            ViewKind::Affine(map) => {
                let (strides, offset) = view_layout(map, base, &self.shape.sizes)?;
                base.as_strided(&self.shape.sizes, &strides, offset).ok()
            }
        }
    }

    /// Returns the view of tensor `tensor` of a graph.
    pub fn over(&self, tensor: TensorId) -> ViewMap {
        ViewMap {
            tensor,
            kind: self.kind.clone(),
            output: self.shape.clone(),
        }
    }
}

/// The serialised form of a [`PathStep`].
#[derive(Serialize, Deserialize)]
struct KeptStep {
    /// Coefficients and offset of each coordinate; `None` for [`ViewKind::Reshape`].
    map: Option<Vec<(Vec<i64>, i64)>>,
    #[serde(with = "dtype_name")]
    dtype: DType,
    sizes: Vec<i64>,
}

impl From<PathStep> for KeptStep {
    fn from(step: PathStep) -> KeptStep {
        let map = match step.kind {
            ViewKind::Reshape => None,
            ViewKind::Affine(map) => Some(map.into_iter().map(|a| (a.coefficients.to_vec(), a.offset)).collect()),
        };
        KeptStep {
            map,
            dtype: step.shape.dtype,
            sizes: step.shape.sizes.to_vec(),
        }
    }
}

impl From<KeptStep> for PathStep {
    fn from(kept: KeptStep) -> PathStep {
        let affine = |(coefficients, offset): (Vec<i64>, i64)| Affine {
            coefficients: coefficients.into(),
            offset,
        };
        let kind = match kept.map {
            None => ViewKind::Reshape,
            Some(map) => ViewKind::Affine(map.into_iter().map(affine).collect()),
        };
        let shape = TensorShape {
            dtype: kept.dtype,
            sizes: kept.sizes.into(),
        };
        PathStep { kind, shape }
    }
}

/// Serialisation of dtypes by name.
pub mod dtype_name {
    use super::{DType, Deserialize};
    use serde::{Deserializer, Serializer, de::Error};

    /// Serialises the name.
    ///
    /// # Errors
    /// Those of the serialiser.
    pub fn serialize<S: Serializer>(dtype: &DType, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(dtype.type_name())
    }

    /// Deserialises the name.
    ///
    /// # Errors
    /// If no dtype has this name.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DType, D::Error> {
        let name = String::deserialize(from)?;
        DType::from_type_name(&name).ok_or_else(|| D::Error::custom(format!("`{name}` is no dtype")))
    }
}
