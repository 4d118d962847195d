//! Profiles of compiled functions: the time of each kernel.

use frazil_tensor_ir::graph::Origin;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Description of one call of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CallInfo {
    /// Number of its kernel in the plan.
    pub kernel: u32,
    /// The kernel's family and sizes.
    pub what: Arc<str>,
    /// Floating-point operations of the call.
    pub flops: i64,
    /// Bytes that the call reads and writes at least.
    pub bytes: i64,
    /// The operators that the call computes, with their source locations.
    pub origins: Vec<Origin>,
}

impl CallInfo {
    /// Returns the number of bytes in memory, with texts that it shares.
    pub(crate) fn bytes_in_memory(&self) -> usize {
        let bytes = |origin: &Origin| {
            let source = origin.source.as_ref().map_or(0, |source| source.len());
            size_of::<Origin>() + origin.operator.len() + source
        };
        let origins: usize = self.origins.iter().map(bytes).sum();
        size_of::<CallInfo>() + self.what.len() + origins
    }
}

/// The accumulated time of each call over several runs.
pub(crate) struct Clock {
    /// Sums over all runs.
    sums: Vec<Duration>,
    /// The steps of the last run: number of the call, start time and duration.
    last: Vec<(usize, Duration, Duration)>,
    begin: Instant,
    /// Number of runs that have started.
    pub runs: u32,
}

impl Clock {
    pub fn new(calls: usize) -> Clock {
        Clock {
            sums: vec![Duration::ZERO; calls],
            last: Vec::new(),
            begin: Instant::now(),
            runs: 0,
        }
    }

    /// Records the start of a run.
    pub fn start(&mut self) {
        self.runs += 1;
        self.last.clear();
        self.begin = Instant::now();
    }

    /// Records that a step of call `number`, which started at `start`, has ended.
    pub fn add(&mut self, number: usize, start: Instant) {
        let time = start.elapsed();
        self.sums[number] += time;
        self.last
            .push((number, start.saturating_duration_since(self.begin), time));
    }
}

/// A step of a run.
#[derive(Clone, Debug)]
pub struct Span {
    /// The kernel's family and sizes.
    pub kernel: String,
    /// Start time, relative to the start of the run.
    pub start: Duration,
    /// The duration.
    pub time: Duration,
    /// Floating-point operations of the whole call.
    pub flops: i64,
    /// The bytes that the whole call reads and writes at least.
    pub bytes: i64,
    /// The operators that the call computes.
    pub origins: Vec<String>,
}

/// The calls of one kernel together.
#[derive(Clone, Debug)]
pub struct Row {
    /// The kernel's family and sizes.
    pub kernel: String,
    /// Number of calls of the kernel in a run.
    pub calls: usize,
    /// Mean time of the calls in a run.
    pub time: Duration,
    /// Floating-point operations of these calls in a run.
    pub flops: i64,
    /// The bytes that they read and write at least.
    pub bytes: i64,
    /// The operators that the calls compute, each once.
    pub origins: Vec<String>,
}

/// The kernels of a function, sorted by time, the slowest first.
#[derive(Clone, Debug)]
pub struct Profile {
    /// One row per kernel.
    pub rows: Vec<Row>,
    /// Number of measured runs.
    pub runs: u32,
    /// Throughput of a matmul whose operands stay in cache on the same threads, in floating-point operations per second.
    pub peak: f64,
    /// The steps of the last run, in order.
    pub spans: Vec<Span>,
}

impl Profile {
    /// Returns the profile of `calls` with the times of `clock`.
    pub(crate) fn new(calls: &[CallInfo], clock: &Clock, peak: f64) -> Profile {
        let (times, runs) = (&clock.sums, clock.runs);
        let mut rows: Vec<(u32, Row)> = Vec::new();
        for (call, time) in calls.iter().zip(times) {
            let at = rows.iter().position(|(k, _)| *k == call.kernel).unwrap_or_else(|| {
                let row = Row {
                    kernel: call.what.to_string(),
                    calls: 0,
                    time: Duration::ZERO,
                    flops: 0,
                    bytes: 0,
                    origins: Vec::new(),
                };
                rows.push((call.kernel, row));
                rows.len() - 1
            });
            let row = &mut rows[at].1;
            row.calls += 1;
            row.time += *time / runs.max(1);
            row.flops += call.flops;
            row.bytes += call.bytes;
            for origin in &call.origins {
                let origin = origin.to_string();
                if !row.origins.contains(&origin) {
                    row.origins.push(origin);
                }
            }
        }
        let mut rows: Vec<Row> = rows.into_iter().map(|(_, r)| r).collect();
        rows.sort_by_key(|r| std::cmp::Reverse(r.time));
        let span = |&(number, start, time): &(usize, Duration, Duration)| {
            let call = calls.get(number)?;
            Some(Span {
                kernel: call.what.to_string(),
                start,
                time,
                flops: call.flops,
                bytes: call.bytes,
                origins: call.origins.iter().map(ToString::to_string).collect(),
            })
        };
        let spans = clock.last.iter().filter_map(span).collect();
        Profile {
            rows,
            runs,
            peak,
            spans,
        }
    }

    /// Returns the last run in the trace format that Chrome's trace viewer and Perfetto read: one event per step, with
    /// its operators.
    pub fn chrome_trace(&self) -> String {
        let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
        let event = |span: &Span| {
            serde_json::json!({
                "name": span.kernel,
                "cat": "kernel",
                "ph": "X",
                "pid": 1,
                "tid": 1,
                "ts": microseconds(span.start),
                "dur": microseconds(span.time),
                "args": { "flops": span.flops, "bytes": span.bytes, "operators": span.origins },
            })
        };
        let events: Vec<_> = self.spans.iter().map(event).collect();
        serde_json::json!({ "traceEvents": events, "displayTimeUnit": "ns" }).to_string()
    }
}

/// Maximum number of origins that are printed per row.
const MOST_ORIGINS: usize = 4;

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: f64 = self.rows.iter().map(|r| r.time.as_secs_f64()).sum();
        let flops: i64 = self.rows.iter().map(|r| r.flops).sum();
        writeln!(
            f,
            "{:.3} ms in kernels, mean of {} runs; {:.1} GFLOP/s; a matmul in cache reaches {:.1} GFLOP/s",
            total * 1e3,
            self.runs,
            flops as f64 / total.max(1e-12) / 1e9,
            self.peak / 1e9
        )?;
        writeln!(
            f,
            "{:>9} {:>6} {:>5} {:>8} {:>7} {:>6}  kernel",
            "time us", "share", "calls", "GFLOP/s", "GB/s", "peak"
        )?;
        for row in &self.rows {
            let seconds = row.time.as_secs_f64().max(1e-12);
            let rate = row.flops as f64 / seconds;
            writeln!(
                f,
                "{:9.1} {:5.1}% {:5} {:8.1} {:7.1} {:5.1}%  {}",
                seconds * 1e6,
                100.0 * seconds / total.max(1e-12),
                row.calls,
                rate / 1e9,
                row.bytes as f64 / seconds / 1e9,
                100.0 * rate / self.peak.max(1.0),
                row.kernel
            )?;
            let mut origins = row
                .origins
                .iter()
                .take(MOST_ORIGINS)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            if row.origins.len() > MOST_ORIGINS {
                write!(origins, " and {} more", row.origins.len() - MOST_ORIGINS)?;
            }
            if !origins.is_empty() {
                writeln!(f, "{:48}{origins}", "")?;
            }
        }
        Ok(())
    }
}
