//! The C interface: sequences of calls with handles, texts and numbers that an input chooses, NULL among them.
//!
//! By the rules of the interface, no call crashes or panics, an error comes without results, what is released is released once, and handles may be freed
//! in any order. The leak check of the address sanitizer detects memory that is not freed.

mod arguments;
mod callbacks;
mod machine;
mod table;
mod texts;

use super::choices::Choices;
use super::memory;
use machine::Machine;

/// Most calls of an input.
const CALLS: usize = 40;
/// Bytes that calls may use; larger tensors are refused.
const BYTES: usize = 64 << 20;

/// Calls functions.
///
/// # Panics
/// When one does not keep the rules.
pub fn run(input: &[u8]) {
    let mut machine = Machine::new(Choices::new(input));
    memory::refusing(BYTES, || {
        for _ in 0..CALLS {
            if !machine.choices.any_left() {
                break;
            }
            let (_, function) = machine.choices.pick(table::FUNCTIONS);
            function(&mut machine);
        }
    });
    machine.finish();
}

/// The names of the functions that are called.
pub fn functions() -> impl Iterator<Item = &'static str> {
    table::FUNCTIONS.iter().map(|(name, _)| *name)
}
