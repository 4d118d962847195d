//! Append-only interning into a bump arena.
//!
//! An [`Interner`] stores each distinct value once, assigns dense `u32` numbers, and returns references without a lock. Values are `Copy` data, or slices and
//! strings of `Copy` data. The bounds of [`Internable`] exclude values with a destructor at compile time.
//!
//! This is the only crate below the code generator that contains `unsafe`: one lifetime extension, whose soundness is argued in `Table::push`.

use bumpalo::Bump;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A type that can be stored in an [`Interner`]: `str`, and slices of `Copy` data.
pub trait Internable: Hash + Eq {
    /// Copies `self` into `bump`.
    fn copy_into<'a>(&self, bump: &'a Bump) -> &'a Self;
}

impl Internable for str {
    fn copy_into<'a>(&self, bump: &'a Bump) -> &'a str {
        bump.alloc_str(self)
    }
}

impl<T: Copy + Hash + Eq> Internable for [T] {
    fn copy_into<'a>(&self, bump: &'a Bump) -> &'a [T] {
        bump.alloc_slice_copy(self)
    }
}

/// Number of entries in the first bucket of a [`Table`]; bucket `i` has `FIRST << i` entries.
const FIRST: u32 = 64;
/// Number of buckets, enough for every `u32` number.
const BUCKETS: usize = 27;

/// A slot is written once and then only read.
type Slot<T> = OnceLock<&'static T>;

/// An append-only map from numbers to references, readable without a lock while it grows. Its buckets have doubling lengths and are never moved.
struct Table<T: ?Sized + 'static> {
    buckets: [OnceLock<Box<[Slot<T>]>>; BUCKETS],
}

impl<T: ?Sized> Table<T> {
    fn new() -> Self {
        Table {
            buckets: [const { OnceLock::new() }; BUCKETS],
        }
    }

    /// Returns the bucket of entry `id` and its index in the bucket.
    fn position(id: u32) -> (usize, usize) {
        let n = u64::from(id) + u64::from(FIRST);
        let bucket = 63 - n.leading_zeros() - FIRST.trailing_zeros();
        (bucket as usize, (n - (u64::from(FIRST) << bucket)) as usize)
    }

    fn get(&self, id: u32) -> Option<&T> {
        let (bucket, index) = Self::position(id);
        self.buckets.get(bucket)?.get()?.get(index)?.get().copied()
    }

    /// Writes entry `id`.
    ///
    /// # Safety
    /// `value` must stay valid for as long as this table can be read.
    unsafe fn push(&self, id: u32, value: &T) {
        let (bucket, index) = Self::position(id);
        let slots =
            self.buckets[bucket].get_or_init(|| (0..(FIRST as usize) << bucket).map(|_| OnceLock::new()).collect());
        // SAFETY: only the lifetime changes, and `get` shortens it again to that of the table; the caller keeps the referent
        // alive for that long.
        let value: &'static T = unsafe { std::mem::transmute::<&T, &'static T>(value) };
        let fresh = slots[index].set(value).is_ok();
        debug_assert!(fresh, "an entry is written once");
    }
}

struct Writer {
    bump: Bump,
    numbers: HashTable<u32>,
    len: u32,
}

/// Stores each distinct `T` once, and numbers them in the order of their first appearance.
///
/// It is `Sync`: threads may intern and read at the same time. Reading needs no lock.
pub struct Interner<T: ?Sized + 'static> {
    // Declared before `writer`, so dropped before the arena that it points into (it has no destructor that would read
    // it).
    table: Table<T>,
    hasher: DefaultHashBuilder,
    writer: Mutex<Writer>,
}

impl<T: ?Sized + Internable> Interner<T> {
    /// Returns an empty interner.
    pub fn new() -> Self {
        let writer = Writer {
            bump: Bump::new(),
            numbers: HashTable::new(),
            len: 0,
        };
        Interner {
            table: Table::new(),
            hasher: DefaultHashBuilder::default(),
            writer: Mutex::new(writer),
        }
    }

    /// Returns the number of `value`, which is copied into the arena if it is new.
    ///
    /// # Panics
    /// After 2³² - 2 distinct values.
    pub fn intern(&self, value: &T) -> u32 {
        let hash = self.hasher.hash_one(value);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |&id: &u32| self.table.get(id).is_some_and(|v| v == value);
        if let Some(&id) = writer.numbers.find(hash, is_it) {
            return id;
        }
        let id = writer.len;
        assert!(id < u32::MAX - 1, "the interner is full");
        let copy = value.copy_into(&writer.bump);
        // SAFETY: the copy lives in the arena that this interner owns and neither resets nor moves the contents of; the table
        // cannot be read after the interner is gone.
        unsafe { self.table.push(id, copy) };
        writer.len += 1;
        let rehash = |&id: &u32| self.table.get(id).map_or(0, |v| self.hasher.hash_one(v));
        writer.numbers.insert_unique(hash, id, rehash);
        id
    }

    /// Returns the number of `value` if it has been interned.
    pub fn find(&self, value: &T) -> Option<u32> {
        let hash = self.hasher.hash_one(value);
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer
            .numbers
            .find(hash, |&id| self.table.get(id).is_some_and(|v| v == value))
            .copied()
    }

    /// Returns the value with number `id`.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.table.get(id)
    }

    /// Returns the number of distinct values.
    pub fn len(&self) -> usize {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).len as usize
    }

    /// Returns true if no value has been interned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: ?Sized + Internable> Default for Interner<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_get_equal_numbers() {
        let i = Interner::<str>::new();
        let (a, b) = (i.intern("a"), i.intern("b"));
        assert_ne!(a, b);
        assert_eq!(i.intern("a"), a);
        assert_eq!(i.get(b), Some("b"));
        assert_eq!(i.get(2), None);
        assert_eq!(i.find("b"), Some(b));
        assert_eq!(i.find("c"), None);
    }

    #[test]
    fn references_survive_growth() {
        let i = Interner::<[u32]>::new();
        let first = i.intern(&[7, 8]);
        let kept = i.get(first).unwrap();
        // Miri is slow, so it interns fewer values; these are enough to grow the tables several times.
        let count = if cfg!(miri) { 300 } else { 10_000 };
        for n in 0..count {
            assert_eq!(i.intern(&[n]), n + 1);
        }
        assert_eq!(kept, [7, 8]);
        assert!((0..count).all(|n| i.get(n + 1) == Some(&[n][..])));
        assert_eq!(i.len(), count as usize + 1);
    }

    #[test]
    fn threads_agree_on_numbers() {
        let i = Interner::<str>::new();
        let count = if cfg!(miri) { 50 } else { 500 };
        let numbers: Vec<Vec<u32>> = std::thread::scope(|s| {
            let work = || (0..count).map(|n| i.intern(&format!("v{n}"))).collect();
            let handles: Vec<_> = (0..4).map(|_| s.spawn(work)).collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        assert!(numbers.iter().all(|n| *n == numbers[0]));
        assert_eq!(i.len(), count);
    }
}
