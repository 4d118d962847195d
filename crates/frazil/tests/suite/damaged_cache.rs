//! After any modification of the files of a cache, results are right and nothing crashes: damaged files are ignored.

#![cfg(all(feature = "codegen", unix))]

use frazil::{EngineOptions, SaveOptions, Session, Tensor, Value};
use frazil_syntax::{CacheFolder, SEAL_BYTES};
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const DAMAGES: usize = 2000;

/// A pseudorandom sequence (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn range(&mut self, n: usize) -> std::ops::Range<usize> {
        let (a, b) = (self.below(n + 1), self.below(n + 1));
        a.min(b)..a.max(b)
    }

    /// Returns `bytes` with one damage; `others` are the contents of the other files in the folder.
    fn damage(&mut self, bytes: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
        let mut new = bytes.to_vec();
        let range = self.range(new.len());
        let other = &others[self.below(others.len())];
        match self.below(12) {
            0 => new[self.below(bytes.len())] ^= 1 << self.below(8),
            1 => new[self.below(bytes.len())] = self.next() as u8,
            // Near the start, where lengths are stored.
            2 => new[self.below(bytes.len().min(200))] ^= 1 << self.below(8),
            3 => new.truncate(range.start),
            4 => new.truncate(bytes.len() - 1 - self.below(64)),
            5 => new[range].fill(0),
            6 => new[range].iter_mut().for_each(|b| *b = self.next() as u8),
            7 => drop(new.drain(range)),
            8 => new.extend_from_slice(&bytes[range]),
            // Two sections are swapped.
            9 => {
                let (size, from) = (self.below(bytes.len() / 2), range.start);
                let to = self.below(bytes.len() - size);
                let from = from.min(bytes.len() - size);
                new[to..to + size].copy_from_slice(&bytes[from..from + size]);
                new[from..from + size].copy_from_slice(&bytes[to..to + size]);
            }
            // Another file's content, whole or in part.
            10 => new.clone_from(other),
            _ => {
                let size = range.end.min(other.len());
                new[..size].copy_from_slice(&other[..size]);
            }
        }
        new
    }
}

struct Subject {
    _folder: tempfile::TempDir,
    model: PathBuf,
    cache: PathBuf,
}

impl Subject {
    /// Returns a small model with a few kernels and weights, in an archive.
    fn new() -> Subject {
        let folder = tempfile::tempdir().unwrap();
        let source = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
                      self.w = nn.Parameter(torch.arange(96.0).reshape(8, 12) / 7)\n    def forward(self, x):\n        \
                      return torch.relu(x @ self.w).softmax(1), x.sum(1)\n";
        let net = Session::new().script("net.py".as_ref(), source, &[]).unwrap();
        let mut net = net.to_model("forward").unwrap();
        net.eval();
        let (model, cache) = (folder.path().join("net.pt"), folder.path().join("cache"));
        net.save(&model, &SaveOptions::default()).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        Subject {
            _folder: folder,
            model,
            cache,
        }
    }

    /// Returns the results for an input with this number of rows, as text, and the origin of the code.
    fn run(&self, rows: i64) -> (String, String) {
        let options = EngineOptions::default().cache_dir(Some(self.cache.clone()));
        let mut engine = Session::new().engine(&self.model, &options).unwrap();
        let elements: Vec<f32> = (0..8 * rows).map(|i| i as f32 / 16.0 - 1.0).collect();
        let x = Tensor::from_f32(&elements, &[rows, 8]).unwrap();
        let result = engine.call("forward", &[Value::from(x)]).unwrap();
        let items = result.items().unwrap();
        let bytes: Vec<Vec<u8>> = items
            .iter()
            .map(|v| v.as_tensor().unwrap().to_bytes().unwrap())
            .collect();
        (format!("{bytes:?}"), engine.notes().join("\n"))
    }

    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.cache).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = entries.filter(|p| p.to_string_lossy().ends_with(ending)).collect();
        files.sort();
        files
    }

    /// Returns the file of the only method.
    fn method(&self) -> PathBuf {
        let files = self.files(".method");
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }
}

#[test]
fn no_damage_gives_wrong_results() {
    let subject = Subject::new();
    // Entries for other arguments, which replace this one's.
    let others: Vec<Vec<u8>> = [3, 4]
        .into_iter()
        .flat_map(|rows| {
            subject.run(rows);
            let files = [subject.files(".method"), subject.files(".o")].concat();
            let contents: Vec<Vec<u8>> = files.iter().map(|f| fs::read(f).unwrap()).collect();
            files.iter().for_each(|f| fs::remove_file(f).unwrap());
            contents
        })
        .collect();
    let (expected, how) = subject.run(2);
    assert!(how.contains("compiled in"), "{how}");
    let method = subject.method();
    let objects = subject.files(".o");
    assert!(!objects.is_empty());
    let whole: Vec<(PathBuf, Vec<u8>)> = objects
        .iter()
        .chain([&method])
        .map(|f| (f.clone(), fs::read(f).unwrap()))
        .collect();
    let mut random = Random(1);
    let mut found = 0;
    for number in 0..DAMAGES {
        // Most damages affect the file of the method; objects are read only if it is missing.
        let (path, bytes) = match number % 8 {
            0 => &whole[random.below(objects.len())],
            _ => &whole[objects.len()],
        };
        let damaged = random.damage(bytes, &others);
        fs::write(path, &damaged).unwrap();
        if *path != method {
            fs::remove_file(&method).unwrap();
        }
        let (result, how) = subject.run(2);
        assert_eq!(result, expected, "damage {number} to {}: {how}", path.display());
        if *path == method && how.contains("found in") {
            // Only padding between the sections may differ.
            found += 1;
            let differing = damaged.iter().zip(bytes).filter(|(a, b)| a != b).count();
            assert!(differing < 4096 && damaged.len() == bytes.len(), "damage {number}");
        }
        // Restored by this run.
        assert_eq!(fs::read(path).unwrap().len(), bytes.len());
        fs::write(path, bytes).unwrap();
    }
    assert!(found < DAMAGES / 4, "{found} of {DAMAGES} were used");
}

/// Files that others may have written or left are neither read nor written through.
#[test]
fn planted_files_are_misses() {
    let subject = Subject::new();
    let (expected, _) = subject.run(2);
    let method = subject.method();
    let run = |what: &str| {
        let (result, how) = subject.run(2);
        assert_eq!(result, expected);
        assert!(how.contains(what), "{how}");
    };
    run("found in");
    let victim = subject.cache.with_file_name("victim");
    fs::rename(&method, &victim).unwrap();
    let whole = fs::read(&victim).unwrap();
    symlink(&victim, &method).unwrap();
    run("compiled in");
    assert!(fs::symlink_metadata(&method).unwrap().is_file());
    fs::write(&victim, "precious").unwrap();
    for file in subject.files(".o").into_iter().chain([method.clone()]) {
        fs::remove_file(&file).unwrap();
        symlink(&victim, &file).unwrap();
    }
    run("compiled in");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    for file in subject.files("") {
        let found = fs::symlink_metadata(&file).unwrap();
        assert_eq!(
            (found.is_file(), found.mode() & 0o7777),
            (true, 0o600),
            "{}",
            file.display()
        );
    }
    run("found in");

    // No process writes to the FIFO, and reading must not wait for one.
    fs::remove_file(&method).unwrap();
    let fifo = |path: &Path| {
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    };
    fifo(&method);
    run("compiled in");
    fs::remove_file(&method).unwrap();
    fs::create_dir(&method).unwrap();
    run("compiled in");
    run("compiled in");
    fs::remove_dir(&method).unwrap();
    run("compiled in");
    run("found in");

    // Permissions that allow others to write.
    fs::set_permissions(&method, Permissions::from_mode(0o666)).unwrap();
    run("compiled in");
    run("found in");
    fs::set_permissions(&subject.cache, Permissions::from_mode(0o777)).unwrap();
    run("compiled in");
    let (_, how) = subject.run(2);
    assert!(how.contains("no code is kept in") && how.contains("may write"), "{how}");
    fs::set_permissions(&subject.cache, Permissions::from_mode(0o700)).unwrap();
    run("found in");
    assert_eq!(fs::read(&method).unwrap().len(), whole.len());
}

/// The size that an entry claims determines neither the memory that is allocated nor the time that reading takes.
#[test]
fn entries_that_claim_to_be_large_are_misses() {
    let subject = Subject::new();
    let (expected, _) = subject.run(2);
    let method = subject.method();
    let grow = |path: &Path| {
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(1 << 30)
            .unwrap()
    };
    subject.files("").iter().for_each(|path| grow(path));
    let start = Instant::now();
    let (result, how) = subject.run(2);
    assert!(result == expected && how.contains("compiled in"), "{how}");
    // With a consistent header: kind, version, and the actual number of bytes.
    for path in [subject.files(".method"), subject.files(".o")].concat() {
        let mut claim = fs::read(&path).unwrap();
        claim[8..16].copy_from_slice(&((1_u64 << 30) - SEAL_BYTES as u64).to_le_bytes());
        fs::write(&path, claim).unwrap();
        grow(&path);
    }
    let (result, how) = subject.run(2);
    assert!(result == expected && how.contains("compiled in"), "{how}");
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert!(fs::metadata(method).unwrap().len() < 1 << 20);
    assert!(subject.run(2).1.contains("found in"));
}

/// A valid entry that cannot be loaded, for example one of a program with a bug, is compiled again.
#[test]
fn entries_that_do_not_load_are_compiled_again() {
    let subject = Subject::new();
    let (expected, _) = subject.run(2);
    let method = subject.method();
    let whole = fs::read(&method).unwrap();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap()) as usize;
    let end = SEAL_BYTES + number(&whole[8..16]);
    let start = SEAL_BYTES + 8;
    let header_end = start + number(&whole[SEAL_BYTES..start]);
    let header = std::str::from_utf8(&whole[start..header_end]).unwrap();
    let changes = [
        // A call of a kernel, and a result of an output, that do not exist.
        ("\"kernel\":0", "\"kernel\":9"),
        ("\"Tensor\":0", "\"Tensor\":2"),
        // More elements, bytes and tasks than are possible.
        ("\"shape\":[2,", "\"shape\":[4611686018427387904,"),
        ("\"workspace_bytes\":", "\"workspace_bytes\":1844674407370955161"),
        ("\"phases\":[", "\"phases\":[-"),
    ];
    for (from, to) in changes {
        let changed = header.replacen(from, to, 1);
        assert_ne!(changed, header, "{from}");
        let length = (changed.len() as u64).to_le_bytes();
        let kind = whole[..8].try_into().unwrap();
        let name = method.file_name().unwrap().to_str().unwrap();
        let written = CacheFolder::new(&subject.cache, u64::MAX).write(name, |file, secret| {
            let mut bytes = secret.seal(&kind, &[&length, changed.as_bytes(), &whole[header_end..end]]);
            // The next section begins at a page boundary.
            bytes.resize(bytes.len().next_multiple_of(4096), 0);
            bytes.extend_from_slice(&whole[end.next_multiple_of(4096)..]);
            file.write_all(&bytes).map(|()| true)
        });
        assert!(written.unwrap());
        let (result, how) = subject.run(2);
        assert!(result == expected && how.contains("compiled in"), "{to}: {how}");
        let (result, how) = subject.run(2);
        assert!(result == expected && how.contains("found in"), "{to}: {how}");
    }
}

/// Files that were sealed with another secret are absent, although they are what this program would write.
#[test]
fn forged_files_are_misses() {
    let (subject, other) = (Subject::new(), Subject::new());
    let (expected, _) = subject.run(2);
    let foreign = Subject {
        model: subject.model.clone(),
        ..other
    };
    assert!(foreign.run(2).1.contains("compiled in"));
    for ending in [".o", ".method"] {
        for file in foreign.files(ending) {
            fs::copy(&file, subject.cache.join(file.file_name().unwrap())).unwrap();
        }
    }
    let (result, how) = subject.run(2);
    assert!(result == expected && how.contains("compiled in"), "{how}");
    assert!(subject.run(2).1.contains("found in"));
    // The secret makes the difference.
    for file in foreign.files("") {
        fs::copy(&file, subject.cache.join(file.file_name().unwrap())).unwrap();
    }
    assert!(subject.run(2).1.contains("found in"));
}

/// Only root can change the owner of files; other users skip the test.
#[test]
fn root_refuses_the_cache_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let subject = Subject::new();
    let (expected, _) = subject.run(2);
    let method = subject.method();
    let run = |what: &str| {
        let (result, how) = subject.run(2);
        assert_eq!(result, expected);
        assert!(how.contains(what), "{how}");
    };
    run("found in");
    chown(&method, Some(12345), None).unwrap();
    run("compiled in");
    run("found in");
    chown(&subject.cache, Some(12345), None).unwrap();
    let before = fs::metadata(&method).unwrap();
    run("compiled in");
    run("belongs to user 12345");
    let after = fs::metadata(&method).unwrap();
    assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
}
