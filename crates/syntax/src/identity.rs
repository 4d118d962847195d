//! Which file something came from, so exactly that what was made of it can be kept for the next time.

use std::fs::File;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
#[cfg(unix)]
use std::time::Duration;

/// A file and its state: another number, size or time is another content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    /// When content, name or permissions changed last; programs cannot set this one.
    changed: (i64, i64),
}

impl FileIdentity {
    /// The identity of an open file. `None` where the system does not tell enough, and for files that were changed just now: within one tick
    /// of the file system's clock they could change again and look the same.
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

    /// The identity of an open file: not known here.
    #[cfg(not(unix))]
    pub fn of(_: &File) -> Option<FileIdentity> {
        None
    }

    /// What `read`, which reads `file`, gives, and the identity of the very file that was read. `None` for one that changed meanwhile: what was read may be of
    /// its old content, of its new one, or of both.
    pub fn while_reading<R>(file: &File, read: impl FnOnce() -> R) -> (Option<FileIdentity>, R) {
        let before = FileIdentity::of(file);
        let result = read();
        let after = before.as_ref().and_then(|_| FileIdentity::of(file));
        (before.filter(|before| Some(before) == after.as_ref()), result)
    }

    /// The identity of the file that this very code was loaded from, a program or a library: what another build keeps is not for this one. `None` where it is
    /// not known, or has been replaced since.
    #[cfg(target_os = "linux")]
    pub fn of_this_code() -> Option<FileIdentity> {
        let here = FileIdentity::of_this_code as fn() -> Option<FileIdentity> as usize;
        let maps = std::fs::read("/proc/self/maps").ok()?;
        FileIdentity::of(&File::open(mapped_at(&maps, here)?).ok()?)
    }

    /// The identity of the file that this code was loaded from: not known here, since it may be a library.
    #[cfg(not(target_os = "linux"))]
    pub fn of_this_code() -> Option<FileIdentity> {
        None
    }
}

/// Whether a file that changed at `changed` looks another one after a change at `now` or later.
#[cfg(unix)]
fn is_settled(changed: Duration, now: Duration) -> bool {
    /// Longer than any system's tick.
    const TICK: Duration = Duration::from_millis(50);
    /// As long as the longest tick of a file system that counts whole seconds.
    const COARSE_TICK: Duration = Duration::from_secs(2);
    let tick = if changed.subsec_nanos() == 0 { COARSE_TICK } else { TICK };
    now.checked_sub(changed).is_some_and(|age| age > tick)
}

/// The file that is mapped at `address` according to `maps`, which has the form of `/proc/self/maps`.
#[cfg(target_os = "linux")]
fn mapped_at(maps: &[u8], address: usize) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let contains = |range: &[u8]| {
        let (start, end) = std::str::from_utf8(range).ok()?.split_once('-')?;
        let parse = |text| usize::from_str_radix(text, 16).ok();
        Some((parse(start)?..parse(end)?).contains(&address))
    };
    // Range, permissions, offset, device, inode; then, behind some spaces, the path.
    let mut lines = maps.split(|&b| b == b'\n').map(|line| line.splitn(6, |&b| b == b' '));
    let rest = lines.find_map(|mut fields| contains(fields.next()?)?.then(|| fields.nth(4)))??;
    let path = rest.trim_ascii_start();
    // One that is not there any more has this behind its name.
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
        // It may have been built this very moment.
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
        // Also where it looks settled again afterwards.
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
