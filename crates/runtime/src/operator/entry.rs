//! Entries: everything that a dialect states about an operator, in one value.
//!
//! A dialect is a table of rows `(name, entry)`. The name is that of an operator (`aten::add`: all its overloads, `aten::add_` and the
//! `out` overloads) or of one overload (`aten::add.Scalar`), whose entry is completed by the operator's.
//!
//! ```
//! use frazil_runtime::entry::{Entry, ResultLayout, Row};
//! use frazil_runtime::op::one;
//! use frazil_runtime::pointwise::{Pointwise, Promotion};
//!
//! const ENTRIES: &[Row] = &[
//!     ("mine::swish", Entry::pointwise(Pointwise::new(&["self"], Promotion::IntToFloat, |b| b.x(0) * b.x(0).sigmoid()))
//!         .preserves_rank()),
//!     ("mine::mirror", Entry::kernel(|call| one(call.tensor(0)?.deep_copy()?))
//!         .fixed_sizes()
//!         .layout(ResultLayout::Elementwise)),
//! ];
//! # let mut registry = frazil_runtime::Registry::new(std::sync::Arc::default());
//! # registry.add_schemas("mine::swish(Tensor self) -> Tensor\nmine::mirror(Tensor self) -> Tensor")?;
//! # registry.register_all(ENTRIES);
//! # assert!(registry.find("mine::mirror", "").is_some_and(|op| op.has_fixed_sizes()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::operator::callback::{Callback, KernelFn, ProgramFn};
use crate::operator::pointwise::Pointwise;
use crate::operator::semantics::{Form, Semantics};
use crate::value::number::NumberKind;

use frazil_ir::DType;
use frazil_ir::schema::{Activation, AliasUse, Determinism, Observes, Properties, ResultRank, Totality};

/// A row of a dialect's table: an operator or an overload, and its entry.
pub type Row = (&'static str, Entry);

/// Strides of an operator's new results, which programs do not define. Both engines apply them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ResultLayout {
    /// The strides that the program or kernel returns: row-major, or those of a view.
    #[default]
    AsComputed,
    /// In the order of the operands' dimensions ([`crate::shape::layout::elementwise_strides`]).
    Elementwise,
    /// Channels innermost if one of the first two tensors has them innermost, from this rank on: 3 or 4.
    ChannelsLast(usize),
    /// In the order of the first tensor's dimensions, as of a copy of it.
    LikeFirst,
    /// Channels innermost if all tensors have them innermost, as of `cat`.
    Joined,
    /// Column-major in the last two dimensions, whatever the operands' strides.
    ColumnMajor,
}

/// A role of an operator in code generation, which inserts the operator into graphs or replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `(tensor) -> number`: reads the element of a one-element tensor.
    Item,
    /// `(numbers, dtype, ...) -> tensor`: creates a tensor from a number or a list of numbers.
    TensorOf,
    /// `(tensor, dim, index) -> tensor`: a view of one slice.
    Select,
    /// `(tensor, indices) -> tensor`: elements at indices in tensors.
    Index,
    /// `(tensors, dim) -> tensor`: joins tensors along a new dimension.
    Stack,
    /// `(tensors, dim) -> tensor`: joins tensors along one of their dimensions.
    Concat,
}

/// The behaviour of an operator that reads a number from a tensor, or converts a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRead {
    /// The kind of the resulting number; `None` for the kind of the tensor's dtype.
    pub kind: Option<NumberKind>,
    /// Whether conversions of tensors with dimensions, and of other kinds than integers to integers, are refused.
    pub is_implicit: bool,
    /// The dtype that the number has to fit if the operand is itself a number; `None` for that of the result.
    pub scalar_limit: Option<DType>,
}

/// The kinds of numbers that an operator on numbers takes and returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberRule {
    /// Integers or floats. Both operands are converted to float if one is a float; the result is of that kind.
    Arithmetic,
    /// Integers or floats, converted to float. The result is a float.
    Quotient,
    /// Integers only, because no tensor operator follows Python's rules for floats. The result is an integer.
    Integers,
    /// Integers or floats. The result is a bool.
    Comparison,
    /// Bools, with a bool as the result.
    Logic,
}

/// The tensor operator that computes an operator on numbers, if the numbers are passed as zero-dimensional tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorVariant {
    /// The tensor operator. Its arguments after the numbers have their defaults.
    pub operator: &'static str,
    /// The overload of the tensor operator.
    pub overload: &'static str,
    /// The kinds of numbers for which both operators return equal results.
    pub rule: NumberRule,
}

/// The conversion of the scalar argument in an overload on a tensor and a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarConversion {
    /// To the common dtype of the tensor and the scalar. Integers wrap.
    Promoted,
    /// As [`ScalarConversion::Promoted`], but f16 and bf16 tensors are computed in f32 with the scalar as f32.
    Widened,
    /// As [`ScalarConversion::Widened`]. Without rounding, a quotient is computed in floats, to which integers are converted without wrapping.
    Quotient,
    /// To the tensor's dtype. A scalar that does not fit it raises.
    Stored,
}

/// The tensor overload that implements an overload on a tensor and a scalar, after conversion of the scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarVariant {
    /// The overload of the same operator with a tensor in place of the scalar; other arguments are the same.
    pub overload: &'static str,
    /// The index of the scalar argument.
    pub position: usize,
    /// The conversion of the scalar to a tensor.
    pub conversion: ScalarConversion,
}

/// Properties of an entry's semantics that both engines read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Strides of new results. By default [`ResultLayout::Elementwise`] for pointwise entries, else [`ResultLayout::AsComputed`].
    pub layout: Option<ResultLayout>,
    /// See [`Entry::fixed_sizes`].
    pub fixed_sizes: bool,
    /// See [`Entry::fills`].
    pub fills: bool,
    /// See [`Entry::returns_self`].
    pub returns_self: bool,
    /// See [`Entry::holds_elements`].
    pub holds_elements: bool,
    /// See [`Entry::affine_in_integers`].
    pub affine_in_integers: bool,
    /// See [`Entry::without_gradients`].
    pub without_gradients: bool,
    /// See [`Entry::constant_in_traces`].
    pub constant_in_traces: bool,
    /// See [`Entry::reads_number`].
    pub number_read: Option<&'static NumberRead>,
    /// See [`Entry::tensor_variant`].
    pub tensor_variant: Option<&'static TensorVariant>,
    /// See [`Entry::scalar_variant`].
    pub scalar_variant: Option<&'static ScalarVariant>,
    /// See [`Entry::role`].
    pub role: Option<Role>,
}

impl Traits {
    /// The default: no traits.
    const NONE: Traits = Traits {
        layout: None,
        fixed_sizes: false,
        fills: false,
        returns_self: false,
        holds_elements: false,
        affine_in_integers: false,
        without_gradients: false,
        constant_in_traces: false,
        number_read: None,
        tensor_variant: None,
        scalar_variant: None,
        role: None,
    };

    /// Returns the traits that `self` or `other` states; those of `self` have priority.
    #[must_use]
    pub fn or(self, other: Traits) -> Traits {
        Traits {
            layout: self.layout.or(other.layout),
            fixed_sizes: self.fixed_sizes || other.fixed_sizes,
            fills: self.fills || other.fills,
            returns_self: self.returns_self || other.returns_self,
            holds_elements: self.holds_elements || other.holds_elements,
            affine_in_integers: self.affine_in_integers || other.affine_in_integers,
            without_gradients: self.without_gradients || other.without_gradients,
            constant_in_traces: self.constant_in_traces || other.constant_in_traces,
            number_read: self.number_read.or(other.number_read),
            tensor_variant: self.tensor_variant.or(other.tensor_variant),
            scalar_variant: self.scalar_variant.or(other.scalar_variant),
            role: self.role.or(other.role),
        }
    }
}

/// Everything that a dialect states about an operator or an overload; see the [module documentation](self).
#[derive(Clone)]
pub struct Entry {
    pub(crate) semantics: Option<Semantics>,
    pub(crate) on_values: Option<KernelFn>,
    pub(crate) eager: Option<KernelFn>,
    pub(crate) traits: Traits,
    pub(crate) properties: Properties,
    pub(crate) aliases: &'static [(&'static str, AliasUse)],
}

impl Default for Entry {
    fn default() -> Entry {
        Entry::new()
    }
}

impl From<Semantics> for Entry {
    fn from(semantics: Semantics) -> Entry {
        Entry::of(Some(semantics), None)
    }
}

/// Constructors, one for each form of semantics.
impl Entry {
    const fn of(semantics: Option<Semantics>, on_values: Option<KernelFn>) -> Entry {
        Entry {
            semantics,
            on_values,
            eager: None,
            traits: Traits::NONE,
            properties: Properties::NONE,
            aliases: &[],
        }
    }

    /// Returns an entry without semantics: for the properties of one overload, or for an operator that cannot be run.
    pub const fn new() -> Entry {
        Entry::of(None, None)
    }

    /// Returns an entry with a scalar formula over broadcast operands.
    pub const fn pointwise(entry: Pointwise) -> Entry {
        Entry::of(Some(Semantics::Pointwise(entry)), None)
    }

    /// Returns an entry with a function that creates a program for a call site.
    pub const fn program(form: Form, build: ProgramFn) -> Entry {
        Entry::of(Some(Semantics::Program(form, Callback::Plain(build))), None)
    }

    /// Returns an entry with a Rust function on tensors and other values.
    pub const fn kernel(kernel: KernelFn) -> Entry {
        Entry::of(Some(Semantics::Kernel(Callback::Plain(kernel))), None)
    }

    /// Returns an entry with a Rust function for the overloads without tensors: on numbers, strings and containers. The overloads with tensors have the
    /// semantics of another row for the same operator.
    pub const fn on_values(kernel: KernelFn) -> Entry {
        Entry::of(None, Some(kernel))
    }
}

/// Builder methods for further properties.
impl Entry {
    /// Sets the kernel that the interpreter runs instead of this overload's program, if the result depends on strides (`clone` keeps them, `view` must not
    /// copy). It must return the same elements as the program.
    #[must_use]
    pub const fn eager(mut self, kernel: KernelFn) -> Entry {
        self.eager = Some(kernel);
        self
    }

    /// Sets the function for the overloads without tensors; see [`Entry::on_values`].
    #[must_use]
    pub const fn with_values(mut self, kernel: KernelFn) -> Entry {
        self.on_values = Some(kernel);
        self
    }

    /// States the strides of new results.
    #[must_use]
    pub const fn layout(mut self, layout: ResultLayout) -> Entry {
        self.traits.layout = Some(layout);
        self
    }

    /// States that the kernel changes none of its arguments and has predictable results. Their dtypes and sizes follow from those of the tensors among its
    /// arguments, and from the values of the others. Native code calls such kernels between compiled ones.
    #[must_use]
    pub const fn fixed_sizes(mut self) -> Entry {
        self.traits.fixed_sizes = true;
        self
    }

    /// States that all elements of the result are equal. So in place, unlike other operators, it may write to overlapping elements.
    #[must_use]
    pub const fn fills(mut self) -> Entry {
        self.traits.fills = true;
        self
    }

    /// States that the view returns the variable of its argument if there is nothing to do. Other views always return another variable, whose sizes and strides
    /// can change independently of the argument's.
    #[must_use]
    pub const fn returns_self(mut self) -> Entry {
        self.traits.returns_self = true;
        self
    }

    /// States that the operator on containers moves elements without reading them.
    #[must_use]
    pub const fn holds_elements(mut self) -> Entry {
        self.traits.holds_elements = true;
        self
    }

    /// States how results depend on integers. Let the integer arguments be affine functions of `t`, small enough for products of two, and each either
    /// non-negative for all `t` or negative for all. Then the result if it is an integer, and the offset and the sizes if it is a view, are polynomials in `t` of
    /// degree at most two, so they are affine if three of their values lie on a line. A view's strides do not depend on `t`. Where the operator does not raise
    /// for two values of `t`, it does not raise between them.
    #[must_use]
    pub const fn affine_in_integers(mut self) -> Entry {
        self.traits.affine_in_integers = true;
        self
    }

    /// States that results never require gradients, whatever the operands do; traces note it in types. An in-place form needs a row of its own for this.
    #[must_use]
    pub const fn without_gradients(mut self) -> Entry {
        self.traits.without_gradients = true;
        self
    }

    /// States that traces of source contain the result as a constant, because the operator copies numbers of Python, which are not traced (`torch.tensor`).
    #[must_use]
    pub const fn constant_in_traces(mut self) -> Entry {
        self.traits.constant_in_traces = true;
        self
    }

    /// States that the operator reads a number from a tensor, or converts one.
    #[must_use]
    pub const fn reads_number(mut self, read: &'static NumberRead) -> Entry {
        self.traits.number_read = Some(read);
        self
    }

    /// States which operator on tensors computes the overloads on numbers.
    #[must_use]
    pub const fn tensor_variant(mut self, variant: &'static TensorVariant) -> Entry {
        self.traits.tensor_variant = Some(variant);
        self
    }

    /// States which overload on tensors computes this overload on a tensor and a scalar.
    #[must_use]
    pub const fn scalar_variant(mut self, variant: &'static ScalarVariant) -> Entry {
        self.traits.scalar_variant = Some(variant);
        self
    }

    /// States the operator's role in code generation. One operator has each role.
    #[must_use]
    pub const fn role(mut self, role: Role) -> Entry {
        self.traits.role = Some(role);
        self
    }

    /// States that the operator draws random numbers.
    #[must_use]
    pub const fn random(mut self) -> Entry {
        self.properties.determinism = Determinism::Random;
        self
    }

    /// States that the operator draws random numbers unless the argument `switch`, a bool or a probability, is false or zero.
    #[must_use]
    pub const fn random_if(mut self, switch: &'static str) -> Entry {
        self.properties.determinism = Determinism::RandomIf(switch);
        self
    }

    /// States that the results depend on state outside of the program: the clock, a mode, uninitialised memory.
    #[must_use]
    pub const fn external(mut self) -> Entry {
        self.properties.determinism = Determinism::External;
        self
    }

    /// States that a call has an effect besides its results and writes, although the schema has results.
    #[must_use]
    pub const fn has_effects(mut self) -> Entry {
        self.properties.has_effects = true;
        self
    }

    /// States that the operator updates running statistics, operands 3 and 4, unless operand 5 is false. Its schema does not say so.
    #[must_use]
    pub const fn updates_statistics(mut self) -> Entry {
        self.properties.updates_statistics = true;
        self
    }

    /// States that the operator may return its first operand itself, although its schema does not say so.
    #[must_use]
    pub const fn may_return_operand(mut self) -> Entry {
        self.properties.may_return_operand = true;
        self
    }

    /// States that the result has the same rank as the first operand.
    #[must_use]
    pub const fn preserves_rank(mut self) -> Entry {
        self.properties.rank = ResultRank::FirstOperand;
        self
    }

    /// States the rank of the result.
    #[must_use]
    pub const fn rank(mut self, rank: ResultRank) -> Entry {
        self.properties.rank = rank;
        self
    }

    /// States that no call raises.
    #[must_use]
    pub const fn total(mut self) -> Entry {
        self.properties.totality = Totality::Total;
        self
    }

    /// States that no call of an overload without tensors raises.
    #[must_use]
    pub const fn total_on_values(mut self) -> Entry {
        self.properties.totality = Totality::TotalOnValues;
        self
    }

    /// States that the operator is an activation function, and the dtype of its result.
    #[must_use]
    pub const fn activation(mut self, activation: Activation) -> Entry {
        self.properties.activation = Some(activation);
        self
    }

    /// States which layout properties of its operands the operator reads.
    #[must_use]
    pub const fn observes(mut self, observes: Observes) -> Entry {
        self.properties.observes = observes;
        self
    }

    /// States other names of the operator, and where they are replaced. An alias and its in-place form have the operator's semantics, overload by overload.
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [(&'static str, AliasUse)]) -> Entry {
        self.aliases = aliases;
        self
    }
}

/// Getters.
impl Entry {
    /// Returns the semantics of overloads with tensors; `None` if there are none, or if they are defined in TorchScript
    /// source.
    pub fn semantics(&self) -> Option<&Semantics> {
        self.semantics.as_ref()
    }

    /// Returns whether the overloads without tensors have semantics of their own.
    pub fn is_on_values(&self) -> bool {
        self.on_values.is_some()
    }

    /// Returns whether the interpreter runs a kernel in place of the program.
    pub fn is_eager(&self) -> bool {
        self.eager.is_some()
    }

    /// Returns the properties of the semantics, which both engines read.
    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Returns the properties of the operator in analyses of graphs.
    pub fn properties(&self) -> Properties {
        self.properties
    }

    /// Returns other names of the operator, and the graphs in which they are replaced.
    pub fn alias_names(&self) -> &'static [(&'static str, AliasUse)] {
        self.aliases
    }

    /// Adds the properties of `other`, which override those of `self`.
    pub(crate) fn add(&mut self, other: Entry) {
        self.semantics = other.semantics.or(self.semantics.take());
        self.on_values = other.on_values.or(self.on_values);
        self.eager = other.eager.or(self.eager);
        self.traits = other.traits.or(self.traits);
        self.properties = other.properties.or(self.properties);
        if !other.aliases.is_empty() {
            self.aliases = other.aliases;
        }
    }
}
