//! A plan as text: each call with its kernel, its fused expression, its memory, and the operators that it computes.

use crate::kernel::{KernelSpec, describe};
use crate::plan::kernel_name;
use crate::plan::{Buffer, Call, Plan, Port};
use std::fmt::{self, Write};

/// The listing of `plan`.
///
/// ```text
/// plan model: 3 calls of 3 kernels, 1.2 MFLOP, 4096 bytes of workspace, 85248 bytes of constants
/// input input0: float32[7, 64]
/// output output0: float32[7, 10]
///
/// call 0: model_kernel_0, 0.1 MFLOP, 1 task
///   gemm 7x128x64, B packed, tile 7x32
///   result: max((acc + op0[channel]), 0)
///   buffers: input0, constants+0, constants+32768, workspace+0
///   from: aten::linear (model.py:10:8), aten::relu (model.py:11:8)
/// ```
pub fn listing(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, plan);
    out
}

fn write(out: &mut String, plan: &Plan) -> fmt::Result {
    let total: i64 = plan
        .calls
        .iter()
        .filter_map(|c| kernel_of(plan, c))
        .map(|k| k.flops())
        .sum();
    let (calls, kernels) = plan.kernel_count();
    writeln!(
        out,
        "plan {}: {} calls of {} kernels, {}, {} bytes of workspace, {} bytes of constants",
        plan.name,
        calls,
        kernels,
        megaflop(total),
        plan.workspace_bytes,
        plan.constants.len() + plan.preparation.sources.len()
    )?;
    for (kind, ports) in [("input", &plan.inputs), ("output", &plan.outputs)] {
        for Port { name, dtype, shape } in ports {
            writeln!(out, "{kind} {name}: {}{:?}", dtype.python_name(), shape.as_slice())?;
        }
    }
    for (i, call) in plan.preparation.calls.iter().enumerate() {
        let Some(spec) = kernel_of(plan, call) else { continue };
        writeln!(out, "\nprepare {i}: {}", kernel_name(&plan.name, call.kernel as usize))?;
        kernel(out, spec)?;
        let buffers: Vec<String> = call.buffers.iter().map(|b| buffer(plan, *b)).collect();
        writeln!(out, "  buffers: {}", buffers.join(", ").replace("constants", "sources"))?;
    }
    for (i, call) in plan.calls.iter().enumerate() {
        let Some(spec) = kernel_of(plan, call) else { continue };
        let tasks: i64 = spec.phases().iter().sum();
        let plural = if tasks == 1 { "" } else { "s" };
        let name = kernel_name(&plan.name, call.kernel as usize);
        writeln!(
            out,
            "\ncall {i}: {name}, {}, {tasks} task{plural}",
            megaflop(spec.flops())
        )?;
        kernel(out, spec)?;
        let buffers: Vec<String> = call.buffers.iter().map(|b| buffer(plan, *b)).collect();
        writeln!(out, "  buffers: {}", buffers.join(", "))?;
        let origins: Vec<String> = plan
            .origins
            .get(i)
            .into_iter()
            .flatten()
            .map(ToString::to_string)
            .collect();
        if !origins.is_empty() {
            writeln!(out, "  from: {}", origins.join(", "))?;
        }
    }
    Ok(())
}

fn kernel_of<'p>(plan: &'p Plan, call: &Call) -> Option<&'p KernelSpec> {
    plan.kernels.get(call.kernel as usize)
}

fn megaflop(flops: i64) -> String {
    format!("{:.1} MFLOP", flops as f64 / 1e6)
}

/// Returns the family and sizes of a kernel, on one line.
pub fn kernel_line(spec: &KernelSpec) -> String {
    let mut line = FirstLine::default();
    // The line ends the description with an error.
    let _ = spec.describe(&mut line);
    line.0.trim().to_owned()
}

/// The text that is written up to the first newline, which is an error: a plan has a line for each kernel, but a description only if it is printed.
#[derive(Default)]
struct FirstLine(String);

impl Write for FirstLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let line = text.split('\n').next().unwrap_or_default();
        self.0.push_str(line);
        (line.len() == text.len()).then_some(()).ok_or(fmt::Error)
    }
}

fn kernel(out: &mut String, spec: &KernelSpec) -> fmt::Result {
    spec.describe(out)?;
    match spec.epilogue() {
        Some(e) => writeln!(out, "  result: {}", describe::epilogue(e)),
        None => Ok(()),
    }
}

fn buffer(plan: &Plan, b: Buffer) -> String {
    let named = |ports: &[Port], index: u32, offset: u64| {
        let name = ports.get(index as usize).map_or("?", |p| p.name.as_str());
        match offset {
            0 => name.to_owned(),
            _ => format!("{name}+{offset}"),
        }
    };
    match b {
        Buffer::Input { index, offset } => named(&plan.inputs, index, offset),
        Buffer::Output { index, offset } => named(&plan.outputs, index, offset),
        Buffer::Workspace { offset } => format!("workspace+{offset}"),
        Buffer::Constant { offset } => format!("constants+{offset}"),
        Buffer::Prepared { offset } => format!("prepared+{offset}"),
        Buffer::Shared { index, offset } => format!("shared{index}+{offset}"),
    }
}
