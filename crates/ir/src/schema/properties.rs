//! Properties of operators that their schemas do not state, and alternative names.
//!
//! The dialects' entries state them once. The catalogue stores them for code without access to entries (front ends, passes on schemas alone).

use crate::SymbolId;

/// Whether calls of an operator with equal operands return equal results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Determinism {
    /// Results are equal, except for an operator with a `Generator` argument, which draws random numbers.
    #[default]
    Deterministic,
    /// The operator draws random numbers.
    Random,
    /// The operator draws random numbers unless this argument, a bool or a probability, is false or zero.
    RandomIf(&'static str),
    /// The results depend on state outside of the program: the clock, a mode, uninitialised memory.
    External,
}

/// The layout properties of a tensor, besides its dtype, sizes and elements, on which an operator's results depend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Observes {
    /// The entry states nothing. Passes over graphs must assume that results depend on the storage; both engines run the operator as one that reads elements.
    #[default]
    Unstated,
    /// Nothing: the elements of the results for a copy of the tensor with other strides are the same.
    Elements,
    /// The order of the dimensions in memory, and whether there are gaps.
    Order,
    /// The strides themselves.
    Strides,
    /// The storage, or the offset in it: results distinguish a view from a copy with the same strides.
    Storage,
}

/// The rank of an operator's result, if it follows from the operands without their elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResultRank {
    /// The entry states nothing.
    #[default]
    Unstated,
    /// The rank of the first operand.
    FirstOperand,
    /// The maximum of the ranks of all operands that are tensors: they are broadcast.
    Broadcast,
    /// The same rank for all operands.
    Fixed(usize),
    /// The length of the operand with this index, which is a list of sizes.
    LengthOf(usize),
}

/// The operands for which a call of an operator returns and does not raise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Totality {
    /// The entry states nothing: any call may raise.
    #[default]
    Partial,
    /// No call of an overload without tensors raises.
    TotalOnValues,
    /// No call raises.
    Total,
}

/// The dtype of an activation function's result for an integer operand. It decides whether the function can be computed in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// The dtype of the operand, or an error.
    KeepsDtype,
    /// The default floating-point dtype.
    PromotesIntegers,
}

/// Properties of an operator that its schema does not state. The properties of `x` hold for its in-place form `x_` too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// Whether results depend on operands alone.
    pub determinism: Determinism,
    /// Whether a call has an effect besides its results and writes, although the schema has results.
    pub has_effects: bool,
    /// Whether the operator updates running statistics (operands 3 and 4) unless operand 5 is false.
    pub updates_statistics: bool,
    /// Whether the operator may return its first operand itself, which the schema does not say.
    pub may_return_operand: bool,
    /// The rank of the result.
    pub rank: ResultRank,
    /// The calls that cannot raise.
    pub totality: Totality,
    /// Set if the operator is an activation function, which is computed for each element of its first operand.
    pub activation: Option<Activation>,
    /// The properties of its operands' memory layout on which results depend.
    pub observes: Observes,
}

impl Properties {
    /// The properties of an operator that has none besides its schema.
    pub const NONE: Properties = Properties {
        determinism: Determinism::Deterministic,
        has_effects: false,
        updates_statistics: false,
        may_return_operand: false,
        rank: ResultRank::Unstated,
        totality: Totality::Partial,
        activation: None,
        observes: Observes::Unstated,
    };

    /// Returns the union of the properties. The determinism, rank and activation of `self` have priority.
    #[must_use]
    pub fn or(self, other: Properties) -> Properties {
        Properties {
            determinism: match self.determinism {
                Determinism::Deterministic => other.determinism,
                stated => stated,
            },
            has_effects: self.has_effects || other.has_effects,
            updates_statistics: self.updates_statistics || other.updates_statistics,
            may_return_operand: self.may_return_operand || other.may_return_operand,
            rank: match self.rank {
                ResultRank::Unstated => other.rank,
                stated => stated,
            },
            totality: self.totality.max(other.totality),
            activation: self.activation.or(other.activation),
            observes: self.observes.max(other.observes),
        }
    }
}

/// The graphs in which an alias name is replaced by the operator's own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AliasUse {
    /// In no graphs: both names remain, with the same semantics.
    Semantics,
    /// In normalised graphs.
    Normalised,
    /// In graphs that the front end compiles.
    Compiled,
    /// In normalised graphs and in compiled graphs.
    Everywhere,
}

/// The target of an alias name: the operator it stands for, and where it is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The operator's own name.
    pub operator: SymbolId,
    /// The graphs in which the alias is replaced.
    pub used: AliasUse,
}

impl Alias {
    /// Returns whether normalised graphs have the operator's own name.
    pub fn is_normalised(self) -> bool {
        matches!(self.used, AliasUse::Normalised | AliasUse::Everywhere)
    }

    /// Returns whether compiled graphs have the operator's own name.
    pub fn is_compiled(self) -> bool {
        matches!(self.used, AliasUse::Compiled | AliasUse::Everywhere)
    }
}
