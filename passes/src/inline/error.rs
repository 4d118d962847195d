//! Errors of inlining.

/// Maximum number of nodes of a graph after inlining. Otherwise, calls that double at every level would exhaust memory.
pub(super) const MAX_NODES: usize = 20_000_000;

/// The reason why calls cannot be inlined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InlineError {
    /// A function calls itself, directly or through other functions.
    #[error("function '{function}' is called recursively ({}). Recursive calls are not supported", chain.join(" -> "))]
    Recursive {
        /// Qualified name of the recursive function.
        function: String,
        /// Qualified names in the chain of calls that leads back to the function.
        chain: Vec<String>,
    },
    /// A call has another number of operands than its callee has inputs.
    #[error(
        "{caller} calls {callee} with {given} arguments where {wanted} are wanted{}",
        at(place)
    )]
    Arguments {
        /// Qualified name of the calling function.
        caller: String,
        /// Qualified name of the called function.
        callee: String,
        /// Number of operands of the call.
        given: usize,
        /// Number of inputs of the callee.
        wanted: usize,
        /// Source location of the call.
        place: Option<String>,
    },
    /// A call refers to a method that its class does not have.
    #[error("class {class} has no method '{method}'{}", at(place))]
    NoMethod {
        /// Qualified name of the class.
        class: String,
        /// Name of the method.
        method: String,
        /// Source location of the call.
        place: Option<String>,
    },
    /// The graph with inlined calls would have too many nodes.
    #[error("inlining makes a graph of more than {MAX_NODES} nodes")]
    TooLarge,
    /// The graph with inlined calls would exceed the budget.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
}

fn at(place: &Option<String>) -> String {
    place.as_ref().map_or(String::new(), |p| format!(" at {p}"))
}
