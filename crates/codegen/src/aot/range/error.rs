//! Errors of making libraries for ranges of sizes.

use frazil_executor::LoadError;
use frazil_planner::LowerError;
use frazil_planner::kernel::KernelSpec;
use frazil_runtime::memory::OutOfMemory;

/// Error of making a library for ranges of sizes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// A range has no sizes, or negative ones.
    #[error("the range {low}..{high} of {name} is not a range of sizes: expected 0 <= LOW <= HIGH")]
    Bounds {
        /// The name of the size.
        name: String,
        /// The lower bound.
        low: i64,
        /// The upper bound.
        high: i64,
    },
    /// Two ranges have the same name.
    #[error("{0} has two ranges")]
    TwoRanges(String),
    /// The name of a size cannot be part of the macro names in the generated C header.
    #[error("`{0}` is not a name of a size: expected capital letters, digits and underscores, a letter first")]
    Name(String),
    /// A size of an input has a name without a range.
    #[error("the size {0} has no range: give one, such as {0}=1..512")]
    NoRange(String),
    /// No input has a size with the name of this range.
    #[error("no input has the size {0}, which has a range")]
    NoInput(String),
    /// There are too many combinations of sizes.
    #[error(
        "the ranges have {points} combinations of sizes; each is planned, and at most {most} are supported: choose smaller ranges"
    )]
    TooManyPoints {
        /// The number of combinations.
        points: usize,
        /// The largest supported number of combinations.
        most: usize,
    },
    /// The function cannot be planned for some sizes.
    #[error("for {sizes}: {source}")]
    Lower {
        /// The sizes.
        sizes: String,
        /// The planner's error.
        source: Box<LowerError>,
    },
    /// The plan for some sizes is invalid.
    #[error("for {sizes}: {source}")]
    Plan {
        /// The sizes.
        sizes: String,
        /// The reason.
        source: Box<LoadError>,
    },
    /// The plan for some sizes has runtime calls, which a library cannot run.
    #[error("for {sizes}, these operators run in this program only, not in a library:{operators}")]
    RuntimeCalls {
        /// The sizes.
        sizes: String,
        /// The operators, each on a line of its own.
        operators: String,
    },
    /// Something other than the sizes of inputs and outputs differs between two plans, such as a dtype or a rank.
    #[error("{what}, for {first} and {here}: only sizes may change")]
    Changing {
        /// A clause that says what changes.
        what: String,
        /// The sizes of the first plan.
        first: String,
        /// The sizes of the other plan.
        here: String,
    },
    /// There are too many different sequences of kernels, that is, too many forms.
    #[error("the sizes need more than {0} different sequences of kernels: choose smaller ranges")]
    TooManyForms(usize),
    /// There are too many different kernels.
    #[error("the sizes need {codes} different kernels, more than {most}: choose smaller ranges")]
    TooManyCodes {
        /// The number of kernels.
        codes: usize,
        /// The largest supported number of kernels.
        most: usize,
    },
    /// The tables of integers are too large.
    #[error("the tables of the library take {bytes} bytes, more than {most}: choose smaller ranges")]
    LargeTables {
        /// Size of the tables, in bytes.
        bytes: usize,
        /// The largest supported size, in bytes.
        most: usize,
    },
    /// A plan refers to a constant or a kernel that it does not have. This is a bug of the planner.
    #[error("the plan for {0} is inconsistent")]
    Inconsistent(String),
    /// An integer that varies with the sizes is a constant in the code of a kernel. This is a bug of the planner.
    #[error(
        "the code of the kernel `{0}` does not serve all sizes: an integer that depends on the sizes is a constant"
    )]
    NotAnArgument(String),
    /// The allocation of memory for constants failed.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

impl RangeError {
    /// Returns [`RangeError::NotAnArgument`] for the code of `kernel`, which also runs for kernels of other sizes.
    pub(super) fn not_an_argument(kernel: &KernelSpec) -> RangeError {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = kernel.describe(&mut text);
        RangeError::NotAnArgument(text.trim().to_owned())
    }

    /// Returns the error for runtime calls of these operators.
    pub(super) fn runtime_calls(sizes: String, operators: &[String]) -> RangeError {
        let operators = operators.iter().map(|o| format!("\n  {o}")).collect();
        RangeError::RuntimeCalls { sizes, operators }
    }
}
