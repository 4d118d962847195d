//! Archives: what loads can be saved and printed, and both come back as the same.
//!
//! Inputs are those of the target `archive`.

use super::{archive, program};
use frazil::{Loaded, Model, SaveOptions, Session};

/// Loads an archive, saves and prints it, and reads both.
///
/// # Panics
/// When one is refused, or differs when it is written again.
pub fn run(input: &[u8]) {
    let Some(bytes) = archive::bytes_of(input) else {
        return;
    };
    let session = program::session();
    let Some(model) = model(&session, bytes) else { return };
    let options = SaveOptions::default();
    // A module that no archive can hold is refused with the reason.
    if let Ok(once) = model.save_bytes(&options) {
        let again = session.load_bytes("again.pt".as_ref(), once.clone());
        let again = again.unwrap_or_else(|error| panic!("a saved archive is refused: {error}"));
        let again = again.model("saved").expect("archives hold modules");
        let twice = again.save_bytes(&options);
        let twice = twice.unwrap_or_else(|error| panic!("a saved archive cannot be saved: {error}"));
        assert!(once == twice, "saving is not stable");
    }
    let once = Loaded::Model(model).ir_text(None);
    let again = session.load_bytes("/nowhere/printed.ir".as_ref(), once.clone().into_bytes());
    let again = again.unwrap_or_else(|error| panic!("printed text does not read back: {error}\n{once}"));
    let twice = again.ir_text(None);
    assert!(once == twice, "printing is not stable:\n{once}\n{twice}");
}

fn model(session: &Session, bytes: Vec<u8>) -> Option<Model> {
    match session.load_bytes("input.pt".as_ref(), bytes).ok()? {
        Loaded::Model(model) => Some(model),
        Loaded::Graphs(_) => None,
    }
}
