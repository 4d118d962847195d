//! The log of an engine's compilations.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Diagnostics on compiled and refused methods, and the time spent on compiling.
#[derive(Default)]
pub(crate) struct Record(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    notes: Vec<String>,
    compile_time: Duration,
}

/// Maximum number of notes. Further ones are dropped, so that calls of always new shapes take no memory.
const MOST_NOTES: usize = 10_000;

impl Entries {
    fn add(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(note);
        }
    }
}

impl Record {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, note: String) {
        self.entries().add(note);
    }

    /// Adds `note`, unless it has already been added.
    pub(crate) fn note_once(&self, note: String) {
        let mut entries = self.entries();
        if !entries.notes.contains(&note) {
            entries.add(note);
        }
    }

    pub(crate) fn add_time(&self, time: Duration) {
        self.entries().compile_time += time;
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.entries().notes.clone()
    }

    pub(crate) fn compile_time(&self) -> Duration {
        self.entries().compile_time
    }
}
