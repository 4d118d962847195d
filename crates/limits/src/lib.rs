//! Budgets for input from strangers: how much memory and time may go into reading, transforming and running it, and how large what comes of it may be.
//!
//! [`Limits`] says how much is allowed. A [`Budget`] is what is left of it while one [`Phase`] of the work runs: it belongs to the threads that
//! [entered](Budget::enter) it, and code that works on the input asks it from time to time with [`check`], [`check_nodes`] and their like. They cost next to
//! nothing on a thread without a budget, and never fail there.
//!
//! A budget may be [interruptible](Budget::interruptible): then a check of the caller's ends the work, as a limit that is exceeded does. A thread that
//! waits for others does so on a [`Latch`], and calls the check meanwhile.
//!
//! Where a limit is exceeded, every later check fails too, so that the work ends soon, and [`Budget::finish`] says which limit it was.
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
pub use limits::{Limits, LimitsError};
pub use waiting::{Finishing, Latch};
