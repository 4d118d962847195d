//! Tables of bounded size in bytes: the entries that have not been used for the longest time are dropped.

use lru::LruCache;
use std::hash::Hash;

/// Maximum size of the entries of a table in bytes, unless a single entry is larger. It suffices for the plans of hundreds of shapes of a large model, and of
/// thousands of shapes of a small one.
const MOST_BYTES: usize = 16 << 20;

/// A table that drops its least recently used entries while all entries together have more than [`MOST_BYTES`] bytes.
pub(crate) struct Recent<K: Hash + Eq, V> {
    /// The values, each with its size in bytes.
    entries: LruCache<K, (V, usize)>,
    bytes: usize,
}

impl<K: Hash + Eq, V> Default for Recent<K, V> {
    fn default() -> Self {
        Recent {
            entries: LruCache::unbounded(),
            bytes: 0,
        }
    }
}

impl<K: Hash + Eq, V> Recent<K, V> {
    /// Returns the value for `key`, and makes it the most recently used one.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|(value, _)| value)
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.entries.contains(key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// Adds an entry of `bytes` bytes. An entry with the same key is replaced.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.remove(&key);
        self.entries.push(key, (value, bytes));
        self.bytes += bytes;
        self.drop_oldest();
    }

    /// Sets the size of an entry in bytes.
    pub(crate) fn resize(&mut self, key: &K, bytes: usize) {
        if let Some((_, counted)) = self.entries.get_mut(key) {
            self.bytes = self.bytes - *counted + bytes;
            *counted = bytes;
            self.drop_oldest();
        }
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Some((_, bytes)) = self.entries.pop(key) {
            self.bytes -= bytes;
        }
    }

    fn drop_oldest(&mut self) {
        while self.bytes > MOST_BYTES && self.entries.len() > 1 {
            let oldest = self.entries.pop_lru();
            self.bytes -= oldest.map_or(0, |(_, (_, bytes))| bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entries_used_last_stay() {
        let mut recent = Recent::default();
        let part = MOST_BYTES / 4;
        for key in 0..4 {
            recent.insert(key, key, part);
        }
        assert_eq!(recent.get_mut(&0), Some(&mut 0));
        recent.insert(4, 4, part);
        assert_eq!(recent.keys().copied().collect::<Vec<_>>(), [4, 0, 3, 2]);
        recent.resize(&2, 2 * part);
        assert_eq!(recent.keys().copied().collect::<Vec<_>>(), [2, 4, 0]);
        recent.insert(0, 5, part);
        recent.remove(&4);
        assert_eq!(recent.bytes, 3 * part);
        // The last one stays, whatever its size.
        recent.insert(9, 9, 2 * MOST_BYTES);
        assert!(recent.contains(&9) && recent.entries.len() == 1);
        recent.insert(10, 10, 1);
        assert!(recent.contains(&10) && recent.bytes == 1);
    }
}
