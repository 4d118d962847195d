//! The text form of a schedule, for `--emit=schedule`: kernels in order, on buffers without addresses.

use crate::plan::listing::kernel_line;
use crate::schedule::{Home, Schedule, Slice};
use std::fmt::Write;

/// Returns a line for each buffer, and one for each kernel call with its operands.
///
/// ```text
/// b0: input 0
/// b1: workspace, 4096 bytes
/// gemm 7x128x64, B packed, tile 7x32 (b0, b2, b3+64) -> b1
/// ```
pub fn text(schedule: &Schedule) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for (i, home) in schedule.buffers.iter().enumerate() {
        let _ = match home {
            Home::Input(number) => writeln!(out, "b{i}: input {number}"),
            Home::Output(number) => writeln!(out, "b{i}: output {number}"),
            Home::Constant(offset) => writeln!(out, "b{i}: constants+{offset}"),
            Home::Prepared(offset) => writeln!(out, "b{i}: prepared+{offset}"),
            Home::Shared { index, offset } => writeln!(out, "b{i}: shared{index}+{offset}"),
            Home::Workspace { bytes } => writeln!(out, "b{i}: workspace, {bytes} bytes"),
        };
    }
    for step in &schedule.steps {
        let slice = |slice: &Slice| match slice.offset {
            0 => format!("b{}", slice.buffer),
            offset => format!("b{}+{offset}", slice.buffer),
        };
        let operands = step.buffers.iter().enumerate().filter(|(i, _)| *i != step.output);
        let operands: Vec<String> = operands.map(|(_, s)| slice(s)).collect();
        let result = step.buffers.get(step.output).map_or_else(String::new, slice);
        let kernel = kernel_line(&step.spec);
        let _ = writeln!(out, "{kernel} ({}) -> {result}", operands.join(", "));
    }
    out
}
