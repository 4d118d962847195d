//! Errors of inlining.

/// Maximum number of nodes of a graph after inlining. Otherwise, calls that double at every level would exhaust memory.
pub(super) const MAX_NODES: usize = 20_000_000;

/// The reason why calls cannot be inlined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InlineError {
    /// A function calls itself, directly or through others.
    #[error("function '{function}' is called recursively ({}). Recursive calls are not supported", chain.join(" -> "))]
    Recursive {
        /// Qualified name.
        function: String,
        /// The chain of calls.
        chain: Vec<String>,
    },
    /// A call does not fit its callee.
    #[error(
        "{caller} calls {callee} with {given} arguments where {wanted} are wanted{}",
        at(place)
    )]
    Arguments {
        /// Qualified name.
        caller: String,
        /// Qualified name.
        callee: String,
        /// Number of operands.
        given: usize,
        /// Number of inputs.
        wanted: usize,
        /// Source location of the call.
        place: Option<String>,
    },
    /// A class has no such method.
    #[error("class {class} has no method '{method}'{}", at(place))]
    NoMethod {
        /// Qualified name of the class.
        class: String,
        /// Name of the method.
        method: String,
        /// Source location of the call.
        place: Option<String>,
    },
    /// The resulting graph would be too large.
    #[error("inlining makes a graph of more than {MAX_NODES} nodes")]
    TooLarge,
    /// The resulting graph would exceed the budget.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
}

fn at(place: &Option<String>) -> String {
    place.as_ref().map_or(String::new(), |p| format!(" at {p}"))
}
