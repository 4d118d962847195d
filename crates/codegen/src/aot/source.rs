//! The C file of a compiled library: its tables and its interface.

use super::header::dtype_name;
use frazil_executor::memory::PAGE;
use frazil_executor::program::{kernel_name, phase_name};
use frazil_planner::plan::{Buffer, Call, Plan, Port};
use std::fmt::Write;

/// Writing to a string cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => {
        let _ = writeln!($out, $($arguments)*);
    };
}

/// Returns the C file of the plan's library. It expects `model.h`, `constants.bin` and `sources.bin` in the directory where it is compiled.
pub fn source(plan: &Plan) -> String {
    let mut out = start(plan);
    let shapes = |ports: &[Port]| ports.iter().map(|port| port.shape.to_vec()).collect::<Vec<_>>();
    ports(&mut out, "input", &plan.inputs, &shapes(&plan.inputs));
    ports(&mut out, "output", plan.results(), &shapes(plan.results()));
    step_table(&mut out, plan, "", &plan.calls);
    let calls = plan.calls.iter().chain(&plan.preparation.calls);
    most_buffers(&mut out, calls.map(|c| c.buffers.len()));
    put!(out, "#define SIZE_COUNT 0\n");
    out + &interface(plan)
}

/// Returns the start of the C file: declarations of the runtime and of all kernels, constants, and the steps of the preparation.
pub fn start(plan: &Plan) -> String {
    let mut out = String::from(
        "#include \"model.h\"\n#include <pthread.h>\n#include <stdarg.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         #include <sys/mman.h>\n\n",
    );
    out.push_str(RUNTIME);
    constants(&mut out, plan);
    put!(out, "#define CHECK_COUNT {}\n", plan.checks.len());
    for (i, spec) in plan.kernels.iter().enumerate() {
        for phase in 0..spec.phases().len() {
            let name = phase_name(&kernel_name(&plan.name, i), phase);
            put!(out, "void {name}(uint8_t *const *buffers, int64_t begin, int64_t end);");
        }
    }
    if plan.preparation.bytes > 0 {
        step_table(&mut out, plan, "prepare_", &plan.preparation.calls);
    }
    out
}

/// Appends the largest number of buffers of a step to `out`; `counts` are those of all steps.
pub fn most_buffers(out: &mut String, counts: impl Iterator<Item = usize>) {
    put!(out, "#define MOST_BUFFERS {}\n", counts.max().unwrap_or(0).max(1));
}

/// Returns the functions of the interface, the end of the C file.
pub fn interface(plan: &Plan) -> String {
    let name = &plan.name;
    INTERFACE.replace("MODEL", name).replace("UPPER", &name.to_uppercase())
}

fn constants(out: &mut String, plan: &Plan) {
    put!(
        out,
        r#"__asm__(".pushsection .rodata.frazil_constants,\"a\",@progbits\n"
        ".balign 64\n"
        "frazil_constants:\n"
        ".incbin \"constants.bin\"\n"
        ".popsection\n");
extern const unsigned char frazil_constants[] __attribute__((visibility("hidden")));
#define WORKSPACE_BYTES ((size_t){})
#define PREPARED_BYTES {}
"#,
        plan.workspace_bytes,
        plan.preparation.bytes
    );
    if plan.preparation.bytes > 0 {
        // Aligned to pages, which are released once they have been read.
        put!(
            out,
            r#"__asm__(".pushsection .rodata.frazil_sources,\"a\",@progbits\n"
        ".balign {PAGE}\n"
        "frazil_sources:\n"
        ".incbin \"sources.bin\"\n"
        ".popsection\n");
extern const unsigned char frazil_sources[] __attribute__((visibility("hidden")));
#define SOURCE_BYTES {}
#define SOURCE_PAGE {PAGE}
"#,
            plan.preparation.sources.len()
        );
    }
}

/// Appends the descriptions of inputs or outputs (`kind`) to `out`. `shapes` are the sizes in them, -1 for those that callers choose.
pub fn ports(out: &mut String, kind: &str, ports: &[Port], shapes: &[Vec<i64>]) {
    for (i, shape) in shapes.iter().enumerate() {
        let shape: Vec<String> = shape.iter().map(|d| format!("{d}, ")).collect();
        put!(
            out,
            "static const int64_t {kind}_shape_{i}[] = {{ {}0 }};",
            shape.concat()
        );
    }
    put!(out, "#define {}_COUNT {}", kind.to_uppercase(), ports.len());
    put!(out, "static const frazil_tensor_info {kind}_table[] = {{");
    for (i, p) in ports.iter().enumerate() {
        let (dtype, name) = (dtype_name(p.dtype), c_string(&p.name));
        put!(
            out,
            "  {{ {name}, {dtype}, {}, {kind}_shape_{i}, {} }},",
            p.shape.len(),
            p.bytes()
        );
    }
    put!(out, "  {{ 0, FRAZIL_UINT8, 0, 0, 0 }}\n}};\n");
}

/// Returns `text` as a C string literal.
pub fn c_string(text: &str) -> String {
    let escaped = text.bytes().map(|b| match b {
        b'"' | b'\\' => format!("\\{}", b as char),
        b'?' => "\\?".to_owned(),
        0x20..0x7f => (b as char).to_string(),
        b => format!("\\{b:03o}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// The C declarations of the runtime, generated from the Rust ones.
const RUNTIME: &str = include_str!("../../../rt/include/frazil_rt.h");

/// Appends the table of steps for `calls`, and the number of steps, to `out`. All names begin with `prefix`.
fn step_table(out: &mut String, plan: &Plan, prefix: &str, calls: &[Call]) {
    put!(out, "\nstatic const frazil_rt_buffer {prefix}buffers[] = {{");
    for buffer in calls.iter().flat_map(|c| &c.buffers) {
        let (kind, index, offset) = match *buffer {
            Buffer::Input { index, offset } => ("INPUT", index, offset),
            Buffer::Output { index, offset } => ("OUTPUT", index, offset),
            Buffer::Workspace { offset } => ("WORKSPACE", 0, offset),
            Buffer::Constant { offset } => ("CONSTANT", 0, offset),
            Buffer::Prepared { offset } => ("PREPARED", 0, offset),
            // Plans of libraries have none.
            Buffer::Shared { .. } => continue,
        };
        put!(out, "  {{ FRAZIL_RT_BUFFER_KIND_{kind}, {index}, {offset}u }},");
    }
    put!(
        out,
        "  {{ FRAZIL_RT_BUFFER_KIND_INPUT, 0, 0 }}\n}};\n\nstatic const frazil_rt_step {prefix}steps[] = {{"
    );
    let (mut first, mut count) = (0, 0);
    for call in calls {
        let Some(spec) = plan.kernels.get(call.kernel as usize) else {
            continue;
        };
        for (phase, tasks) in spec.phases().into_iter().enumerate() {
            let name = phase_name(&kernel_name(&plan.name, call.kernel as usize), phase);
            let buffers = call.buffers.len();
            let [backward, turns] = [call.order.backward, call.order.turns].map(u32::from);
            put!(
                out,
                "  {{ {name}, {tasks}, {{ {backward}, {turns} }}, {prefix}buffers + {first}, {buffers} }},"
            );
            count += 1;
        }
        first += call.buffers.len();
    }
    put!(
        out,
        "  {{ 0, 0, {{ 0, 0 }}, 0, 0 }}\n}};\nenum {{ {prefix}step_count = {count} }};\n"
    );
}

/// The functions of the interface.
const INTERFACE: &str = include_str!("interface.c");
