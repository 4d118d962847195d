//! Code that is loaded once in a process for all functions with such kernels.

use super::Code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of symbols. When it is reached, all are forgotten: code that is still called stays loaded, and is loaded once more for the next function.
const MOST: usize = 1 << 14;

/// Loaded code by the symbols of its kernels, which identify the code. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LoadedObjects {
    by_symbol: Arc<Mutex<HashMap<String, Arc<Code>>>>,
}

impl LoadedObjects {
    /// Returns the code that defines `symbol`.
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
