//! The archive reader: what it reads, and what it refuses.

use std::io::{Cursor, Write};

use frazil_torchscript::archive::{Archive, ArchiveError, Limits, SMALL_BYTES, SharedBytes, SourceMap};
use proptest::prelude::*;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A zip file of these entries, stored or deflated.
fn zip(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, data) in entries {
        writer
            .start_file(*name, SimpleFileOptions::default().compression_method(method))
            .unwrap();
        writer.write_all(data).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn open(bytes: Vec<u8>) -> Result<Archive, ArchiveError> {
    Archive::new(SharedBytes::from(bytes), Limits::default())
}

fn small(method: CompressionMethod) -> Vec<u8> {
    let data = b"\x80\x02K\x05.";
    zip(
        &[
            ("m/data.pkl", data),
            ("m/data/0", &[1, 2, 3, 4]),
            ("m/byteorder", b"little"),
            ("m/version", b"3\n"),
        ],
        method,
    )
}

#[test]
fn stored_and_deflated_entries_read_alike() {
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let archive = open(small(method)).unwrap();
        assert_eq!((archive.version(), archive.top()), (3, "m/"));
        let pickle = archive.pickle("data.pkl").unwrap();
        assert_eq!(pickle.int(pickle.root()), Some(5));
        let (bytes, range) = archive.bytes("data/0").unwrap();
        assert_eq!(bytes.read(range).as_deref(), Some(&[1, 2, 3, 4][..]));
        assert!(matches!(archive.read("data/1"), Err(ArchiveError::Missing { .. })));
    }
}

#[test]
fn dangerous_names_are_refused() {
    for name in ["/m/version", "m/../version", "C:/version", "m\\version"] {
        let error = open(zip(&[(name, b"3")], CompressionMethod::Stored)).unwrap_err();
        assert!(matches!(error, ArchiveError::EntryName { .. }), "{name}: {error}");
    }
    let without_folder = zip(&[("version", b"3")], CompressionMethod::Stored);
    assert!(matches!(open(without_folder), Err(ArchiveError::Foreign { .. })));
    let two = zip(&[("a/version", b"3"), ("b/data.pkl", b"")], CompressionMethod::Stored);
    assert!(matches!(open(two), Err(ArchiveError::Foreign { .. })));
}

#[test]
fn bounds_are_kept() {
    let limits = Limits {
        entries: 2,
        ..Limits::default()
    };
    let error = Archive::new(SharedBytes::from(small(CompressionMethod::Stored)), limits).unwrap_err();
    assert!(
        matches!(error, ArchiveError::Limit { limit: 2, found: 4, .. }),
        "{error}"
    );
    let bomb = zip(
        &[("m/version", b"3"), ("m/data/0", &vec![0; 1 << 20])],
        CompressionMethod::Deflated,
    );
    let limits = Limits {
        inflated_bytes: 1 << 10,
        ..Limits::default()
    };
    let error = Archive::new(SharedBytes::from(bomb), limits).unwrap_err();
    assert!(
        matches!(error, ArchiveError::Limit { ref entry, .. } if entry == "data/0"),
        "{error}"
    );
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    // Each entry alone is small enough.
    let zeros = vec![0; (SMALL_BYTES / 5) as usize + 1];
    let names: Vec<_> = (0..5).map(|i| format!("m/data/{i}")).collect();
    let mut entries = vec![("m/version", &b"3"[..])];
    entries.extend(names.iter().map(|name| (name.as_str(), zeros.as_slice())));
    let error = open(zip(&entries[..5], CompressionMethod::Deflated)).err();
    assert!(error.is_none(), "{error:?}");
    let error = open(zip(&entries, CompressionMethod::Deflated)).unwrap_err();
    let place = matches!(error, ArchiveError::Limit { ref entry, limit: SMALL_BYTES, .. } if entry == "data/4");
    assert!(place, "{error}");
}

/// Sets every occurrence of `from` in the headers of a zip file to `to`, of the same length.
fn patch(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(from.len()).position(|w| w == from) {
        bytes[at + found..at + found + to.len()].copy_from_slice(to);
        at += found + from.len();
    }
}

#[test]
fn entries_that_share_their_bytes_are_refused() {
    let data = [7; 1000];
    let mut bytes = zip(
        &[("m/version", b"3"), ("m/data/0", &data), ("m/data/1", b"")],
        CompressionMethod::Stored,
    );
    // The last directory entry is made to say that it is the one before it, under another name.
    let directory = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    let before = bytes[..directory].windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    let same = bytes[before + 16..before + 28].to_vec();
    bytes[directory + 16..directory + 28].copy_from_slice(&same);
    let offset = bytes[before + 42..before + 46].to_vec();
    bytes[directory + 42..directory + 46].copy_from_slice(&offset);
    let error = open(bytes).unwrap_err();
    let place = matches!(error, ArchiveError::Entry { ref entry, .. } if entry == "data/1");
    assert!(place && error.to_string().contains("shares bytes"), "{error}");
}

#[test]
fn claimed_sizes_are_not_trusted() {
    let mut bytes = zip(
        &[("m/version", b"3"), ("m/data/0", &[7; 1000])],
        CompressionMethod::Stored,
    );
    patch(&mut bytes, &1000_u32.to_le_bytes(), &0x7fff_ffff_u32.to_le_bytes());
    let error = open(bytes).unwrap_err();
    let place = matches!(error, ArchiveError::Entry { ref entry, .. } if entry == "data/0");
    assert!(place && error.to_string().contains("beyond the end"), "{error}");
    let mut bytes = zip(
        &[("m/version", b"3"), ("m/data/0", &[7; 1000])],
        CompressionMethod::Deflated,
    );
    patch(&mut bytes, &1000_u32.to_le_bytes(), &999_u32.to_le_bytes());
    let error = open(bytes).unwrap().bytes("data/0").unwrap_err();
    let place = matches!(error, ArchiveError::Entry { ref entry, .. } if entry == "data/0");
    assert!(place, "{error}");
}

#[test]
fn versions_and_byte_order() {
    let version = |text: &[u8]| open(zip(&[("m/version", text)], CompressionMethod::Stored));
    assert_eq!(version(b"10\n").unwrap().version(), 10);
    assert!(matches!(version(b"11\n"), Err(ArchiveError::Version { .. })));
    assert!(matches!(version(b"x"), Err(ArchiveError::Version { .. })));
    assert!(matches!(
        open(zip(&[("m/a", b"")], CompressionMethod::Stored)),
        Err(ArchiveError::Foreign { .. })
    ));
    let big = zip(
        &[("m/version", b"3"), ("m/byteorder", b"big")],
        CompressionMethod::Stored,
    );
    assert!(matches!(open(big), Err(ArchiveError::Version { .. })));
}

#[test]
fn a_damaged_text_is_noticed() {
    let mut bytes = small(CompressionMethod::Stored);
    let at = bytes.windows(6).position(|w| w == b"little").unwrap();
    bytes[at] ^= 1;
    assert!(matches!(open(bytes), Err(ArchiveError::Entry { entry, .. }) if entry == "byteorder"));
}

/// `(("", 0 rows), one row at offset 3: line 10 of f.py, character 5 of "ab\ncdef")`, in the oldest layout.
#[test]
fn source_ranges_without_a_string_table() {
    let pickle = b"\x80\x02K\x03X\x07\0\0\0ab\ncdefX\x04\0\0\0f.pyK\x0a\x87K\x05K\x06\x87\x86\x85.";
    let map = SourceMap::parse("code/f.py.debug_pkl", pickle).unwrap();
    assert_eq!(map.find(2), None);
    let place = map.find(99).unwrap();
    assert_eq!((&*place.file, place.line, place.column), ("f.py", 11, 2));
    let error = SourceMap::parse("e", b"\x80\x02K\x03.").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("expected a table of source ranges, found an int"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn damaged_archives_never_panic(
        at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keep in any::<prop::sample::Index>(),
        deflate in any::<bool>(),
    ) {
        let mut bytes = small(if deflate { CompressionMethod::Deflated } else { CompressionMethod::Stored });
        for (index, value) in at {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        bytes.truncate(keep.index(bytes.len() * 2).max(1));
        if let Ok(archive) = open(bytes) {
            for name in archive.names().map(str::to_owned).collect::<Vec<_>>() {
                let _ = archive.pickle(&name);
                let _ = archive.bytes(&name);
                let _ = archive.source_map(&name);
            }
        }
    }
}

/// Every archive of the corpus opens, and all its pickles and debug records can be read.
#[test]
fn corpus_archives_open() {
    let Some(corpus) = frazil_recorded::workspace::corpus() else {
        return;
    };
    let mut archives = Vec::new();
    for folder in ["models", "ops"] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                archives.extend(std::fs::read_dir(entry).unwrap().map(|file| file.unwrap().path()));
            }
        }
    }
    archives.retain(|path| path.extension().is_some_and(|extension| extension == "pt"));
    assert!(archives.len() > 100);
    for path in archives {
        let archive = Archive::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for name in archive.names() {
            if name.ends_with(".py") {
                archive.text(name).unwrap();
                let map = archive.source_map(name).unwrap().expect("PyTorch writes debug records");
                assert!(!map.is_empty());
            } else if name.ends_with(".pkl") {
                archive.pickle(name).unwrap();
            }
        }
    }
}

/// PyTorch ends every archive with a 64-bit end of directory, which it does not need; readers that look for the directory from behind may miss an entry
/// whose header is as long as that end.
#[test]
fn archives_with_64_bit_ends_open_whatever_their_names_are() {
    for top in [
        "a",
        "traced_function.torch",
        "traced_functions.torch",
        "a_longer_name.than.those",
    ] {
        let [data, version] = ["data.pkl", "version"].map(|name| format!("{top}/{name}"));
        let mut bytes = zip(&[(&data, b"\x80\x02N."), (&version, b"3")], CompressionMethod::Stored);
        let end = bytes.split_off(bytes.len() - 22);
        let field = |at: usize| u64::from(u32::from_le_bytes(end[at..at + 4].try_into().expect("four bytes")));
        let (size, start, at) = (field(12), field(16), bytes.len() as u64);
        let mut end64 = vec![
            0x50, 0x4b, 6, 6, 44, 0, 0, 0, 0, 0, 0, 0, 0x1e, 3, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        end64.extend([2, 2, size, start].iter().flat_map(|n: &u64| n.to_le_bytes()));
        let mut locator = vec![0x50, 0x4b, 6, 7, 0, 0, 0, 0];
        locator.extend(at.to_le_bytes());
        locator.extend([1, 0, 0, 0]);
        bytes.extend(end64.into_iter().chain(locator).chain(end));
        let archive = open(bytes).unwrap_or_else(|e| panic!("{top}: {e}"));
        assert!(archive.contains("data.pkl") && archive.contains("version"), "{top}");
    }
}
