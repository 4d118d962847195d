//! `docs/layers.md` states the support of each class of `torch.nn` and each function of `torch.nn.functional`: the page is generated from the
//! recorded programs of the topics `nn_modules` and `nn_functional`, and compared. `FRAZIL_BLESS=1` writes it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use frazil::Session;
use serde_json::Value as Json;

/// The counts for one class or function.
#[derive(Default)]
struct Row {
    programs: usize,
    /// Programs that PyTorch compiles.
    compiled: usize,
    /// Programs whose outcome is PyTorch's, including refusals.
    same: usize,
    /// Compiled programs that native code runs as a whole.
    native: usize,
    /// Operators without semantics that the programs call.
    missing: BTreeSet<String>,
}

/// The page, which collects counts while programs are compared.
#[derive(Default)]
pub(crate) struct LayersPage {
    /// The rows, by topic and name.
    rows: BTreeMap<(String, String), Row>,
    known: BTreeSet<String>,
}

impl LayersPage {
    /// Counts a program, whose name consists of a class or function and a number.
    pub(crate) fn add(&mut self, topic: &str, name: &str, source: &str, recorded: &Json, outcome: &str, native: bool) {
        if self.known.is_empty() {
            let session = Session::new();
            let catalogue = session.registry().catalogue();
            let names = catalogue.operators();
            let covered = names.filter(|name| {
                catalogue
                    .overloads(*name)
                    .any(|schema| session.registry().operator_of(schema.clone()).is_some())
            });
            self.known = covered
                .map(|name| session.registry().ctx().name(name).to_owned())
                .collect();
        }
        let class = name.rsplit_once('_').map_or(name, |(class, _)| class);
        // Programs that modify layers are not counted.
        if topic == "nn_modules" && !source.contains(&format!("nn.{class}(")) {
            return;
        }
        let row = self.rows.entry((topic.to_owned(), class.to_owned())).or_default();
        row.programs += 1;
        row.same += usize::from(matches!(outcome, "same" | "graph"));
        if recorded.get("error").is_some() {
            return;
        }
        row.compiled += 1;
        row.native += usize::from(native);
        let operators = recorded.get("operators").and_then(Json::as_array);
        let names = operators.into_iter().flatten().filter_map(Json::as_str);
        let missing = names.filter(|name| !self.known.contains(*name));
        row.missing.extend(missing.map(str::to_owned));
    }

    /// # Panics
    /// If the page in the repository differs.
    pub(crate) fn check(&self) {
        // Without a compiler, support in native code is unknown.
        if !cfg!(feature = "codegen") {
            return;
        }
        let made = self.text();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/layers.md");
        if std::env::var_os("FRAZIL_BLESS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = made.lines().zip(there.lines()).find(|(a, b)| a != b);
        assert!(
            made == there,
            "docs/layers.md is out of date: FRAZIL_BLESS=1 cargo test -p frazil --test suite programs_do; first difference: {differs:?}"
        );
    }

    fn text(&self) -> String {
        let mut out = String::from(
            "# Layers and functionals\n\n\
             The classes of `torch.nn` and the functions of `torch.nn.functional` in PyTorch 2.15, and how many of their recorded programs behave as in PyTorch.\n\n\
             - *Programs*: the recorded programs. Each has one set of arguments, and makes one or more calls.\n\
             - *From source*: programs that behave in both engines as `torch.jit.script` and its result do: the same values, or the same exception. \"Refused\" means\n  \
             that PyTorch refuses to compile all of them, and so does Frazil, with PyTorch's message.\n\
             - *From archives*: yes if every operator that PyTorch's archives of the programs call has semantics; otherwise the operators without semantics.\n\
             - *Native*: of the programs that compile, those that run natively from the first to the last operator. In the others, the interpreter runs some operators.\n\n\
             `tests/fixtures/language/differences.txt` has the reason for each program that differs. `crates/frazil/tests/suite/layers_page.rs` generates this page from the\n\
             recorded programs (`nn_modules.py` and `nn_functional.py` in `tests/fixtures/language`).\n",
        );
        for (topic, title) in [
            ("nn_modules", "Classes of `torch.nn`"),
            ("nn_functional", "Functions of `torch.nn.functional`"),
        ] {
            let rows = self.rows.iter().filter(|((t, _), _)| t == topic);
            let rows: Vec<(&str, &Row)> = rows.map(|((_, name), row)| (name.as_str(), row)).collect();
            let whole = rows.iter().filter(|(_, row)| row.same == row.programs).count();
            let _ = write!(
                out,
                "\n## {title}\n\n{whole} of {} behave as in PyTorch in all their programs.\n\n\
                 | name | programs | from source | from archives | native |\n| --- | --- | --- | --- | --- |\n",
                rows.len()
            );
            for (name, row) in rows {
                let of = |part: usize, all: usize| match part == all {
                    true => "yes".to_owned(),
                    false => format!("{part} of {all}"),
                };
                let source = match row.compiled == 0 && row.same == row.programs {
                    true => "refused".to_owned(),
                    false => of(row.same, row.programs),
                };
                let missing: Vec<String> = row.missing.iter().map(|name| format!("`{name}`")).collect();
                let (archives, native) = match (row.compiled, missing.is_empty()) {
                    (0, _) => ("-".to_owned(), "-".to_owned()),
                    (all, true) => ("yes".to_owned(), of(row.native, all)),
                    (all, false) => (format!("without {}", missing.join(", ")), of(row.native, all)),
                };
                let _ = writeln!(
                    out,
                    "| `{name}` | {} | {source} | {archives} | {native} |",
                    row.programs
                );
            }
        }
        out
    }
}
