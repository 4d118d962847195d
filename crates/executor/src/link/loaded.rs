//! Loaded code that all functions of a process share.

use super::Code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of symbols. Beyond it, all symbols are removed from the table. Code in use stays loaded, and functions that are loaded later load the same
/// code again.
const MOST: usize = 1 << 14;

/// Loaded code, keyed by the symbols of its kernels. A symbol identifies the code. Clones share the table.
#[derive(Clone, Debug, Default)]
pub struct LoadedObjects {
    by_symbol: Arc<Mutex<HashMap<String, Arc<Code>>>>,
}

impl LoadedObjects {
    /// Returns the code that defines `symbol`, if it has been loaded.
    pub fn get(&self, symbol: &str) -> Option<Arc<Code>> {
        self.lock().get(symbol).cloned()
    }

    /// Adds `code`, which defines `symbols`.
    pub fn add(&self, code: &Arc<Code>, symbols: impl IntoIterator<Item = String>) {
        let mut by_symbol = self.lock();
        for symbol in symbols {
            if by_symbol.len() >= MOST {
                by_symbol.clear();
            }
            by_symbol.insert(symbol, Arc::clone(code));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Code>>> {
        self.by_symbol.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
