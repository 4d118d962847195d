//! A plan as text: each call with its kernel, its fused expression, its memory, and the operators that it computes.

use crate::compile::kernel_name;
use crate::cost::flops;
use crate::kernel::{
    ActivationLayout, BlockedShape, Conv, ConvShape, Depthwise, Epilogue, EpilogueOperand, Gemm, GemmB, KernelSpec,
    Loops, Place, Pool, PoolKind, ReorderDirection,
};
use crate::plan::{Buffer, Call, Plan, Port};
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp, Number, UnaryOp};
use std::cell::Cell;
use std::fmt::{self, Display, Write};

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
    let total: i64 = plan.calls.iter().filter_map(|c| kernel_of(plan, c)).map(flops).sum();
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
            megaflop(flops(spec))
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

/// The family and sizes of a kernel, on one line.
pub fn kernel_line(spec: &KernelSpec) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = kernel(&mut text, spec);
    let mut lines = text.lines().map(str::trim);
    lines.next().unwrap_or_default().to_owned()
}

fn by(pair: [i64; 2]) -> String {
    format!("{}x{}", pair[0], pair[1])
}

fn blocked(s: &BlockedShape) -> String {
    format!(
        "{}x{}x{}x{} in blocks of {}",
        s.batch, s.channels, s.height, s.width, s.block
    )
}

fn kernel(out: &mut String, spec: &KernelSpec) -> fmt::Result {
    match spec {
        KernelSpec::Gemm(k) => gemm(out, k)?,
        KernelSpec::Conv(k) => conv(out, k)?,
        KernelSpec::Depthwise(k) => depthwise(out, k)?,
        KernelSpec::Pool(k) => pool(out, k)?,
        KernelSpec::WinogradWeights(k) => writeln!(
            out,
            "  winograd weights F({0}x{0}, 3x3), {1}x{2} channels, {3} at a time",
            k.form.outputs,
            k.out_channels,
            k.in_channels,
            k.width()
        )?,
        KernelSpec::Reorder(k) => {
            let way = match k.direction {
                ReorderDirection::ToBlocked => "plain to blocked",
                ReorderDirection::ToPlain => "blocked to plain",
            };
            writeln!(out, "  reorder {way}, {}", blocked(&k.blocked))?;
        }
        KernelSpec::CopyChannels(k) => writeln!(
            out,
            "  copy channels {}..{} of {} to {}.. of {}",
            k.from,
            k.from + k.count,
            blocked(&k.input),
            k.to,
            blocked(&k.output)
        )?,
        KernelSpec::Loops(k) => loops(out, k)?,
        KernelSpec::Host(_) => writeln!(out, "  a kernel of the host program")?,
    }
    match spec.epilogue() {
        Some(e) => writeln!(out, "  result: {}", epilogue(e)),
        None => Ok(()),
    }
}

fn gemm(out: &mut String, k: &Gemm) -> fmt::Result {
    write!(out, "  gemm {}x{}x{}", k.m, k.n, k.k)?;
    for b in &k.batch {
        write!(out, ", batch {}", b.extent)?;
    }
    match k.b {
        GemmB::Packed => write!(out, ", B packed")?,
        GemmB::Strided { k_stride, n_stride } => write!(out, ", B strides {k_stride}, {n_stride}")?,
    }
    writeln!(out, ", tile {}x{}", k.tile.rows, k.tile_columns())
}

fn windows(out: &mut String, s: &ConvShape) -> fmt::Result {
    write!(
        out,
        "{}x{}x{} -> {}x{}x{}, kernel {}, stride {}, padding {}",
        s.batch,
        s.in_channels,
        by(s.input),
        s.batch,
        s.out_channels,
        by(s.output),
        by(s.kernel),
        by(s.stride),
        by(s.padding)
    )?;
    if s.dilation != [1, 1] {
        write!(out, ", dilation {}", by(s.dilation))?;
    }
    if s.groups != 1 {
        write!(out, ", {} groups", s.groups)?;
    }
    Ok(())
}

fn conv(out: &mut String, k: &Conv) -> fmt::Result {
    write!(out, "  conv ")?;
    windows(out, &k.shape)?;
    let from = match k.input {
        ActivationLayout::Plain => "plain".to_owned(),
        ActivationLayout::Blocked { .. } => format!("blocks of {}", k.block),
    };
    write!(out, ", {from} -> blocks of {}", k.block)?;
    if !k.lattice.is_dense() {
        let [[rows, columns], [height, width]] = [k.lattice.step, k.lattice.image];
        write!(out, ", every {rows}x{columns} of {height}x{width}")?;
    }
    match &k.winograd {
        Some(w) => {
            write!(out, ", winograd F({}x{}, 3x3)", w.outputs, w.outputs)?;
            match k.channel_parts {
                1 => writeln!(out),
                parts => writeln!(out, ", channels in {parts} parts"),
            }
        }
        None => writeln!(out, ", tile {}x{}", k.tile.columns, k.tile.vectors * k.block),
    }
}

fn depthwise(out: &mut String, k: &Depthwise) -> fmt::Result {
    write!(out, "  depthwise conv ")?;
    windows(out, &k.shape)?;
    writeln!(out, ", blocks of {}, {} columns", k.block, k.columns)
}

fn pool(out: &mut String, k: &Pool) -> fmt::Result {
    let kind = match k.kind {
        PoolKind::Max => "max",
        PoolKind::Average { divisor: Some(1), .. } => "sum",
        PoolKind::Average { .. } => "average",
    };
    writeln!(
        out,
        "  {kind} pool {} -> {}, kernel {}, stride {}, padding {}",
        blocked(&k.input),
        by([k.output.height, k.output.width]),
        by(k.kernel),
        by(k.stride),
        by(k.padding)
    )
}

fn loops(out: &mut String, k: &Loops) -> fmt::Result {
    writeln!(out, "  loops over {:?}", k.outer.as_slice())?;
    let place = |p: Place| match p {
        Place::Argument(n) => format!("arg{n}"),
        Place::Local(n) => format!("row{n}"),
    };
    for s in &k.stages {
        write!(out, "    {:?}", s.inner.as_slice())?;
        if let Some(combine) = s.combine {
            let name = format!("{combine:?}").to_lowercase();
            write!(out, " {name} over {:?}", s.reduction.as_slice())?;
        }
        let names = |n: u32| match s.inputs.get(n as usize) {
            Some(r) => place(r.place),
            None => format!("in{n}"),
        };
        let kept = s.kept.as_ref().map(|k| place(k.output.place));
        if let (Some(kept), Some(k)) = (&kept, &s.kept) {
            write!(out, " of {kept} = {}", Infix(&k.body, &names))?;
        }
        let names = |n: u32| kept.clone().unwrap_or_else(|| names(n));
        write!(out, ": {} = ", place(s.output.place))?;
        match &s.finish {
            Some(finish) => {
                let finish_names = |n: u32| match n.checked_sub(1).and_then(|n| s.finish_inputs.get(n as usize)) {
                    Some(r) => place(r.place),
                    None => "acc".to_owned(),
                };
                writeln!(
                    out,
                    "{} where acc = {}",
                    Infix(finish, &finish_names),
                    Infix(&s.body, &names)
                )?;
            }
            None => writeln!(out, "{}", Infix(&s.body, &names))?,
        }
    }
    Ok(())
}

fn epilogue(e: &Epilogue) -> String {
    let names = |n: u32| match n.checked_sub(1) {
        None => "acc".to_owned(),
        Some(i) => {
            let kind = match e.operands.get(i as usize) {
                Some(EpilogueOperand::Scalar) => "",
                Some(EpilogueOperand::Channel) => "[channel]",
                Some(EpilogueOperand::Row) => "[row]",
                Some(EpilogueOperand::Elementwise) => "[element]",
                None => "?",
            };
            format!("op{i}{kind}")
        }
    };
    Infix(&e.expr, &names).to_string()
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
    }
}

/// An expression in infix notation, with names for its inputs.
struct Infix<'a>(&'a Expr, &'a dyn Fn(u32) -> String);

impl Display for Infix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.nodes().len().checked_sub(1) {
            Some(root) => f.write_str(&self.node(root as u32, &Cell::new(MAX_OPERATIONS))),
            None => Ok(()),
        }
    }
}

/// Operations of an expression that are written out. Expressions share operations, text does not.
const MAX_OPERATIONS: usize = 60;

impl Infix<'_> {
    fn node(&self, id: u32, left: &Cell<usize>) -> String {
        let Some(node) = self.0.nodes().get(id as usize) else {
            return "?".to_owned();
        };
        let Some(rest) = left.get().checked_sub(1) else {
            return "...".to_owned();
        };
        left.set(rest);
        let at = |id| self.node(id, left);
        match node.op {
            ExprOp::Input(n) => (self.1)(n),
            ExprOp::Const(Number::Int(i)) => i.to_string(),
            ExprOp::Const(Number::Float(x)) => x.to_string(),
            ExprOp::Unary(UnaryOp::Neg, a) => format!("-{}", at(a)),
            ExprOp::Unary(op, a) => format!("{}({})", format!("{op:?}").to_lowercase(), at(a)),
            ExprOp::Binary(op, a, b) => match symbol(op) {
                Some(s) => format!("({} {s} {})", at(a), at(b)),
                None => format!("{}({}, {})", format!("{op:?}").to_lowercase(), at(a), at(b)),
            },
            ExprOp::Fma(a, b, c) => format!("fma({}, {}, {})", at(a), at(b), at(c)),
            ExprOp::Select(c, a, b) => format!("select({}, {}, {})", at(c), at(a), at(b)),
            ExprOp::Cast(a) => format!("{}({})", node.dtype.python_name(), at(a)),
            ExprOp::Index(n) => format!("i{n}"),
        }
    }
}

fn symbol(op: BinaryOp) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        _ => return None,
    })
}
