//! The tools as processes.

mod cache;
mod calls;
mod start;
mod turns;
