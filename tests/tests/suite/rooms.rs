//! The order of modules within a crate. A crate's *rooms* are the modules at its top level. Each room imports only rooms before it, and files
//! import one another in circles of at most three.
//!
//! Dependencies are read from the text of the files: from `use` declarations, and from paths that begin with `crate` or `super`. A path is followed through
//! re-exports to the file that defines its item. Modules under `#[cfg(test)]` do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use frazil_recorded::workspace::{files, root};

/// The rooms of one crate.
struct Rooms {
    /// The folder of the crate's sources.
    sources: &'static str,
    /// All modules at the top level, each before those that may import it; empty if the crate has no order.
    order: &'static [&'static str],
    /// Imports against the order that are allowed: the file's module, the room, and the reason.
    exceptions: &'static [(&'static str, &'static str, &'static str)],
    /// Circles of more than [`MAX_CIRCLE`] files that are allowed: any file of the circle, the number of its files, and the reason.
    circles: &'static [(&'static str, usize, &'static str)],
}

/// Most files that may import one another in a circle.
const MAX_CIRCLE: usize = 3;

/// All crates.
const CRATES: &[Rooms] = &[
    Rooms {
        sources: "crates/runtime/src",
        order: &[
            "memory",
            "simd",
            "threads",
            "one_thread",
            "error",
            "scalar",
            "shape",
            "program",
            "tensor",
            "value",
            "eval",
            "operator",
            "interp",
        ],
        exceptions: &[],
        circles: &[],
    },
    Rooms {
        sources: "crates/torchscript/src",
        order: &[
            "versions", "archive", "error", "source", "library", "options", "names", "emit", "program", "objects",
            "python", "loader", "code", "export",
        ],
        exceptions: &[],
        circles: &[],
    },
    Rooms {
        sources: "crates/frazil/src",
        order: &[
            "error",
            "support",
            "source_trace",
            "session",
            "model",
            "script_module",
            "engine",
            "eager",
            "trace",
        ],
        exceptions: &[(
            "model",
            "script_module",
            "a model has the hooks of its state dictionaries, which are functions of its modules",
        )],
        circles: &[(
            "model",
            5,
            "a model has the hooks of its state dictionaries, which are functions of its modules",
        )],
    },
    Rooms {
        sources: "crates/tensor-ir/src",
        order: &[
            "affine",
            "alignment",
            "extent",
            "spec",
            "call",
            "graph",
            "pattern",
            "verify",
            "ir",
            "text",
            "transform",
            "standard",
        ],
        exceptions: &[],
        circles: &[],
    },
    Rooms {
        sources: "crates/executor/src",
        order: &["link", "memory", "error", "program", "package", "run"],
        exceptions: &[(
            "package",
            "run",
            "a package has a description of each call, which profiles show",
        )],
        circles: &[],
    },
    Rooms {
        sources: "crates/planner/src",
        order: &[
            "target",
            "kernel",
            "codes",
            "packed",
            "family",
            "tune",
            "options",
            "error",
            "specialise",
            "layout",
            "plan",
            "schedule",
            "placement",
            "select",
            "lower",
        ],
        exceptions: &[],
        circles: &[],
    },
    Rooms {
        sources: "crates/codegen/src",
        order: &[
            "emit",
            "target_keys",
            "cache",
            "code_library",
            "backend",
            "options",
            "compile",
            "aot",
            "tune",
        ],
        exceptions: &[],
        circles: &[],
    },
    without_order("crates/arena/src"),
    without_order("crates/capi/src"),
    without_order("crates/ir/src"),
    without_order("crates/limits/src"),
    without_order("crates/pass-manager/src"),
    without_order("crates/python/src"),
    without_order("crates/rt/src"),
    without_order("crates/syntax/src"),
    without_order("dialects/aten/src"),
    without_order("dialects/prim/src"),
    without_order("passes/src"),
    without_order("tests/recorded/src"),
    without_order("tests/src"),
    without_order("tools/src"),
];

/// A crate whose modules are small enough to need no order; circles of its files are small.
const fn without_order(sources: &'static str) -> Rooms {
    Rooms {
        sources,
        order: &[],
        exceptions: &[],
        circles: &[],
    }
}

/// A module by its path from the crate's root; the root is the empty path.
type Module = Vec<String>;

/// The files of a crate by module.
type Texts = BTreeMap<Module, String>;

/// A path in a `use` declaration or an expression, and the name that a declaration gives it.
struct Named {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

/// The dependencies between the files of a crate.
struct Imports {
    /// By importing module, the modules that it imports.
    edges: BTreeMap<Module, BTreeSet<Module>>,
}

fn module_of(file: &Path) -> Module {
    let mut parts: Module = file
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib")) {
        parts.pop();
    }
    parts
}

/// The code of a file without comments, the contents of strings, and modules under `#[cfg(test)]`.
fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &text[at..];
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if byte == b'"' {
            string_end(rest)
        } else if let Some(end) = raw_string_end(rest, at.checked_sub(1).map(|before| bytes[before])) {
            end
        } else if byte == b'\'' {
            char_end(rest)
        } else {
            let length = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[..length]);
            at += length;
            continue;
        };
        out.push(' ');
        at += skipped;
    }
    without_tests(&out)
}

fn string_end(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of `r"..."` or `r#"..."#` at the start of `rest`.
fn raw_string_end(rest: &str, before: Option<u8>) -> Option<usize> {
    if before.is_some_and(|byte| byte.is_ascii_alphanumeric() && byte != b'b' || byte == b'_') {
        return None;
    }
    let hashes = rest.strip_prefix('r')?.bytes().take_while(|byte| *byte == b'#').count();
    rest[1 + hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let start = hashes + 2;
    Some(
        rest[start..]
            .find(&close)
            .map_or(rest.len(), |end| start + end + close.len()),
    )
}

/// The length of a character literal; a lifetime's is that of its apostrophe.
fn char_end(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[2..]
            .get(1..)
            .and_then(|tail| tail.find('\''))
            .map_or(1, |end| end + 4),
        Some((at, c)) if rest[at + c.len_utf8()..].starts_with('\'') => at + c.len_utf8() + 1,
        _ => 1,
    }
}

/// Cuts inline modules that are compiled for tests only.
fn without_tests(code: &str) -> String {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    let mut out = String::new();
    let mut rest = code;
    while let Some(start) = rest.find(ATTRIBUTE) {
        out.push_str(&rest[..start]);
        rest = &rest[start + ATTRIBUTE.len()..];
        if !rest.trim_start().starts_with("mod ") {
            continue;
        }
        let mut depth = 0usize;
        let end = rest.bytes().position(|byte| {
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(byte, b'}' | b';')
        });
        rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
    }
    out + rest
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The paths of the `use` declarations of a file, and its code without them.
fn declarations(code: &str) -> (Vec<Named>, String) {
    let mut found = Vec::new();
    let mut others = String::new();
    let mut rest = code;
    while let Some(start) = rest.find("use ") {
        let before = &rest[..start];
        let is_statement = before.trim_end().is_empty() || before.ends_with(|c: char| c.is_whitespace() || c == ')');
        let (Some(end), true) = (rest[start..].find(';'), is_statement) else {
            others.push_str(&rest[..start + 4]);
            rest = &rest[start + 4..];
            continue;
        };
        let line = before.rsplit(['\n', ';', '}', '{']).next().unwrap_or_default().trim();
        others.push_str(before);
        let tree = &rest[start + 4..start + end];
        expand(&[], tree, line.starts_with("pub"), &mut found);
        rest = &rest[start + end + 1..];
    }
    others.push_str(rest);
    (found, others)
}

/// The paths of a `use` tree.
fn expand(prefix: &[String], tree: &str, is_public: bool, found: &mut Vec<Named>) {
    let tree = tree.trim();
    let segments = |text: &str| -> Vec<String> {
        let parts = text.split("::").map(str::trim).filter(|part| !part.is_empty());
        prefix.iter().cloned().chain(parts.map(str::to_owned)).collect()
    };
    if let Some((head, inner)) = tree.split_once('{') {
        let (head, inner) = (segments(head), inner.trim_end().trim_end_matches('}'));
        // `trim_end_matches` may cut the braces of the last inner tree, which an unbalanced tree shows.
        let missing = inner.matches('{').count().saturating_sub(inner.matches('}').count());
        let inner = format!("{inner}{}", "}".repeat(missing));
        let (mut depth, mut begin) = (0usize, 0usize);
        for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    if !inner[begin..at].trim().is_empty() {
                        expand(&head, &inner[begin..at], is_public, found);
                    }
                    begin = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (path, alias) = tree
        .split_once(" as ")
        .map_or((tree, None), |(path, name)| (path, Some(name.trim())));
    let mut path = segments(path);
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = alias.or(path.last().map(String::as_str)).unwrap_or_default().to_owned();
    found.push(Named { path, name, is_public });
}

/// The paths in `code` that begin with `crate` or `super`.
fn inline_paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for head in ["crate::", "super::"] {
        for (at, _) in code.match_indices(head) {
            if code[..at].ends_with(|c: char| is_word(c) || c == ':' || c == '$') {
                continue;
            }
            let end = code[at..]
                .find(|c: char| !is_word(c) && c != ':')
                .map_or(code.len(), |end| at + end);
            let path = code[at..end].trim_end_matches(':').split("::");
            found.push(path.map(str::to_owned).collect());
        }
    }
    found
}

impl Imports {
    fn of(texts: &Texts) -> Imports {
        let read: BTreeMap<&Module, (Vec<Named>, String)> = texts
            .iter()
            .map(|(module, text)| (module, declarations(&code(text))))
            .collect();
        let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (&module, (uses, body)) in &read {
            let is_used = |named: &&Named| !named.is_public || contains_word(body, &named.name);
            let declared = uses.iter().filter(is_used).map(|named| named.path.clone());
            let targets = declared.chain(inline_paths(body)).filter_map(|path| {
                let path = absolute(module, &path, texts)?;
                Some(defining(path, texts, &read))
            });
            let targets = targets.filter(|target| target != module).collect();
            edges.insert(module.clone(), targets);
        }
        Imports { edges }
    }

    /// Imports of a room that comes later in the order, or is not in it.
    fn against(&self, rooms: &Rooms) -> Vec<String> {
        let place = |room: &str| rooms.order.iter().position(|listed| *listed == room);
        let mut found = Vec::new();
        let mut unused: BTreeSet<usize> = (0..rooms.exceptions.len()).collect();
        for (module, targets) in &self.edges {
            // The root of the crate declares and re-exports all rooms.
            let Some(room) = module.first() else { continue };
            let Some(own) = place(room) else {
                found.push(format!("{room} is not in the order"));
                continue;
            };
            let name = module.join("::");
            let later: BTreeSet<&String> = targets.iter().filter_map(|target| target.first()).collect();
            for other in later
                .into_iter()
                .filter(|other| place(other).is_none_or(|place| place > own))
            {
                match rooms
                    .exceptions
                    .iter()
                    .position(|(file, to, _)| *file == name && to == other)
                {
                    Some(exception) => drop(unused.remove(&exception)),
                    None => found.push(format!("{name} imports {other}, which comes after {room}")),
                }
            }
        }
        let stray = unused.iter().map(|&exception| rooms.exceptions[exception]);
        found.extend(stray.map(|(file, room, _)| format!("{file} does not import {room}: take it off the list")));
        let missing = rooms.order.iter().filter(|room| {
            !self
                .edges
                .keys()
                .any(|module| module.first().is_some_and(|first| first == **room))
        });
        found.extend(missing.map(|room| format!("there is no module {room}")));
        found
    }

    /// The sets of files that import one another in circles, with two files or more.
    fn circles(&self) -> Vec<BTreeSet<&Module>> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> = self
            .edges
            .keys()
            .map(|module| (module, self.reached_from(module)))
            .collect();
        let mut found: BTreeSet<BTreeSet<&Module>> = BTreeSet::new();
        for (module, others) in &reached {
            let back = |other: &&&Module| reached.get(*other).is_some_and(|from| from.contains(module));
            let circle: BTreeSet<&Module> = others.iter().filter(back).copied().collect();
            if circle.len() > 1 {
                found.insert(circle);
            }
        }
        found.into_iter().collect()
    }

    fn reached_from<'a>(&'a self, module: &'a Module) -> BTreeSet<&'a Module> {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![module];
        while let Some(next) = waiting.pop() {
            for target in self.edges.get(next).into_iter().flatten() {
                if reached.insert(target) {
                    waiting.push(target);
                }
            }
        }
        reached
    }

    /// Circles with too many files.
    fn large_circles(&self, rooms: &Rooms) -> Vec<String> {
        let circles = self.circles();
        let mut found = Vec::new();
        let mut unused: BTreeSet<usize> = (0..rooms.circles.len()).collect();
        for circle in circles.iter().filter(|circle| circle.len() > MAX_CIRCLE) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            let listed = rooms
                .circles
                .iter()
                .position(|(file, ..)| names.iter().any(|name| name == file));
            match listed.map(|at| (at, rooms.circles[at].1)) {
                Some((at, count)) if count == names.len() => drop(unused.remove(&at)),
                _ => found.push(format!("{} files: {}", names.len(), names.join(", "))),
            }
        }
        let stray = unused.iter().map(|&at| rooms.circles[at].0);
        found.extend(stray.map(|file| format!("{file} is in no circle of that many files: correct the list")));
        found
    }
}

fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

/// The path from the crate's root, if it is one within the crate.
fn absolute(module: &Module, path: &[String], texts: &Texts) -> Option<Vec<String>> {
    let first = path.first()?;
    let mut base = match first.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => module.clone(),
        child => {
            let inner: Module = module.iter().cloned().chain([child.to_owned()]).collect();
            return texts
                .contains_key(&inner)
                .then(|| module.iter().cloned().chain(path.iter().cloned()).collect());
        }
    };
    let mut rest = path;
    while let Some((head, tail)) = rest.split_first()
        && matches!(head.as_str(), "crate" | "self" | "super")
    {
        if head == "super" {
            base.pop();
        }
        rest = tail;
    }
    Some(base.into_iter().chain(rest.iter().cloned()).collect())
}

/// The module of the file that defines the item at `path`, found through re-exports.
fn defining(path: Vec<String>, texts: &Texts, read: &BTreeMap<&Module, (Vec<Named>, String)>) -> Module {
    let mut path = path;
    // Re-exports of re-exports end somewhere.
    for _ in 0..16 {
        let length = (0..=path.len())
            .rev()
            .find(|&length| texts.contains_key(&path[..length]));
        let (module, rest) = path.split_at(length.unwrap_or(0));
        let module = module.to_vec();
        let (Some(item), Some((uses, _))) = (rest.first(), read.get(&module)) else {
            return module;
        };
        let Some(target) = uses
            .iter()
            .find(|named| named.name == *item)
            .and_then(|named| absolute(&module, &named.path, texts))
        else {
            return module;
        };
        if target == path {
            return module;
        }
        path = target.into_iter().chain(rest[1..].iter().cloned()).collect();
    }
    path
}

fn texts(sources: &str) -> Texts {
    let rust = files(sources)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|found| found == "rs"));
    rust.map(|path| {
        let text = fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let below = path.strip_prefix(sources).expect("a file of the folder");
        (module_of(below), text)
    })
    .collect()
}

fn assert_none(violations: &[String], remedy: &str) {
    assert!(violations.is_empty(), "{remedy}:\n  {}\n", violations.join("\n  "));
}

#[test]
fn rooms_import_only_rooms_before_them() {
    for rooms in CRATES.iter().filter(|rooms| !rooms.order.is_empty()) {
        let found = Imports::of(&texts(rooms.sources)).against(rooms);
        assert_none(
            &found,
            &format!("imports against the order of rooms in {}", rooms.sources),
        );
    }
}

#[test]
fn circles_of_files_are_small() {
    for rooms in CRATES {
        let found = Imports::of(&texts(rooms.sources)).large_circles(rooms);
        assert_none(
            &found,
            &format!("circles of more than {MAX_CIRCLE} files in {}", rooms.sources),
        );
    }
}

/// The dependencies of a crate that consists of these files.
fn imports(files: &[(&str, &str)]) -> Imports {
    Imports::of(
        &files
            .iter()
            .map(|(path, text)| (module_of(Path::new(path)), (*text).to_owned()))
            .collect(),
    )
}

/// Rooms of these names, in this order.
fn rooms(order: &'static [&'static str]) -> Rooms {
    Rooms {
        sources: "",
        order,
        exceptions: &[],
        circles: &[],
    }
}

#[test]
fn every_form_of_an_import_against_the_order_is_found() {
    let forms = [
        "use crate::late::Thing;",
        "use crate::{late::{Thing, Other}, early};",
        "use crate::{early, late};",
        "pub(crate) use crate::late::Thing;\nfn f(_: Thing) {}",
        "fn f() -> crate::late::Thing { loop {} }",
        "use super::late;",
        "fn f() { use super::late::Thing; }",
        // Through names that the root gives.
        "use crate::Thing;",
    ];
    for form in forms {
        let files = [
            ("lib.rs", "mod early;\nmod late;\npub use late::Thing;"),
            ("early.rs", form),
            ("late/mod.rs", "mod file;\npub use file::Thing;\npub struct Other;"),
            ("late/file.rs", "pub struct Thing;"),
        ];
        let found = imports(&files).against(&rooms(&["early", "late"]));
        assert_eq!(found, ["early imports late, which comes after early"], "{form}");
        assert!(imports(&files).against(&rooms(&["late", "early"])).is_empty(), "{form}");
    }
}

#[test]
fn text_and_tests_are_no_imports() {
    let text = "/// [`late`](crate::late)\nconst A: &str = \"use crate::late;\";\nconst B: &str = r#\"crate::late::\"#;\nconst C: char = '\"'; // crate::late::X\n\
                #[cfg(test)]\nmod tests { use crate::late::Thing; }\npub(crate) use crate::late::Thing as Elsewhere;";
    let files = [("lib.rs", ""), ("early.rs", text), ("late.rs", "pub struct Thing;")];
    assert!(imports(&files).against(&rooms(&["early", "late"])).is_empty());
}

#[test]
fn exceptions_and_rooms_that_do_not_exist_are_found() {
    let files = [("lib.rs", ""), ("early.rs", ""), ("late.rs", ""), ("new.rs", "")];
    let listed = Rooms {
        exceptions: &[("early", "late", "no reason")],
        ..rooms(&["early", "late", "gone"])
    };
    let found = imports(&files).against(&listed);
    let expected = [
        "new is not in the order",
        "early does not import late: take it off the list",
        "there is no module gone",
    ];
    assert_eq!(found, expected);
}

#[test]
fn large_circles_are_found_and_small_ones_allowed() {
    let circle = |count: usize| -> Vec<(String, String)> {
        let next = |at: usize| (at + 1) % count;
        let file = |at: usize| {
            (
                format!("room/f{at}.rs"),
                format!("use super::f{}::X{};", next(at), next(at)),
            )
        };
        (0..count)
            .map(file)
            .chain([("room/mod.rs".to_owned(), String::new())])
            .collect()
    };
    for (count, is_allowed) in [(2, true), (3, true), (4, false)] {
        let files = circle(count);
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let found = imports(&files);
        assert_eq!(found.circles().len(), 1, "{count}");
        assert_eq!(found.large_circles(&rooms(&["room"])).is_empty(), is_allowed, "{count}");
    }
}
