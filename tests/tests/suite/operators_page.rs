//! Generates `docs/operators.md` from the registry, and compares. `FRAZIL_BLESS=1` writes the page.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::{env, fs};

use frazil::Session;
use frazil_ir::{DType, TypeKind};
use frazil_recorded::workspace;
use frazil_runtime::args::{Arg, Args};
use frazil_runtime::eval::eval_program;
use frazil_runtime::op::{Form, Operator, Semantics};
use frazil_runtime::{Registry, Tensor};

const DTYPES: [(&str, DType); 6] = [
    ("bool", DType::Bool),
    ("int", DType::Long),
    ("half", DType::Half),
    ("bfloat16", DType::BFloat16),
    ("float", DType::Float),
    ("complex", DType::ComplexFloat),
];

#[test]
fn the_page_of_operators_is_true() {
    let made = page(Session::new().registry());
    let path = workspace::root().join("docs/operators.md");
    if env::var_os("FRAZIL_BLESS").is_some() {
        fs::write(&path, &made).expect("the page can be written");
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(there.lines()).find(|(a, b)| a != b);
    assert!(
        made == there,
        "docs/operators.md is out of date: FRAZIL_BLESS=1 cargo test -p frazil-tests --test suite operators_page; first difference: {differs:?}"
    );
}

/// The row of one operator on the page.
#[derive(Default)]
struct Row {
    forms: Vec<String>,
    covered: usize,
    overloads: usize,
    native: Option<&'static str>,
    dtypes: Option<String>,
}

fn page(registry: &Registry) -> String {
    registry.check_composites().expect("sources compile");
    let ctx = registry.ctx();
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let catalogue = registry.catalogue();
    for schema in catalogue.operators().flat_map(|name| catalogue.overloads(name)) {
        let name = ctx.name(schema.name);
        let tensors = schema
            .arguments
            .iter()
            .chain(&schema.returns)
            .any(|a| speaks_of_tensors(registry, a.ty));
        // An in-place operator without a functional variant has a row of its own.
        let derived = name
            .strip_suffix('_')
            .is_some_and(|base| ctx.find_symbol(base).is_some_and(|base| catalogue.contains(base)));
        let variant = derived || (schema.is_mutable() && !name.ends_with('_'));
        if !name.starts_with("aten::") || !tensors || variant {
            continue;
        }
        let row = rows.entry(name.to_string()).or_default();
        row.overloads += 1;
        let Some(operator) = registry.operator_of(schema.clone()) else {
            continue;
        };
        row.covered += 1;
        let form = operator.semantics().form().to_string();
        if !row.forms.contains(&form) {
            row.forms.push(form);
        }
        let native = match operator.semantics() {
            Semantics::Kernel(_) => "no",
            Semantics::Composite(_) => "as its parts",
            Semantics::Pointwise(_) | Semantics::Program(..) => "yes",
        };
        row.native.get_or_insert(native);
        if operator.semantics().form() == Form::Pointwise && row.dtypes.is_none() {
            row.dtypes = dtypes(registry, &operator);
        }
    }
    render(&rows)
}

fn speaks_of_tensors(registry: &Registry, ty: frazil_ir::TypeId) -> bool {
    match registry.ctx().type_kind(ty) {
        TypeKind::Tensor(_) => true,
        TypeKind::Optional(e) | TypeKind::List(e) => registry.ctx().is_tensor(e),
        _ => false,
    }
}

/// Returns the dtypes for which a formula over tensors alone can be evaluated, found by evaluation.
fn dtypes(registry: &Registry, operator: &Operator) -> Option<String> {
    let Semantics::Pointwise(entry) = operator.semantics() else {
        return None;
    };
    let ctx = registry.ctx();
    let works = |dtype: DType| {
        let mut args = Args::new(ctx, operator.schema());
        let mut tensors = Vec::new();
        for argument in &operator.schema().arguments {
            let operand = entry.operands.contains(&ctx.name(argument.name));
            if operand && ctx.is_tensor(argument.ty) {
                args.push_tensor(dtype, &[2]);
                tensors.push(Tensor::full(dtype, &[2], true.into()).ok()?);
            } else {
                args.push(argument.default.as_ref().and_then(Arg::from_constant)?);
            }
        }
        let program = operator.program(&args).ok()??;
        eval_program(&program, &tensors).ok()
    };
    let names: Vec<&str> = DTYPES
        .iter()
        .filter(|(_, d)| works(*d).is_some())
        .map(|(n, _)| *n)
        .collect();
    (!names.is_empty()).then(|| names.join(" "))
}

fn render(rows: &BTreeMap<String, Row>) -> String {
    let (covered, all) = (rows.values().filter(|r| r.covered > 0).count(), rows.len());
    let mut out = format!(
        "# Tensor operators\n\n\
         The interpreter runs {covered} of the {all} tensor operators in PyTorch's catalogue. The [end of the page](#without-semantics) lists the others.\n\n\
         - In-place forms and `out` overloads are derived from the functional form and not listed. Operators on numbers, strings and containers are in `dialects/prim`.\n\
         - *Form*: how the operator is defined ([Add an operator](add-an-operator.md) explains the forms).\n\
         - *Native*: what code generation does with a call: compiles it (yes), compiles the operators of its definition (as its parts), or calls the interpreter's\n  \
         kernel (no).\n\
         - *dtypes*: those for which a pointwise operator can be evaluated. For the other forms they depend on the arguments.\n\n\
         `tests/tests/suite/operators_page.rs` generates this page from the registry.\n\n\
         | operator | form | overloads | native | dtypes |\n| --- | --- | --- | --- | --- |\n"
    );
    for (name, row) in rows.iter().filter(|(_, r)| r.covered > 0) {
        let overloads = match row.covered == row.overloads {
            true => row.covered.to_string(),
            false => format!("{} of {}", row.covered, row.overloads),
        };
        let (forms, native) = (row.forms.join(", "), row.native.unwrap_or("no"));
        let dtypes = row.dtypes.as_deref().unwrap_or("");
        let _ = writeln!(out, "| `{name}` | {forms} | {overloads} | {native} | {dtypes} |");
    }
    out.push_str(
        "\n## Without semantics\n\nPrograms with these operators can be loaded, transformed and saved. Calling one is an error that names it.\n\n",
    );
    let missing: Vec<&str> = rows
        .iter()
        .filter(|(_, r)| r.covered == 0)
        .map(|(name, _)| name.trim_start_matches("aten::"))
        .collect();
    let mut line = String::new();
    for name in missing {
        if line.len() + name.len() > 130 {
            out.push_str(line.trim_end());
            out.push('\n');
            line.clear();
        }
        line.push_str(name);
        line.push(' ');
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}
