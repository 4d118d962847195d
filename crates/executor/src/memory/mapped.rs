//! Mapped files, and the handling of files that another process truncates.
//!
//! Linux sends SIGBUS to a thread that reads a page of a mapping whose file has become shorter, and no check before the read can prevent that. So while
//! files are mapped, a handler of that signal replaces the missing page by zeros and records that it did, and the thread continues. Users of the bytes
//! check [`MappedFile::is_unchanged`] before they return a result, which also detects bytes that were overwritten.
//!
//! Other signals are passed to the previous handler.

use memmap2::Mmap;
use std::fs::{File, Metadata};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// A mapped file; see the [module's documentation](self).
#[derive(Debug)]
pub(crate) struct MappedFile {
    // Dropped before the map.
    watched: system::Watched,
    map: Mmap,
    file: File,
    /// When its content was changed last, before it was mapped.
    modified: Option<SystemTime>,
    has_changed: AtomicBool,
}

impl MappedFile {
    /// Maps `file`, which was as `found` says when its bytes were verified. Returns the file if the system refuses, or if too many files
    /// are mapped for this one to be watched.
    pub fn new(file: File, found: &Metadata) -> Result<MappedFile, File> {
        // SAFETY: the file may be written to and shortened by others. Missing pages are replaced, and the bytes are numbers for kernels, for which every
        // value is valid.
        let Ok(map) = (unsafe { Mmap::map(&file) }) else {
            return Err(file);
        };
        let Some(watched) = system::watch(&map) else {
            return Err(file);
        };
        Ok(MappedFile {
            watched,
            map,
            file,
            modified: found.modified().ok(),
            has_changed: AtomicBool::new(false),
        })
    }

    /// All of it, as it was when it was mapped.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Returns whether all bytes that were read so far were those of the file as it was mapped. Its name and permissions may have changed.
    pub fn is_unchanged(&self) -> bool {
        if self.has_changed.load(Ordering::Relaxed) {
            return false;
        }
        let is_same = |found: Metadata| found.len() == self.map.len() as u64 && found.modified().ok() == self.modified;
        let is_unchanged = !self.watched.is_damaged() && self.file.metadata().is_ok_and(is_same);
        if !is_unchanged {
            self.has_changed.store(true, Ordering::Relaxed);
        }
        is_unchanged
    }
}

#[cfg(target_os = "linux")]
mod system {
    use crate::memory::PAGE;
    use std::ffi::{c_int, c_void};
    use std::mem::MaybeUninit;
    use std::sync::Once;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Files that can be mapped at once.
    const MOST: usize = 256;

    /// The addresses of a mapped file.
    struct Range {
        /// 0 where there is none.
        start: AtomicUsize,
        end: AtomicUsize,
        is_damaged: AtomicBool,
    }

    /// Of the process, as handlers of signals are.
    static RANGES: [Range; MOST] = [const {
        Range {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_damaged: AtomicBool::new(false),
        }
    }; MOST];
    /// The previous handler of the signal.
    static FORMER: OnceLock<libc::sigaction> = OnceLock::new();

    /// A range that is watched until this is dropped.
    #[derive(Debug)]
    pub struct Watched(usize);

    impl Watched {
        /// Returns whether a page was missing.
        pub fn is_damaged(&self) -> bool {
            RANGES[self.0].is_damaged.load(Ordering::Acquire)
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            RANGES[self.0].end.store(0, Ordering::Release);
            RANGES[self.0].start.store(0, Ordering::Release);
        }
    }

    /// Watches the addresses of `bytes`; `None` where there are too many ranges.
    pub fn watch(bytes: &[u8]) -> Option<Watched> {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(install);
        let start = bytes.as_ptr().addr();
        let slot = RANGES.iter().position(|range| {
            let taken = range
                .start
                .compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok()
        })?;
        RANGES[slot].is_damaged.store(false, Ordering::Release);
        RANGES[slot].end.store(start + bytes.len(), Ordering::Release);
        Some(Watched(slot))
    }

    fn install() {
        // SAFETY: `sigaction` fills the structures, for which zeros are valid; the handler has the form that SA_SIGINFO asks for and calls only
        // functions that handlers may call.
        unsafe {
            let mut former = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut former) != 0 || FORMER.set(former).is_err() {
                return;
            }
            let mut own = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            own.sa_sigaction = handle as *const () as usize;
            own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(libc::SIGBUS, &raw const own, std::ptr::null_mut());
        }
    }

    extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the system passes the signal's description, and `errno` belongs to the thread.
        unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            let is_replaced = (*info).si_code > 0 && replace((*info).si_addr().addr());
            *errno = before;
            if !is_replaced {
                pass_on(signal, info, context);
            }
        }
    }

    /// Puts zeros at the page of `address`, if that is in a range.
    fn replace(address: usize) -> bool {
        let contains = |range: &&Range| {
            let start = range.start.load(Ordering::Acquire);
            start != 0 && (start..range.end.load(Ordering::Acquire)).contains(&address)
        };
        let Some(range) = RANGES.iter().find(contains) else {
            return false;
        };
        range.is_damaged.store(true, Ordering::Release);
        let page = (address / PAGE * PAGE) as *mut c_void;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the page belongs to a mapped file that is in use; its bytes are not there any more, and are only read.
        unsafe { libc::mmap(page, PAGE, libc::PROT_READ, flags, -1, 0) != libc::MAP_FAILED }
    }

    /// Does what would have been done without this handler.
    unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the former handler has the form that its flags say. By default the signal ends the process, which it does when the thread
        // repeats what it did, or at once if it was sent.
        unsafe {
            let former = FORMER.get();
            match former.map_or(libc::SIG_DFL, |former| former.sa_sigaction) {
                libc::SIG_IGN if (*info).si_code <= 0 => {}
                libc::SIG_DFL | libc::SIG_IGN => {
                    libc::signal(signal, libc::SIG_DFL);
                    if (*info).si_code <= 0 {
                        libc::raise(signal);
                    }
                }
                handler if former.is_some_and(|former| former.sa_flags & libc::SA_SIGINFO != 0) => {
                    type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
                    std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
                }
                handler => {
                    std::mem::transmute::<usize, unsafe extern "C" fn(c_int)>(handler)(signal);
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Nothing is watched here, so nothing is mapped.
    #[derive(Debug)]
    pub enum Watched {}

    impl Watched {
        pub fn is_damaged(&self) -> bool {
            match *self {}
        }
    }

    pub fn watch(_: &[u8]) -> Option<Watched> {
        None
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::memory::PAGE;
    use std::io::Write;

    fn map(file: &File) -> Option<MappedFile> {
        MappedFile::new(file.try_clone().unwrap(), &file.metadata().unwrap()).ok()
    }

    fn file(pages: u8) -> File {
        let mut file = tempfile::tempfile().unwrap();
        for page in 0..pages {
            file.write_all(&[page + 1; PAGE]).unwrap();
        }
        file
    }

    #[test]
    fn missing_pages_are_zeros_and_are_noticed() {
        let (file, other) = (file(8), file(2));
        let (map, second) = (map(&file).unwrap(), map(&other).unwrap());
        assert!(map.bytes()[7 * PAGE] == 8 && map.is_unchanged());
        file.set_len(3 * PAGE as u64).unwrap();
        let read = |page: usize| map.bytes()[page * PAGE + 5];
        assert_eq!([0, 1, 2, 3, 5, 7].map(read), [1, 2, 3, 0, 0, 0]);
        assert!(!map.is_unchanged());
        // Bytes that come back do not make results right that were computed without them.
        file.set_len(8 * PAGE as u64).unwrap();
        assert!(!map.is_unchanged());
        assert!(second.is_unchanged() && second.bytes()[PAGE] == 2);
        drop(map);
        assert!(second.is_unchanged());
    }

    #[test]
    fn bytes_that_are_overwritten_are_noticed() {
        use std::os::unix::fs::FileExt;
        let file = file(4);
        let map = map(&file).unwrap();
        assert!(map.is_unchanged());
        std::thread::sleep(std::time::Duration::from_millis(20));
        file.write_all_at(&[9], 5).unwrap();
        assert!(!map.is_unchanged());
    }

    #[test]
    fn more_files_than_are_watched_are_not_mapped() {
        let one = file(1);
        let maps: Vec<_> = (0..300).map(|_| map(&one)).collect();
        let mapped = maps.iter().flatten().count();
        assert!((200..=256).contains(&mapped), "{mapped}");
        assert!(maps.last().unwrap().is_none());
        drop(maps);
        assert!(map(&one).is_some());
    }
}
