//! The identity of files, so that data derived from a file is reused only for the same content.

use std::fs::File;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
#[cfg(unix)]
use std::time::Duration;

/// Identity of a file's content: inode, size and times. A different identity means that the content may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    /// Modification time in seconds and nanoseconds.
    modified: (i64, i64),
    /// Time of the last change of content, name or permissions (ctime), which programs cannot set.
    changed: (i64, i64),
}

impl FileIdentity {
    /// Returns the identity of an open file. `None` if the system does not report enough, or if the file has just been changed: a second change within one
    /// tick of the file system's clock would not be visible.
    #[cfg(unix)]
    pub fn of(file: &File) -> Option<FileIdentity> {
        use std::os::unix::fs::MetadataExt;
        use std::time::UNIX_EPOCH;
        let found = file.metadata().ok()?;
        let changed = Duration::new(found.ctime().try_into().ok()?, found.ctime_nsec().try_into().ok()?);
        let is_settled = is_settled(changed, UNIX_EPOCH.elapsed().ok()?);
        (found.is_file() && is_settled).then(|| FileIdentity {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// Returns `None`: this system has no file identities.
    #[cfg(not(unix))]
    pub fn of(_: &File) -> Option<FileIdentity> {
        None
    }

    /// Calls `read`, which reads `file`, and returns its result with the identity of the file. The identity is `None` for a file that changed meanwhile,
    /// because the data may be a mixture of old and new content.
    pub fn while_reading<R>(file: &File, read: impl FnOnce() -> R) -> (Option<FileIdentity>, R) {
        let before = FileIdentity::of(file);
        let result = read();
        let after = before.as_ref().and_then(|_| FileIdentity::of(file));
        (before.filter(|before| Some(before) == after.as_ref()), result)
    }

    /// Returns the identity of the program or library that contains this code, so that code stored by another build is not used. `None` if it is unknown, or
    /// the file has been replaced since.
    #[cfg(target_os = "linux")]
    pub fn of_this_code() -> Option<FileIdentity> {
        let here = FileIdentity::of_this_code as fn() -> Option<FileIdentity> as usize;
        let maps = std::fs::read("/proc/self/maps").ok()?;
        FileIdentity::of(&File::open(mapped_at(&maps, here)?).ok()?)
    }

    /// Returns `None`: on this system, the file that contains this code is unknown, since it may be a library.
    #[cfg(not(target_os = "linux"))]
    pub fn of_this_code() -> Option<FileIdentity> {
        None
    }
}

/// Returns whether a modification at or after `now` would give the file a later time than `changed`, the time of its last modification.
#[cfg(unix)]
fn is_settled(changed: Duration, now: Duration) -> bool {
    /// An upper bound of the tick of any system's clock.
    const TICK: Duration = Duration::from_millis(50);
    /// An upper bound of the tick of file systems with a resolution of seconds.
    const COARSE_TICK: Duration = Duration::from_secs(2);
    let tick = if changed.subsec_nanos() == 0 { COARSE_TICK } else { TICK };
    now.checked_sub(changed).is_some_and(|age| age > tick)
}

/// Returns the file that is mapped at `address` according to `maps`, in the form of `/proc/self/maps`.
#[cfg(target_os = "linux")]
fn mapped_at(maps: &[u8], address: usize) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let contains = |range: &[u8]| {
        let (start, end) = std::str::from_utf8(range).ok()?.split_once('-')?;
        let parse = |text| usize::from_str_radix(text, 16).ok();
        Some((parse(start)?..parse(end)?).contains(&address))
    };
    // The fields of a line: range, permissions, offset, device, inode; then, after spaces, the path.
    let mut lines = maps.split(|&b| b == b'\n').map(|line| line.splitn(6, |&b| b == b' '));
    let rest = lines.find_map(|mut fields| contains(fields.next()?)?.then(|| fields.nth(4)))??;
    let path = rest.trim_ascii_start();
    // A deleted file has this suffix.
    let is_there = path.starts_with(b"/") && !path.ends_with(b" (deleted)");
    is_there.then(|| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn this_code_is_found_in_its_own_file() {
        let program = File::open(std::env::current_exe().unwrap()).unwrap();
        // The program may have been built just now.
        while FileIdentity::of(&program).is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(FileIdentity::of_this_code(), FileIdentity::of(&program));
        assert!(FileIdentity::of_this_code().is_some());
        let maps = b"55d0-55e0 r-xp 00000000 08:01 123        /usr/bin/python3\n\
            7f00-7f10 r--p 00000000 08:01 456   /usr/lib/with space/libfrazil_capi.so\n\
            7f10-7f20 r-xp 00001000 08:01 456   /usr/lib/with space/libfrazil_capi.so\n\
            7f30-7f40 r-xp 00000000 08:01 457   /usr/lib/old.so (deleted)\n\
            7f50-7f60 rw-p 00000000 00:00 0 \n\
            7f60-7f70 r-xp 00000000 00:00 0     [vdso]\n";
        let found = |address| mapped_at(maps, address).map(|path| path.display().to_string());
        assert_eq!(found(0x55d0).as_deref(), Some("/usr/bin/python3"));
        for inside in [0x7f00, 0x7f10, 0x7f1f] {
            assert_eq!(found(inside).as_deref(), Some("/usr/lib/with space/libfrazil_capi.so"));
        }
        for none in [0x10, 0x7f20, 0x7f35, 0x7f55, 0x7f65] {
            assert_eq!(found(none), None);
        }
    }

    #[test]
    fn files_without_fractions_of_seconds_settle_later() {
        let at = Duration::from_millis;
        assert!(!is_settled(at(5001), at(5040)) && is_settled(at(5001), at(5100)));
        assert!(!is_settled(at(5000), at(5999)) && !is_settled(at(5000), at(7000)) && is_settled(at(5000), at(7001)));
        assert!(!is_settled(at(5001), at(4000)));
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "old").unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let file = File::open(&path).unwrap();
        let (known, text) = FileIdentity::while_reading(&file, || std::fs::read_to_string(&path).unwrap());
        assert!(known.is_some() && text == "old");
        // Also if it looks settled again afterwards.
        for pause in [0, 100] {
            let (known, ()) = FileIdentity::while_reading(&file, || {
                let mut same = File::options().write(true).open(&path).unwrap();
                same.write_all(b"new").unwrap();
                std::thread::sleep(Duration::from_millis(pause));
            });
            assert_eq!(known, None);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
