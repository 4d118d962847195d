//! The list of conformance cases that are expected to fail: `tests/conformance/expected-failures.txt`.
//!
//! Every case that is not listed must pass on both engines. A line is `SUITE/CASE ENGINES REASON`, such as `ops/erf/003
//! interp,native bfloat16: PyTorch rounds intermediate results`. Lines that begin with `#` are comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::runner::Engine;

/// The expected failures, each with its reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedFailures {
    reasons: BTreeMap<(String, Engine), String>,
}

impl ExpectedFailures {
    /// Parses a list.
    ///
    /// # Errors
    /// A message with the line number of an entry that is malformed, has no reason, or is listed twice.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let complaint = |what: &str| format!("line {}: {what}: `{line}`", index + 1);
            let mut words = line.splitn(3, char::is_whitespace);
            let (Some(name), Some(engines)) = (words.next(), words.next()) else {
                return Err(complaint("expected `SUITE/CASE interp,native REASON`"));
            };
            let reason = words.next().unwrap_or_default().trim();
            if reason.is_empty() {
                return Err(complaint("an expected failure needs a reason"));
            }
            for engine in engines.split(',') {
                let engine = Engine::from_name(engine).ok_or_else(|| complaint("unknown engine"))?;
                let previous = list.reasons.insert((name.to_owned(), engine), reason.to_owned());
                if previous.is_some() {
                    return Err(complaint("listed twice"));
                }
            }
        }
        Ok(list)
    }

    /// Reads a list from a file.
    ///
    /// # Errors
    /// If the file cannot be read or parsed; the message contains the path.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns the reason why `SUITE/CASE` is expected to fail on `engine`; `None` if it must pass.
    pub fn reason(&self, case: &str, engine: Engine) -> Option<&str> {
        self.reasons.get(&(case.to_owned(), engine)).map(String::as_str)
    }

    /// Returns the entries of `suite` without a case: misspelt ones, or removed cases.
    pub fn unknown<'a>(&'a self, suite: &str, cases: &BTreeSet<&str>) -> BTreeSet<&'a str> {
        let names = self.reasons.keys().map(|(name, _)| name.as_str());
        names
            .filter(|name| {
                let case = name.strip_prefix(suite).and_then(|rest| rest.strip_prefix('/'));
                case.is_some_and(|case| !cases.contains(case))
            })
            .collect()
    }

    /// Returns the entries whose suite is not in `suites`.
    pub fn without_suite<'a>(&'a self, suites: &[&str]) -> BTreeSet<&'a str> {
        let names = self.reasons.keys().map(|(name, _)| name.as_str());
        names
            .filter(|name| !suites.contains(&name.split('/').next().unwrap_or_default()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# Comment.\n\nops/add/003 interp  half rounds twice\nmodels/net interp,native random\n";

    #[test]
    fn listed_cases_have_their_reason() {
        let list = ExpectedFailures::parse(LIST).unwrap();
        assert_eq!(list.reason("ops/add/003", Engine::Interp), Some("half rounds twice"));
        assert_eq!(list.reason("ops/add/003", Engine::Native), None);
        assert_eq!(list.reason("models/net", Engine::Native), Some("random"));
        assert_eq!(list.reason("ops/add", Engine::Interp), None);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let wrong = [
            ("# x\nops/abs/000\n", "line 2: expected"),
            ("ops/abs/000 interp\n", "line 1: an expected failure needs a reason"),
            ("ops/abs/000 jit why\n", "line 1: unknown engine"),
            (
                "ops/a/0 interp why\nops/a/0 native,interp why\n",
                "line 2: listed twice",
            ),
        ];
        for (text, expected) in wrong {
            let error = ExpectedFailures::parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn entries_without_a_case_are_found() {
        let list = ExpectedFailures::parse(LIST).unwrap();
        assert_eq!(
            list.unknown("ops", &BTreeSet::from(["add/004"])),
            BTreeSet::from(["ops/add/003"])
        );
        assert!(list.unknown("ops", &BTreeSet::from(["add/003"])).is_empty());
        assert_eq!(list.without_suite(&["ops", "fixtures"]), BTreeSet::from(["models/net"]));
    }
}
