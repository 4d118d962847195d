//! Budgets for untrusted input: how much memory and time reading, transforming and running it may take, and how large the results may be.
//!
//! [`Limits`] contains the limits. A [`Budget`] is the remainder while one [`Phase`] of the work runs: it belongs to the threads that
//! [entered](Budget::enter) it, and code that works on the input checks it at intervals with [`check`], [`check_nodes`] and similar functions. On a thread
//! without a budget, these are almost free and never fail.
//!
//! A budget may be [interruptible](Budget::interruptible): then a check of the caller ends the work, like an exceeded limit. A thread that waits for
//! others waits on a [`Latch`], which calls the check meanwhile.
//!
//! Once a limit is exceeded, every later check fails too, so that the work ends soon, and [`Budget::finish`] returns the limit.
//!
//! ```
//! use frazil_limits::{Budget, Limits, Phase, check_nodes};
//!
//! let limits: Limits = "untrusted,nodes=1000".parse()?;
//! let budget = Budget::new(&limits, Phase::Load);
//! let _entered = budget.enter();
//! assert!(check_nodes(1000).is_ok());
//! let exceeded = check_nodes(1001).unwrap_err();
//! assert_eq!(exceeded.to_string(), "the limit nodes=1000 is exceeded: graphs of 1001 nodes");
//! assert_eq!(budget.exceeded(), Some(&exceeded));
//! # Ok::<(), frazil_limits::LimitsError>(())
//! ```
#![forbid(unsafe_code)]

mod budget;
mod limits;
mod memory;
mod waiting;

pub use budget::{
    Budget, Entered, Exceeded, Held, PAUSE, Phase, charge, check, check_elements, check_memory, check_nodes,
    check_repetitions, hold, most_nodes, most_repetitions, polls,
};
pub use limits::{Limits, LimitsError, parse_bytes};
pub use waiting::{Finishing, Latch};
