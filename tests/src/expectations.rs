//! The lists of cases that are expected to pass: `tests/conformance/*.txt`.
//!
//! A line is a case's name and the engines on which it passes, `resnet18_script interp,native`. The name of an operator's
//! folder stands for all its cases. Lines that begin with `#` are comments and stand above the first entry.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::runner::Engine;

/// Which cases are expected to pass on which engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expectations {
    comments: Vec<String>,
    entries: BTreeSet<(String, Engine)>,
}

impl Expectations {
    /// Parses a list. The error says which line is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.starts_with('#') {
                list.comments.push(line.to_owned());
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let complaint = || format!("line {}: expected `NAME interp,native`, found `{line}`", index + 1);
            let (name, engines) = line.split_once(char::is_whitespace).ok_or_else(complaint)?;
            for engine in engines.trim().split(',') {
                let engine = Engine::from_name(engine).ok_or_else(complaint)?;
                list.entries.insert((name.to_owned(), engine));
            }
        }
        Ok(list)
    }

    /// Reads a list from a file.
    ///
    /// # Errors
    /// With the path, when it cannot be read or parsed.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whether a case, or the folder that it belongs to, is listed.
    pub fn covers(&self, case: &str, engine: Engine) -> bool {
        let listed = |name: &str| self.entries.contains(&(name.to_owned(), engine));
        listed(case) || case.split_once('/').is_some_and(|(folder, _)| listed(folder))
    }

    /// Entries that name none of the cases: typing mistakes, or cases that are gone.
    pub fn unknown<'a>(&'a self, cases: &BTreeSet<&str>) -> Vec<&'a str> {
        let folders: BTreeSet<&str> = cases.iter().filter_map(|case| Some(case.split_once('/')?.0)).collect();
        let known = |name: &str| cases.contains(name) || folders.contains(name);
        self.entries
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !known(name))
            .collect()
    }

    /// Adds cases that pass; `all` are all cases of the engine, so that complete folders become one entry.
    /// Nothing is taken off the list: what stops passing has to be looked at.
    pub fn add(&mut self, engine: Engine, passing: &BTreeSet<&str>, all: &BTreeSet<&str>) {
        let complete = |folder: &str| {
            let prefix = format!("{folder}/");
            all.iter()
                .filter(|case| case.starts_with(&prefix))
                .all(|case| passing.contains(case))
        };
        for case in passing {
            match case.split_once('/') {
                Some((folder, _)) if complete(folder) => {
                    let prefix = format!("{folder}/");
                    self.entries
                        .retain(|(name, listed)| !(*listed == engine && name.starts_with(&prefix)));
                    self.entries.insert((folder.to_owned(), engine));
                }
                _ if !self.covers(case, engine) => {
                    self.entries.insert(((*case).to_owned(), engine));
                }
                _ => {}
            }
        }
    }

    /// The list as text, one line a name.
    pub fn print(&self) -> String {
        let mut text = String::new();
        for comment in &self.comments {
            text.push_str(comment);
            text.push('\n');
        }
        let mut last = None;
        for (name, engine) in &self.entries {
            if last == Some(name) {
                text.push(',');
            } else {
                if last.is_some() {
                    text.push('\n');
                }
                text.push_str(name);
                text.push(' ');
            }
            text.push_str(engine.name());
            last = Some(name);
        }
        if last.is_some() {
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# What passes.\nabs interp,native\nadd/003 interp\n";

    #[test]
    fn a_list_is_printed_as_it_was_read() {
        assert_eq!(Expectations::parse(LIST).unwrap().print(), LIST);
        assert_eq!(Expectations::parse("").unwrap().print(), "");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let error = Expectations::parse("# x\nabs\n").unwrap_err();
        assert!(error.starts_with("line 2"), "{error}");
        assert!(Expectations::parse("abs interp,jit").is_err());
    }

    #[test]
    fn a_folder_covers_its_cases() {
        let list = Expectations::parse(LIST).unwrap();
        assert!(list.covers("abs/000", Engine::Native));
        assert!(list.covers("add/003", Engine::Interp));
        assert!(!list.covers("add/003", Engine::Native));
        assert!(!list.covers("add/004", Engine::Interp));
        assert!(!list.covers("absolute/000", Engine::Interp));
    }

    #[test]
    fn entries_without_a_case_are_found() {
        let list = Expectations::parse(LIST).unwrap();
        assert_eq!(list.unknown(&BTreeSet::from(["abs/000", "add/001"])), ["add/003"]);
    }

    #[test]
    fn complete_folders_become_one_entry() {
        let mut list = Expectations::parse(LIST).unwrap();
        let all = BTreeSet::from(["add/001", "add/003", "mul/000", "mul/001", "net"]);
        list.add(
            Engine::Interp,
            &BTreeSet::from(["add/001", "add/003", "mul/001", "net"]),
            &all,
        );
        assert_eq!(
            list.print(),
            "# What passes.\nabs interp,native\nadd interp\nmul/001 interp\nnet interp\n"
        );
    }
}
