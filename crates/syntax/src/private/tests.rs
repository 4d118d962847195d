//! Tests of private folders.

use super::*;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

fn put(folder: &PrivateFolder, text: &str) -> io::Result<bool> {
    folder.write("entry", |file| file.write_all(text.as_bytes()).map(|()| true))
}

fn get(folder: &PrivateFolder) -> Option<String> {
    String::from_utf8(folder.read("entry", 100).ok()?).ok()
}

/// Simulates a process that was killed while it wrote.
#[test]
fn leftovers_of_dead_processes_are_removed_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let folder = PrivateFolder::new(&path);
    assert!(put(&folder, "old").unwrap());
    fs::write(path.join(".frazil-dead"), "half").unwrap();
    let other = PrivateFolder::new(&path);
    let written = other.write("entry", |file| {
        // Files that another process is writing are kept.
        assert!(put(&PrivateFolder::new(&path), "between").unwrap());
        file.write_all(b"new").map(|()| true)
    });
    assert!(written.unwrap());
    assert_eq!(get(&folder).as_deref(), Some("new"));
    let names: Vec<_> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["entry"]);
}

/// Others may delete files, and the folder, at any time.
#[test]
fn a_folder_that_is_deleted_meanwhile_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let folder = PrivateFolder::new(&path);
    let written = folder.write("entry", |file| {
        fs::remove_dir_all(&path)?;
        file.write_all(b"lost").map(|()| true)
    });
    assert!(!written.unwrap() && !path.exists());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let _ = fs::remove_dir_all(&path);
            }
        });
        let failure = (0..2000).find_map(|_| put(&folder, "new").err());
        is_done.store(true, Ordering::Relaxed);
        assert!(failure.is_none(), "{failure:?}");
    });
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn fifo(path: &Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
}

#[test]
fn files_are_private_and_come_back() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a/b");
    let folder = PrivateFolder::new(path.join("."));
    assert_eq!(get(&folder), None);
    assert!(!path.exists());
    assert!(put(&folder, "one").unwrap());
    assert_eq!(get(&folder).as_deref(), Some("one"));
    assert_eq!([mode(&path), mode(&path.join("entry"))], [0o700, 0o600]);
    assert!(put(&folder, "two").unwrap());
    assert_eq!(get(&folder).as_deref(), Some("two"));
    assert!(!folder.write("entry", |_| Ok(false)).unwrap());
    folder.write("entry", |_| Err(io::Error::other("no"))).unwrap_err();
    assert_eq!(get(&folder).as_deref(), Some("two"));
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    assert!(folder.read("entry", 2).is_err());
    for name in ["", ".", "..", "a/b", "/entry", "entry/"] {
        assert!(folder.open(name).is_err(), "{name}");
    }
}

/// Planted links, FIFOs and folders are not followed, waited for or written to.
#[test]
fn planted_links_fifos_and_folders_are_no_entries() {
    let parent = tempfile::tempdir().unwrap();
    let victim = parent.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    set_mode(&victim, 0o600);
    let path = parent.path().join("cache");
    let folder = PrivateFolder::new(&path);
    folder.prepare().unwrap();
    let entry = path.join("entry");
    symlink(&victim, &entry).unwrap();
    assert_eq!(get(&folder), None);
    assert!(put(&folder, "code").unwrap());
    assert_eq!(get(&folder).as_deref(), Some("code"));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    fs::remove_file(&entry).unwrap();
    fifo(&entry);
    assert_eq!(get(&folder), None);
    assert!(put(&folder, "code").unwrap());
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    assert_eq!(get(&folder), None);
    put(&folder, "code").unwrap_err();
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);

    // The same for the folder itself.
    fs::remove_dir(&entry).unwrap();
    put(&folder, "code").unwrap();
    let link = parent.path().join("link");
    symlink(&path, &link).unwrap();
    for text in ["", "/", "/."] {
        let through = PrivateFolder::new(format!("{}{text}", link.display()));
        assert_eq!(get(&through), None);
        let error = put(&through, "other").unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }
    fifo(&parent.path().join("fifo"));
    for name in ["fifo", "victim"] {
        let wrong = PrivateFolder::new(parent.path().join(name));
        wrong.prepare().unwrap_err();
        assert_eq!(get(&wrong), None);
    }
    assert_eq!(get(&folder).as_deref(), Some("code"));
}

#[test]
fn what_others_may_write_to_is_not_read() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("cache");
    let folder = PrivateFolder::new(&path);
    put(&folder, "code").unwrap();
    for mode in [0o777, 0o720, 0o702, 0o1777] {
        set_mode(&path, mode);
        assert_eq!(get(&folder), None, "{mode:o}");
        let error = put(&folder, "other").unwrap_err().to_string();
        assert!(error.contains("may write") && error.contains("delete"), "{error}");
    }
    set_mode(&path, 0o755);
    for (mode, expected) in [(0o666, None), (0o620, None), (0o602, None), (0o644, Some("code"))] {
        set_mode(&path.join("entry"), mode);
        assert_eq!(get(&folder).as_deref(), expected, "{mode:o}");
    }
}

/// The test runs in a child process, because the mask belongs to the whole process.
#[test]
fn masks_take_nothing() {
    const PARENT: &str = "FRAZIL_TEST_FOLDER";
    if let Some(parent) = std::env::var_os(PARENT) {
        let folder = PrivateFolder::new(Path::new(&parent).join("a/b/cache"));
        put(&folder, "code").unwrap();
        assert_eq!(get(&folder).as_deref(), Some("code"));
        return;
    }
    for mask in ["0000", "0022", "0177", "0400", "0700", "0777"] {
        let parent = tempfile::tempdir().unwrap();
        let (program, name) = (std::env::current_exe().unwrap(), "private::tests::masks_take_nothing");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("umask {mask}; exec \"$@\""), "sh"]);
        // Root is not restricted by modes.
        if rustix::process::geteuid().is_root() {
            let is_there = std::process::Command::new("setpriv").arg("--version").output();
            if is_there.is_err() {
                eprintln!("not tested as root: there is no `setpriv`");
                return;
            }
            chown(parent.path(), Some(65534), None).unwrap();
            shell.args(["setpriv", "--reuid=65534", "--clear-groups"]);
        }
        let output = shell
            .arg(&program)
            .args(["--exact", name])
            .env(PARENT, parent.path())
            .output();
        let output = output.unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{mask}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(text.contains("1 passed"), "{text}");
        let path = parent.path().join("a/b/cache");
        for folder in ["a", "a/b", "a/b/cache"] {
            assert_eq!(mode(&parent.path().join(folder)), 0o700, "{mask} {folder}");
        }
        assert_eq!(mode(&path.join("entry")), 0o600, "{mask}");
    }
}

/// Only root can change the owner of files, so other users skip the test.
#[test]
fn files_of_others_are_not_read() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("cache");
    let folder = PrivateFolder::new(&path);
    put(&folder, "code").unwrap();
    chown(path.join("entry"), Some(12345), None).unwrap();
    assert_eq!(get(&folder), None);
    chown(path.join("entry"), Some(0), None).unwrap();
    assert_eq!(get(&folder).as_deref(), Some("code"));
    chown(&path, Some(12345), None).unwrap();
    assert_eq!(get(&folder), None);
    let error = put(&folder, "other").unwrap_err().to_string();
    assert!(error.contains("belongs to user 12345"), "{error}");
    assert_eq!(fs::read_to_string(path.join("entry")).unwrap(), "code");
}

#[test]
fn only_regular_files_are_read_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link, pipe] = ["file", "link", "pipe"].map(|name| folder.path().join(name));
    fs::write(&file, "text").unwrap();
    symlink(&file, &link).unwrap();
    fifo(&pipe);
    assert_eq!(read_regular(&link, 4).unwrap(), b"text");
    assert!(read_regular(&link, 3).is_err());
    assert!(read_regular(&pipe, 4).is_err());
    assert!(read_regular(Path::new("/dev/zero"), 4).is_err());
    assert!(read_regular(folder.path(), 4).is_err());
}
