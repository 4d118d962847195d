//! What the integration tests share: where things stand, recorded cases and how they are run, and how results are compared.

pub mod case;
pub mod compare;
pub mod expectations;
pub mod frozen;
pub mod pages;
pub mod runner;
pub mod value;
pub mod workspace;
