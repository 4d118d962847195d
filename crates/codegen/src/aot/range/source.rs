//! The C file and the header of a library for ranges.

use super::form::{Form, Place};
use super::tables::{FormValues, Table, Value};
use super::{Dimension, RangePlan};
use crate::aot::header::{Interface, header_of};
use crate::aot::source::{c_string, interface, most_buffers, ports, start};
use frazil_executor::program::{kernel_name, phase_name};
use frazil_planner::plan::Port;
use std::fmt::Write;

/// Writing to a string cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => {
        let _ = writeln!($out, $($arguments)*);
    };
}

/// The types and functions that read the forms.
const TABLES: &str = include_str!("tables.c");

/// The C file of a library, and the bytes that it includes.
pub struct Source {
    /// The text. It expects `model.h`, `constants.bin`, `sources.bin` and `tables.bin` in the directory where it is compiled.
    pub text: String,
    /// The contents of `tables.bin`.
    pub tables: Vec<u8>,
}

/// Returns the header of the library.
pub fn header(ranged: &RangePlan) -> String {
    let names = |dimension: &Dimension| match *dimension {
        Dimension::Fixed(size) => size.to_string(),
        Dimension::Ranged(index) => ranged
            .grid
            .ranges()
            .get(index)
            .map_or(String::new(), |r| r.name.clone()),
    };
    let inputs = ranged.inputs.iter().map(|dims| dims.iter().map(names).collect());
    header_of(
        &ranged.plan,
        &Interface {
            inputs: inputs.collect(),
            outputs: ranged.results.clone(),
            ranges: ranged.grid.ranges(),
        },
    )
}

/// Returns the C file of the library.
pub fn source(ranged: &RangePlan) -> Source {
    let RangePlan { plan, grid, .. } = ranged;
    let mut out = start(plan);
    let input_shapes: Vec<Vec<i64>> = ranged
        .inputs
        .iter()
        .map(|dims| dims.iter().map(shown).collect())
        .collect();
    ports(&mut out, "input", &plan.inputs, &input_shapes);
    let output_shapes = ranged
        .results
        .iter()
        .map(|dims| dims.iter().map(|d| d.parse().unwrap_or(-1)).collect());
    ports(&mut out, "output", plan.results(), &output_shapes.collect::<Vec<_>>());
    let (tables, starts) = table_bytes(&ranged.tables);
    if !tables.is_empty() {
        out.push_str(INCLUDE_TABLES);
    }
    let (first_kernels, kernels) = ranged.kernels();
    let steps = ranged.steps(&first_kernels);
    let runs = form_runs(&ranged.forms, grid.points());
    let most = |count: fn(&FormSteps) -> usize| steps.iter().map(count).max().unwrap_or(0);
    let ranks = |ports: &[Port]| ports.iter().map(|p| p.shape.len()).sum::<usize>();
    for (name, value) in [
        ("KERNEL_COUNT", kernels.len()),
        ("SIZE_COUNT", grid.ranges().len()),
        ("FORM_COUNT", ranged.forms.len()),
        ("RUN_COUNT", runs.len()),
        ("SHAPE_COUNT", ranks(&plan.inputs) + ranks(plan.results())),
        ("MOST_STEPS", most(|form| form.steps.len())),
        ("MOST_FORM_BUFFERS", most(|form| form.buffers.len())),
        ("MOST_NUMBERS", most(|form| form.numbers.len())),
        (
            "MOST_VALUES",
            ranged.values.iter().map(|v| v.values.len()).max().unwrap_or(0),
        ),
    ] {
        put!(out, "#define {name} {value}");
    }
    let of_steps = steps.iter().flat_map(|form| form.steps.iter().map(|step| step.buffers));
    most_buffers(
        &mut out,
        of_steps.chain(plan.preparation.calls.iter().map(|c| c.buffers.len())),
    );
    out.push_str(TABLES);
    for (i, (values, form)) in ranged.values.iter().zip(&steps).enumerate() {
        evaluation(&mut out, i, values, &ranged.tables, &starts, grid.ranges().len());
        form.write(&mut out, i);
    }
    put!(out, "static const frazil_rt_kernel kernels[KERNEL_COUNT + 1] = {{");
    for name in &kernels {
        put!(out, "  {name},");
    }
    put!(out, "  0\n}};\nstatic const size_range size_ranges[SIZE_COUNT] = {{");
    for range in grid.ranges() {
        put!(out, "  {{ {}, {}, {} }},", c_string(&range.name), range.low, range.high);
    }
    put!(out, "}};\nstatic const size_form forms[FORM_COUNT] = {{");
    for (i, form) in steps.iter().enumerate() {
        let counts = [form.steps.len(), form.buffers.len(), form.numbers.len()].map(|n| n.to_string());
        put!(
            out,
            "  {{ evaluate_{i}, form_{i}_steps, form_{i}_buffers, form_{i}_numbers, form_{i}_shapes, {} }},",
            counts.join(", ")
        );
    }
    put!(out, "}};\nstatic const form_run form_runs[RUN_COUNT] = {{");
    for (first, form) in runs {
        put!(out, "  {{ {first}, {form} }},");
    }
    put!(out, "}};");
    for (i, dims) in ranged.inputs.iter().enumerate() {
        let dims = dims.iter().map(|dimension| match *dimension {
            Dimension::Fixed(_) => "-1, ".to_owned(),
            Dimension::Ranged(index) => format!("{index}, "),
        });
        put!(
            out,
            "static const int32_t input_sizes_{i}[] = {{ {}-1 }};",
            dims.collect::<String>()
        );
    }
    let names = (0..ranged.inputs.len()).map(|i| format!("input_sizes_{i}, "));
    put!(
        out,
        "static const int32_t *const input_sizes[INPUT_COUNT + 1] = {{ {}0 }};\n",
        names.collect::<String>()
    );
    out.push_str(&interface(plan));
    Source { text: out, tables }
}

/// Includes the tables of integers.
const INCLUDE_TABLES: &str = r#"__asm__(".pushsection .rodata.frazil_tables,\"a\",@progbits\n"
        ".balign 64\n"
        "frazil_tables:\n"
        ".incbin \"tables.bin\"\n"
        ".popsection\n");
extern const unsigned char frazil_tables[] __attribute__((visibility("hidden")));
"#;

/// Returns the size of a dimension as the library describes it: -1 if callers choose it.
fn shown(dimension: &Dimension) -> i64 {
    match *dimension {
        Dimension::Fixed(size) => size,
        Dimension::Ranged(_) => -1,
    }
}

/// Returns the contents of all tables, and the offset of each in bytes.
fn table_bytes(tables: &[Table]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = Vec::new();
    let starts = tables.iter().map(|table| {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let start = bytes.len();
        table.write(&mut bytes);
        start
    });
    let starts = starts.collect();
    (bytes, starts)
}

/// Returns the form of each point, run-length encoded: for each run of points with the same form, the first point and the index of the form.
fn form_runs(forms: &[Form], points: usize) -> Vec<(usize, usize)> {
    let mut form_of = vec![0; points];
    for (i, form) in forms.iter().enumerate() {
        for &point in &form.points {
            if let Some(place) = form_of.get_mut(point as usize) {
                *place = i;
            }
        }
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (point, form) in form_of.into_iter().enumerate() {
        if runs.last().is_none_or(|(_, last)| *last != form) {
            runs.push((point, form));
        }
    }
    runs
}

/// Appends the function that evaluates the integers of form `i`. `starts` are the offsets of the tables in bytes.
fn evaluation(out: &mut String, i: usize, values: &FormValues, tables: &[Table], starts: &[usize], sizes: usize) {
    let names: Vec<String> = (0..sizes).map(|size| format!("s[{size}]")).collect();
    put!(
        out,
        "\nstatic void evaluate_{i}(const int64_t *s, size_t point, int64_t *v) {{"
    );
    put!(out, "  (void)s, (void)point, (void)v;");
    for (index, value) in values.values.iter().enumerate() {
        let text = match value {
            Value::Expr(expr) => expr.text(&names),
            Value::Table(number) => {
                let width = tables.get(*number).map_or(8, |table| table.width);
                let element = match width {
                    1 => "uint8_t",
                    2 => "uint16_t",
                    4 => "uint32_t",
                    _ => "int64_t",
                };
                let start = starts.get(*number).copied().unwrap_or_default();
                format!("((const {element} *)(frazil_tables + {start}))[point]")
            }
        };
        put!(out, "  v[{index}] = {text};");
    }
    put!(out, "}}");
}

/// The steps of a form. Numbers of tasks, orders, offsets, arguments and sizes are indices into [`FormValues::values`].
struct FormSteps {
    steps: Vec<FormStep>,
    buffers: Vec<(&'static str, usize, usize)>,
    numbers: Vec<usize>,
    shapes: Vec<usize>,
}

struct FormStep {
    kernel: usize,
    tasks: usize,
    order: usize,
    first_buffer: usize,
    buffers: usize,
}

impl RangePlan {
    /// Returns, for each code, the index of the function of its first phase; and the names of these functions, one for each phase of each code.
    fn kernels(&self) -> (Vec<usize>, Vec<String>) {
        let mut names = Vec::new();
        let first = self.codes.all.iter().enumerate().map(|(i, code)| {
            let first = names.len();
            let name = kernel_name(&self.plan.name, i);
            names.extend((0..code.kernel().phases().len()).map(|phase| phase_name(&name, phase)));
            first
        });
        (first.collect(), names)
    }

    /// Returns the steps of each form. `first_kernels` are the indices that [`RangePlan::kernels`] returns.
    fn steps(&self, first_kernels: &[usize]) -> Vec<FormSteps> {
        let codes = self.codes.of_calls.iter();
        let forms = self.forms.iter().zip(&self.values).zip(codes);
        forms
            .map(|((form, values), codes)| self.form_steps(form, values, codes, first_kernels))
            .collect()
    }

    fn form_steps(&self, form: &Form, values: &FormValues, codes: &[usize], first_kernels: &[usize]) -> FormSteps {
        let value = |column: usize| values.of_columns.get(column).copied().unwrap_or_default();
        let (calls, shapes) = form.layout();
        let mut out = FormSteps {
            steps: Vec::new(),
            buffers: Vec::new(),
            numbers: Vec::new(),
            shapes: shapes.map(value).collect(),
        };
        for ((call, columns), &code) in form.calls.iter().zip(calls).zip(codes) {
            let first_buffer = out.buffers.len();
            for (place, column) in call.places.iter().zip(columns.offsets) {
                let (kind, index) = match *place {
                    Place::Input(index) => ("INPUT", index as usize),
                    Place::Output(index) => ("OUTPUT", index as usize),
                    Place::Workspace => ("WORKSPACE", 0),
                    Place::Constant => ("CONSTANT", 0),
                    Place::Prepared => ("PREPARED", 0),
                };
                out.buffers.push((kind, index, value(column)));
            }
            let is_argument = self
                .codes
                .all
                .get(code)
                .map(|code| code.is_argument())
                .unwrap_or_default();
            let first_number = out.numbers.len();
            let arguments = columns.numbers.zip(is_argument).filter(|(_, is)| **is);
            out.numbers.extend(arguments.map(|(column, _)| value(column)));
            // The kernel's integers are its last buffer.
            if out.numbers.len() > first_number {
                out.buffers.push(("NUMBERS", first_number, 0));
            }
            for (phase, tasks) in columns.tasks.enumerate() {
                out.steps.push(FormStep {
                    kernel: first_kernels.get(code).map_or(0, |first| first + phase),
                    tasks: value(tasks),
                    order: value(columns.order),
                    first_buffer,
                    buffers: out.buffers.len() - first_buffer,
                });
            }
        }
        out
    }
}

impl FormSteps {
    /// Appends the tables of form `i` to `out`. Each has one additional element, because C has no empty arrays.
    fn write(&self, out: &mut String, i: usize) {
        put!(out, "static const form_step form_{i}_steps[] = {{");
        for step in &self.steps {
            let FormStep {
                kernel,
                tasks,
                order,
                first_buffer,
                buffers,
            } = step;
            put!(out, "  {{ {kernel}, {first_buffer}, {tasks}, {order}, {buffers} }},");
        }
        put!(
            out,
            "  {{ 0, 0, 0, 0, 0 }}\n}};\nstatic const form_buffer form_{i}_buffers[] = {{"
        );
        for (kind, index, offset) in &self.buffers {
            put!(out, "  {{ {index}, {offset}, FRAZIL_RT_BUFFER_KIND_{kind} }},");
        }
        put!(out, "  {{ 0, 0, 0 }}\n}};");
        for (name, indices) in [("numbers", &self.numbers), ("shapes", &self.shapes)] {
            let indices: String = indices.iter().map(|i| format!("{i}, ")).collect();
            put!(out, "static const value_index form_{i}_{name}[] = {{ {indices}0 }};");
        }
    }
}
