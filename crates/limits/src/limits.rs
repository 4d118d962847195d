//! The limits, and their text form.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// Limits on the work for an input; `None` means no limit. Fixed bounds that keep every input from exhausting the machine apply independently.
///
/// The text form is a list: `untrusted` for all limits of [`Limits::untrusted`], and `NAME=VALUE`, where names are as below with `-` for `_`. Bytes may end
/// in `K`, `M` or `G` (powers of 1024), times in `s` or `ms`; the default unit is seconds.
///
/// ```
/// use frazil_limits::Limits;
/// use std::time::Duration;
///
/// let limits: Limits = "memory=512M,pass-time=1500ms,elements=1000000".parse()?;
/// assert_eq!(limits.memory, Some(512 << 20));
/// assert_eq!(limits.pass_time, Some(Duration::from_millis(1500)));
/// assert_eq!(limits.nodes, None);
/// assert_eq!(limits.to_string(), "memory=536870912,pass-time=1.5s,elements=1000000");
/// # Ok::<(), frazil_limits::LimitsError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum growth of the process in bytes during one phase. It counts private memory as the system reports it, including concurrent allocations of other
    /// threads. Weights that are mapped or unread are not counted. A single request above the limit is refused before the allocation.
    pub memory: Option<u64>,
    /// Maximum number of nodes of all graphs of a module together, after loading and after each pass.
    pub nodes: Option<u64>,
    /// Maximum time for reading an archive, text or source.
    pub load_time: Option<Duration>,
    /// Maximum time for freezing a module.
    pub freeze_time: Option<Duration>,
    /// Maximum time for each other pass.
    pub pass_time: Option<Duration>,
    /// Maximum time for compiling a method for one call signature.
    pub compile_time: Option<Duration>,
    /// Maximum time for a call, checked between operators in the interpreter and between kernels in native code.
    pub call_time: Option<Duration>,
    /// Maximum number of iterations of one loop that are unrolled, and of rounds of the pipelines of `repeat`.
    pub repetitions: Option<u64>,
    /// Maximum number of elements of an operator's result.
    pub elements: Option<u64>,
}

/// A syntax error in the text form of [`Limits`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LimitsError {
    /// A name that is not the name of a limit.
    #[error("there is no limit `{0}`; there are: untrusted, {NAMES}")]
    Name(String),
    /// A value that is not a number with one of the limit's units.
    #[error("`{value}` is not {expected}, which `{name}` takes")]
    Value {
        /// The limit.
        name: String,
        /// The expected form.
        expected: &'static str,
        /// The given value.
        value: String,
    },
}

const NAMES: &str = "memory, nodes, load-time, freeze-time, pass-time, compile-time, call-time, repetitions, elements";

impl Limits {
    /// No limits.
    pub const NONE: Limits = Limits {
        memory: None,
        nodes: None,
        load_time: None,
        freeze_time: None,
        pass_time: None,
        compile_time: None,
        call_time: None,
        repetitions: None,
        elements: None,
    };

    /// Returns limits for untrusted input. Published models are far below them.
    #[must_use]
    pub const fn untrusted() -> Limits {
        Limits {
            memory: Some(4 << 30),
            nodes: Some(1_000_000),
            load_time: Some(Duration::from_secs(10)),
            freeze_time: Some(Duration::from_secs(20)),
            pass_time: Some(Duration::from_secs(10)),
            compile_time: Some(Duration::from_secs(60)),
            call_time: Some(Duration::from_secs(60)),
            repetitions: Some(100),
            elements: Some(1 << 28),
        }
    }

    /// Sets one limit by its name.
    fn set(&mut self, name: &str, value: &str) -> Result<(), LimitsError> {
        let wrong = |expected| LimitsError::Value {
            name: name.to_owned(),
            expected,
            value: value.to_owned(),
        };
        let count = || value.parse().map(Some).map_err(|_| wrong("a number"));
        let time = || {
            seconds(value)
                .map(Some)
                .ok_or_else(|| wrong("a time (10, 10s or 500ms)"))
        };
        match name {
            "memory" => {
                self.memory = Some(parse_bytes(value).ok_or_else(|| wrong("a size in bytes (1000, 512M or 2G)"))?)
            }
            "nodes" => self.nodes = count()?,
            "load-time" => self.load_time = time()?,
            "freeze-time" => self.freeze_time = time()?,
            "pass-time" => self.pass_time = time()?,
            "compile-time" => self.compile_time = time()?,
            "call-time" => self.call_time = time()?,
            "repetitions" => self.repetitions = count()?,
            "elements" => self.elements = count()?,
            _ => return Err(LimitsError::Name(name.to_owned())),
        }
        Ok(())
    }
}

/// Parses a number of bytes, which may have the unit `K`, `M` or `G` (powers of 1024). Returns `None` for other text, and for numbers that are too large.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let unit = |letter: char| match letter.to_ascii_uppercase() {
        'K' => Some(1 << 10),
        'M' => Some(1 << 20),
        'G' => Some(1 << 30),
        _ => None,
    };
    match text.chars().last().and_then(unit) {
        Some(unit) => text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(unit),
        None => text.parse().ok(),
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()
}

impl FromStr for Limits {
    type Err = LimitsError;

    fn from_str(text: &str) -> Result<Limits, LimitsError> {
        let mut limits = Limits::NONE;
        for part in text.split(',') {
            match part.split_once('=') {
                Some((name, value)) => limits.set(name, value)?,
                None if part == "untrusted" => limits = Limits::untrusted(),
                None => return Err(LimitsError::Name(part.to_owned())),
            }
        }
        Ok(limits)
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |limit: Option<u64>| limit.map(|n| n.to_string());
        let time = |limit: Option<Duration>| limit.map(|t| format!("{}s", t.as_secs_f64()));
        let all = [
            ("memory", count(self.memory)),
            ("nodes", count(self.nodes)),
            ("load-time", time(self.load_time)),
            ("freeze-time", time(self.freeze_time)),
            ("pass-time", time(self.pass_time)),
            ("compile-time", time(self.compile_time)),
            ("call-time", time(self.call_time)),
            ("repetitions", count(self.repetitions)),
            ("elements", count(self.elements)),
        ];
        let set = all.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        for (i, (name, value)) in set.enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written() {
        for text in [
            "untrusted",
            "untrusted,memory=1G",
            "nodes=7,call-time=0.25s",
            "repetitions=0,elements=9",
        ] {
            let limits: Limits = text.parse().unwrap();
            assert_eq!(limits.to_string().parse(), Ok(limits), "{text}");
        }
        assert_eq!(
            "load-time=3,memory=64k".parse::<Limits>().unwrap().memory,
            Some(64 << 10)
        );
    }

    #[test]
    fn what_is_no_limit_is_refused_by_name() {
        let error = |text: &str| text.parse::<Limits>().unwrap_err().to_string();
        assert!(error("trusted").starts_with("there is no limit `trusted`; there are: untrusted, memory, nodes"));
        assert!(error("").starts_with("there is no limit ``"));
        assert!(error("untrusted=1").starts_with("there is no limit `untrusted`"));
        assert_eq!(
            error("memory=lots"),
            "`lots` is not a size in bytes (1000, 512M or 2G), which `memory` takes"
        );
        for text in [
            "memory=99999999999G",
            "memory=",
            "memory=-1",
            "pass-time=-1",
            "pass-time=inf",
            "nodes=1.5",
            "memory=é",
        ] {
            assert!(
                matches!(text.parse::<Limits>(), Err(LimitsError::Value { .. })),
                "{text}"
            );
        }
    }
}
