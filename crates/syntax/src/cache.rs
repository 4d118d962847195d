//! Folders of caches: [private files](PrivateFolder) that are authenticated by a secret of the user, and bounded in bytes.
//!
//! - The secret is 32 random bytes in a file of the folder, which the first writer creates. Files are [sealed](Secret::seal) with it. A file that was sealed
//!   with another secret is treated as absent: one that was copied from another folder, for example. The secret is read for each access, since another
//!   process may delete the folder.
//! - The modification time of a file is the time of its last use, to within an hour ([`record_use`]). A file whose modification time must not change
//!   has a *note* beside it, whose time counts for both.
//! - If the folder has more bytes than its bound when a file is written, the files whose last use is longest ago are removed first. Processes that have opened
//!   them keep them.

use crate::output::temporary::PREFIX;
use crate::private::{Listed, PrivateFolder};
use crate::sealed::{SECRET_BYTES, Secret};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tracing::warn;

/// Name of the file of the secret.
const SECRET: &str = "secret";
/// The name of a file's note is the name of the file with this ending.
pub const NOTE_ENDING: &str = ".verified";
/// Start of the kinds of all sealed files. Files that start with other bytes are not removed.
const KIND_START: &[u8] = b"FRAZIL";
/// Minimum number of hexadecimal digits at the start of the names of files.
const MIN_DIGITS: usize = 16;
/// The time of use is recorded with this precision, so that most reads write nothing.
const USE_PRECISION: Duration = Duration::from_hours(1);
/// Once a process has written the bound divided by this number, it determines the size of the folder again. So each process exceeds the bound by at most this
/// part.
const CHECKS: u64 = 64;
/// Eviction frees the bound divided by this number in addition to the excess, so that the next writes evict nothing.
const FREED: u64 = 8;
/// Maximum number of attempts to create a secret that other processes delete.
const ATTEMPTS: usize = 100;

/// A folder of a cache; see the [module's documentation](self). It is created on the first write.
#[derive(Clone, Debug)]
pub struct CacheFolder {
    folder: PrivateFolder,
    max_bytes: u64,
    /// Bytes that this folder and its clones have written since the size of the folder was determined.
    unchecked: Arc<AtomicU64>,
    /// Whether a warning about a failure to store has been emitted, by this folder or a clone of it.
    has_failed: Arc<AtomicBool>,
}

/// A file with its note, for eviction.
struct Entry {
    last_use: SystemTime,
    files: Vec<Listed>,
}

impl CacheFolder {
    /// Returns the folder at `path` with at most `max_bytes` bytes, without accessing it.
    pub fn new(path: impl Into<PathBuf>, max_bytes: u64) -> CacheFolder {
        CacheFolder {
            folder: PrivateFolder::new(path),
            max_bytes,
            // The first write determines the size.
            unchecked: Arc::new(AtomicU64::new(u64::MAX / 2)),
            has_failed: Arc::default(),
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Creates the folder if there is none, and checks that it may be used.
    ///
    /// # Errors
    /// The errors of [`PrivateFolder::prepare`].
    pub fn prepare(&self) -> io::Result<()> {
        self.folder.prepare()
    }

    /// Opens the file `name` for reading, and returns it with the secret that it is sealed with.
    ///
    /// # Errors
    /// The errors of [`PrivateFolder::open`], for the file and for the secret.
    pub fn open(&self, name: &str) -> io::Result<(File, Secret)> {
        let file = self.folder.open(name)?;
        Ok((file, self.secret()?))
    }

    /// Replaces the file `name` by the output of `write`, which seals it with the secret that it gets. Returns false and changes nothing if `write` returns
    /// false, if the file is larger than the bound, or if another process deletes the folder meanwhile. The name consists of at least 16 hexadecimal digits and
    /// an ending.
    ///
    /// # Errors
    /// If it is no such name; also the errors of [`PrivateFolder::write`].
    pub fn write(&self, name: &str, write: impl FnOnce(&mut File, &Secret) -> io::Result<bool>) -> io::Result<bool> {
        if !is_entry(name) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let secret = self.secret_or_new()?;
        self.folder.write(name, |file| {
            if !write(file, &secret)? {
                return Ok(false);
            }
            let bytes = file.metadata()?.len();
            if bytes > self.max_bytes {
                return Ok(false);
            }
            self.make_room(bytes);
            Ok(true)
        })
    }

    /// Writes a file as [`CacheFolder::write`] does, without returning errors. The first failure of this folder and its clones is logged as a warning.
    pub fn keep(&self, name: &str, write: impl FnOnce(&mut File, &Secret) -> io::Result<bool>) {
        if let Err(e) = self.write(name, write)
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            let folder = self.path().display();
            warn!(target: "frazil::cache", "compiled code is not kept in {folder}: {e}");
        }
    }

    fn secret(&self) -> io::Result<Secret> {
        let bytes = self.folder.read(SECRET, SECRET_BYTES as u64)?;
        Secret::from_bytes(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns the secret, which is created if there is none, and replaced if it is damaged or others may know it. All files that were sealed with a replaced secret
    /// are absent.
    fn secret_or_new(&self) -> io::Result<Secret> {
        let mut attempts = 0;
        loop {
            let e = match self.secret() {
                Ok(secret) => return Ok(secret),
                Err(e) if attempts == ATTEMPTS => return Err(e),
                Err(e) => e,
            };
            attempts += 1;
            let new = Secret::random()?;
            match e.kind() {
                io::ErrorKind::NotFound => self.folder.create(SECRET, new.bytes())?,
                _ => drop(
                    self.folder
                        .write(SECRET, |file| io::Write::write_all(file, new.bytes()).map(|()| true))?,
                ),
            }
        }
    }

    /// Evicts files if the folder, which includes the temporary file of `bytes` bytes that is being written, is over its bound.
    fn make_room(&self, bytes: u64) {
        let before = self.unchecked.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.max_bytes / CHECKS {
            self.unchecked.store(0, Ordering::Relaxed);
            self.evict();
        }
    }

    fn evict(&self) {
        // A folder that cannot be listed is not bounded.
        let mut files = self.folder.list().unwrap_or_default();
        files.retain(|file| is_entry(&file.name) || file.name.starts_with(PREFIX));
        let mut left: u64 = files.iter().map(|file| file.bytes).sum();
        if left <= self.max_bytes {
            return;
        }
        let mut entries: HashMap<String, Entry> = HashMap::new();
        for file in files.into_iter().filter(|file| is_entry(&file.name)) {
            let name = file.name.strip_suffix(NOTE_ENDING).unwrap_or(&file.name);
            let entry = entries.entry(name.to_owned()).or_insert_with(|| Entry {
                last_use: file.modified,
                files: Vec::new(),
            });
            entry.last_use = entry.last_use.max(file.modified);
            entry.files.push(file);
        }
        let mut entries: Vec<Entry> = entries.into_values().collect();
        entries.sort_by_key(|entry| entry.last_use);
        let mut entries = entries.into_iter();
        while left > self.max_bytes - self.max_bytes / FREED
            && let Some(entry) = entries.next()
        {
            for file in entry.files {
                // A file that has been used or replaced since the folder was listed stays.
                if self.folder.remove(&file, KIND_START) {
                    left -= file.bytes;
                }
            }
        }
    }
}

/// Records that a file of a cache was used now. A failure is ignored: in a folder of another user, which is not written to, nothing is recorded.
pub fn record_use(file: &File) {
    let age = file.metadata().and_then(|found| found.modified());
    let age = age.ok().and_then(|modified| modified.elapsed().ok());
    if age.is_none_or(|age| age > USE_PRECISION) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Returns whether a name is one of a cache's files: hexadecimal digits and at least one ending. Only such files are counted and removed.
fn is_entry(name: &str) -> bool {
    let mut parts = name.split('.');
    let is_hash = |digits: &str| digits.len() >= MIN_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let is_ending = |ending: &str| !ending.is_empty() && ending.bytes().all(|b| b.is_ascii_lowercase());
    parts.next().is_some_and(is_hash) && parts.clone().next().is_some() && parts.all(is_ending)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealed::read_sealed;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    const KIND: &[u8; 8] = b"FRAZILT1";
    /// The size in bytes of each file that [`put`] writes.
    const FILE_BYTES: u64 = 1000;

    fn name(number: u64) -> String {
        format!("{number:016x}.o")
    }

    fn put(folder: &CacheFolder, number: u64) -> bool {
        let contents = vec![number as u8; FILE_BYTES as usize - crate::SEAL_BYTES];
        let write = |file: &mut File, secret: &Secret| {
            file.write_all(&secret.seal(KIND, &[&contents]))?;
            Ok(true)
        };
        folder.write(&name(number), write).unwrap()
    }

    fn get(folder: &CacheFolder, number: u64) -> Option<u8> {
        let (mut file, secret) = folder.open(&name(number)).ok()?;
        let bytes = read_sealed(KIND, &mut file, FILE_BYTES, FILE_BYTES)?;
        let first = *secret.unseal(KIND, &bytes)?.first()?;
        record_use(&file);
        Some(first)
    }

    /// Sets the time of the last use of a file.
    fn used_hours_ago(path: &Path, hours: u64) {
        let file = File::open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(hours))
            .unwrap();
    }

    fn present(folder: &CacheFolder) -> Vec<u64> {
        (0..100).filter(|&n| folder.path().join(name(n)).exists()).collect()
    }

    #[test]
    fn files_of_another_secret_are_absent() {
        let directory = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| CacheFolder::new(directory.path().join(name), 1 << 20));
        for folder in [&one, &two] {
            assert_eq!(get(folder, 1), None);
            assert!(put(folder, 1) && get(folder, 1) == Some(1));
            let secret = fs::metadata(folder.path().join(SECRET)).unwrap();
            assert_eq!((secret.len(), secret.permissions().mode() & 0o7777), (32, 0o600));
        }
        fs::copy(two.path().join(name(1)), one.path().join(name(1))).unwrap();
        assert_eq!(get(&one, 1), None);
        assert!(put(&one, 1) && get(&one, 1) == Some(1));
        // Without the secret nothing can be verified. The next write creates another one.
        let old = fs::read(one.path().join(SECRET)).unwrap();
        fs::remove_file(one.path().join(SECRET)).unwrap();
        assert_eq!(get(&one, 1), None);
        assert!(put(&one, 2));
        assert_eq!((get(&one, 1), get(&one, 2)), (None, Some(2)));
        assert_ne!(fs::read(one.path().join(SECRET)).unwrap(), old);
    }

    #[test]
    fn unusable_secrets_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path().join("cache"), 1 << 20);
        assert!(put(&folder, 1));
        let path = folder.path().join(SECRET);
        let damages: [&dyn Fn(); 4] = [
            &|| fs::write(&path, "short").unwrap(),
            &|| fs::write(&path, [0; 33]).unwrap(),
            &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap(),
            &|| {
                fs::rename(&path, directory.path().join("elsewhere")).unwrap();
                std::os::unix::fs::symlink("../elsewhere", &path).unwrap();
            },
        ];
        for damage in damages {
            assert_eq!(get(&folder, 1), Some(1));
            damage();
            assert_eq!(get(&folder, 1), None);
            assert!(put(&folder, 1));
        }
        assert_eq!(fs::symlink_metadata(path).unwrap().len(), 32);
    }

    #[test]
    fn racing_writers_agree_on_a_secret() {
        for _ in 0..20 {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("cache");
            let barrier = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for number in 0..8 {
                    let (path, barrier) = (&path, &barrier);
                    scope.spawn(move || {
                        let folder = CacheFolder::new(path, 1 << 20);
                        barrier.wait();
                        assert!(put(&folder, number));
                    });
                }
            });
            let folder = CacheFolder::new(&path, 1 << 20);
            assert!((0..8).all(|number| get(&folder, number) == Some(number as u8)));
            assert_eq!(fs::read_dir(path).unwrap().count(), 9);
        }
    }

    #[test]
    fn the_least_recently_used_files_are_evicted() {
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path().join("cache"), 4 * FILE_BYTES);
        let path = |number| folder.path().join(name(number));
        for number in 1..=4 {
            assert!(put(&folder, number));
            used_hours_ago(&path(number), 10 - number);
        }
        // Reading one makes it the most recent one.
        assert_eq!(get(&folder, 1), Some(1));
        assert_eq!(present(&folder), [1, 2, 3, 4]);
        assert!(put(&folder, 5));
        assert_eq!(present(&folder), [1, 4, 5]);
        assert!(put(&folder, 6));
        used_hours_ago(&path(4), 0);
        used_hours_ago(&path(1), 2);
        used_hours_ago(&path(5), 3);
        assert!(put(&folder, 7));
        assert_eq!(present(&folder), [4, 6, 7]);
        // The note of a file says when it was used, and goes with it.
        used_hours_ago(&path(4), 9);
        let note = folder.path().join(name(4) + NOTE_ENDING);
        fs::write(&note, KIND).unwrap();
        fs::set_permissions(&note, fs::Permissions::from_mode(0o600)).unwrap();
        used_hours_ago(&path(6), 1);
        used_hours_ago(&path(7), 2);
        assert!(put(&folder, 8));
        assert_eq!(present(&folder), [4, 6, 8]);
        used_hours_ago(&note, 5);
        assert!(put(&folder, 9));
        assert_eq!(present(&folder), [6, 8, 9]);
        assert!(!note.exists());
    }

    #[test]
    fn a_use_is_recorded_once_an_hour() {
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path().join("cache"), 1 << 20);
        assert!(put(&folder, 1));
        let path = folder.path().join(name(1));
        let modified = || fs::metadata(&path).unwrap().modified().unwrap();
        used_hours_ago(&path, 2);
        let old = modified();
        assert_eq!(get(&folder, 1), Some(1));
        let recorded = modified();
        assert!(recorded > old + Duration::from_mins(110));
        File::open(&path)
            .unwrap()
            .set_modified(recorded - Duration::from_mins(30))
            .unwrap();
        assert_eq!(get(&folder, 1), Some(1));
        assert!(modified() < recorded);
    }

    /// Files that no cache wrote are neither counted nor removed.
    #[test]
    fn other_files_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path(), 4 * FILE_BYTES);
        let others = ["notes.o", "0123.o", "0123456789abcdef", "0123456789abcdeg.o"];
        for other in others {
            fs::write(directory.path().join(other), vec![b'x'; 5000]).unwrap();
        }
        // It has such a name, and another content. Its bytes count.
        let named = directory.path().join("0123456789abcdef.o");
        fs::write(&named, [b'x'; FILE_BYTES as usize]).unwrap();
        fs::set_permissions(&named, fs::Permissions::from_mode(0o600)).unwrap();
        for number in 1..=20 {
            assert!(put(&folder, number));
            assert_eq!(get(&folder, number), Some(number as u8));
        }
        assert!((2..=3).contains(&present(&folder).len()));
        assert!(others.iter().all(|other| directory.path().join(other).exists()));
        assert_eq!(fs::read(named).unwrap(), [b'x'; FILE_BYTES as usize]);
        for wrong in ["a.o", "secret", "0123456789abcdef", "../0123456789abcdef.o"] {
            assert!(folder.write(wrong, |_, _| Ok(true)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_above_the_bound_are_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path().join("cache"), FILE_BYTES - 1);
        assert!(!put(&folder, 1));
        assert_eq!(present(&folder), [0; 0]);
    }

    #[test]
    fn the_bound_holds_with_many_writers_and_deletions() {
        const BOUND: u64 = 50 * FILE_BYTES;
        const WRITERS: u64 = 4;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache");
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                    entries.take(2).for_each(|entry| drop(fs::remove_file(entry.path())));
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let path = &path;
                    scope.spawn(move || {
                        let folder = CacheFolder::new(path, BOUND);
                        for round in 0..200 {
                            put(&folder, writer * 200 + round);
                        }
                    })
                })
                .collect();
            let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            is_done.store(true, Ordering::Relaxed);
            assert!(results.iter().all(Result::is_ok));
        });
        // Writers that check at the same time do not count one another's last file.
        let files = PrivateFolder::new(&path).list().unwrap();
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        assert!(bytes <= BOUND + WRITERS * FILE_BYTES, "{bytes}");
        assert!(files.iter().all(|file| !file.name.starts_with(PREFIX)));
    }
}
