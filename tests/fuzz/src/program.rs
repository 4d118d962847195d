//! Programs as text, for targets that do something with them, in a session with all operators.

use frazil::{Limits, Loaded, Session};
use frazil_syntax::sniff;
use std::cell::RefCell;
use std::path::Path;

/// Inputs that share a session. Registering all operators takes longer than most inputs, and the names that inputs bring pile up in it.
const INPUTS: u32 = 200;

thread_local! {
    static SESSION: RefCell<(Session, u32)> = RefCell::new((limited(), 0));
}

/// A session for untrusted input.
fn limited() -> Session {
    Session::new().with_limits(Limits::untrusted())
}

/// A session that some other inputs have used.
pub fn session() -> Session {
    SESSION.with_borrow_mut(|(session, uses)| {
        *uses += 1;
        if *uses > INPUTS {
            *session = limited();
            *uses = 1;
        }
        session.clone()
    })
}

/// The first line of an input, and the program behind it.
pub fn split(input: &[u8]) -> (&[u8], &str) {
    let end = input.iter().position(|b| *b == b'\n').unwrap_or(input.len());
    let program = input.get(end + 1..).unwrap_or_default();
    let valid = match std::str::from_utf8(program) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&program[..error.valid_up_to()]).unwrap_or_default(),
    };
    (&input[..end], valid)
}

/// Reads `.ir` text or TorchScript source; `None` where it has mistakes.
pub fn load(session: &Session, text: &str) -> Option<Loaded> {
    let loaded = match sniff(text) {
        // A path at which there is no file, so that no tensors are looked for beside it.
        Some(_) => session.load_bytes(Path::new("/nowhere/input.ir"), text.as_bytes().to_vec()),
        None => session.script(Path::new("input.py"), text, &[]),
    };
    match loaded {
        Ok(loaded) => Some(loaded),
        Err(error) => {
            drop(error.to_string());
            None
        }
    }
}
