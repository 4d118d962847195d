//! Libraries for ranges of sizes.
//!
//! The library is planned for every combination of sizes when it is made ([`grid`]). Plans that differ only in integers have one [form]. The integers
//! are [fitted](fit) by expressions in the sizes, and become [tables] where no expression has the right values at all points. In the library, a C file
//! evaluates the integers for the sizes of a call and fills the tables of steps from them ([`source`]); neither planner nor compiler is needed.

mod codes;
mod constants;
mod error;
mod fit;
mod form;
mod grid;
mod source;
mod tables;

pub use error::RangeError;
pub use grid::{MOST_POINTS, SizeRange};

use grid::Grid;

use super::EmitFileError;
use crate::backend::CompileError;
use crate::options::BackendOptions;
use codes::Codes;
use fit::{Expr, Fitter};
use form::{Form, Forms};
use frazil_planner::LowerError;
use frazil_planner::kernel::KernelCode;
use frazil_planner::packed::PackedConstants;
use frazil_planner::plan::{Plan, kernel_name};
use tables::{FormValues, Table};
use tracing::{debug, info_span};

/// Maximum number of different kernels of a library. Each takes about 50 ms to compile.
const MOST_CODES: usize = 4096;

/// A size of an input of a library for ranges.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InputSize {
    /// The same size in all calls, in elements.
    Fixed(i64),
    /// The size of this name. Dimensions with the same name have the same size.
    Named(String),
}

/// An [`InputSize`] with its name resolved to the index of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    /// The same size in all calls, in elements.
    Fixed(i64),
    /// The size with this index among the ranges.
    Ranged(usize),
}

/// Resolves the names of the inputs' sizes to indices of ranges.
///
/// # Errors
/// If a name has no range, or a range has no input.
fn dimensions(grid: &Grid, inputs: &[Vec<InputSize>]) -> Result<Vec<Vec<Dimension>>, RangeError> {
    let ranges = grid.ranges();
    let dimension = |size: &InputSize| match size {
        InputSize::Fixed(size) => Ok(Dimension::Fixed(*size)),
        InputSize::Named(name) => {
            let index = ranges.iter().position(|range| range.name == *name);
            index
                .map(Dimension::Ranged)
                .ok_or_else(|| RangeError::NoRange(name.clone()))
        }
    };
    let inputs = inputs.iter().map(|sizes| sizes.iter().map(dimension).collect());
    let inputs: Vec<Vec<Dimension>> = inputs.collect::<Result<_, _>>()?;
    for (i, range) in ranges.iter().enumerate() {
        if !inputs.iter().flatten().any(|d| *d == Dimension::Ranged(i)) {
            return Err(RangeError::NoInput(range.name.clone()));
        }
    }
    Ok(inputs)
}

/// A function for ranges of sizes, ready to be compiled.
#[derive(Debug)]
pub struct RangePlan {
    /// The plan for the largest sizes, without calls of a run: inputs, outputs, workspace, constants, and the kernels and calls that prepack constants.
    plan: Plan,
    grid: Grid,
    /// The sizes of each input.
    inputs: Vec<Vec<Dimension>>,
    /// The sizes of each result, as text for descriptions.
    results: Vec<Vec<String>>,
    forms: Vec<Form>,
    values: Vec<FormValues>,
    tables: Vec<Table>,
    /// The code of all kernels. It is emitted for the kernels of [`RangePlan::plan`], in the same order.
    codes: Codes,
}

impl RangePlan {
    /// Plans a function for all combinations of sizes in `ranges`. `inputs` are the sizes of each input. `plan_of` returns the plan for inputs of given sizes,
    /// which may use the packed constants of earlier plans.
    ///
    /// # Errors
    /// If the function cannot be planned for some sizes, the plans have too little in common, or a limit is exceeded.
    pub fn new(
        ranges: &[SizeRange],
        inputs: &[Vec<InputSize>],
        options: &BackendOptions,
        mut plan_of: impl FnMut(&[Vec<i64>], &PackedConstants) -> Result<Plan, LowerError>,
    ) -> Result<RangePlan, EmitFileError> {
        let grid = Grid::new(ranges.to_vec())?;
        let inputs = dimensions(&grid, inputs)?;
        let mut forms = Forms::new(&grid);
        for point in 0..grid.points() {
            frazil_limits::check().map_err(CompileError::from)?;
            let sizes = grid.sizes(point);
            let size = |dimension: &Dimension| match *dimension {
                Dimension::Fixed(size) => size,
                Dimension::Ranged(index) => sizes.get(index).copied().unwrap_or_default(),
            };
            let shapes: Vec<Vec<i64>> = inputs.iter().map(|dims| dims.iter().map(size).collect()).collect();
            let plan = plan_of(&shapes, &forms.constants.packed).map_err(|source| RangeError::Lower {
                sizes: grid.describe(point),
                source: Box::new(source),
            })?;
            plan.validate().map_err(|source| RangeError::Plan {
                sizes: grid.describe(point),
                source: Box::new(source),
            })?;
            // The code is emitted for a kernel of other sizes.
            for (i, kernel) in plan.kernels.iter().enumerate().filter(|(_, k)| !k.phases().is_empty()) {
                let checked = options.emitters.check(&kernel_name(&plan.name, i), kernel);
                checked.map_err(CompileError::from)?;
            }
            forms.add(point, &plan)?;
        }
        RangePlan::of(forms, grid.clone(), inputs)
    }

    /// Returns the function that `forms` describe.
    fn of(forms: Forms<'_>, grid: Grid, inputs: Vec<Vec<Dimension>>) -> Result<RangePlan, EmitFileError> {
        let Forms {
            all: forms,
            constants,
            preparation,
            largest,
            ..
        } = forms;
        let mut plan = largest.unwrap_or_default();
        let mut codes = info_span!("codes").in_scope(|| Codes::of(&forms))?;
        let preparation_kernels = codes.all.len();
        if preparation_kernels > MOST_CODES {
            let (codes, most) = (preparation_kernels, MOST_CODES);
            return Err(RangeError::TooManyCodes { codes, most }.into());
        }
        for (kernel, mut call) in preparation {
            let code = KernelCode::constant(kernel);
            let known = codes
                .all
                .iter()
                .skip(preparation_kernels)
                .position(|other| *other == code);
            let index = known.map_or(codes.all.len(), |i| preparation_kernels + i);
            if known.is_none() {
                codes.all.push(code);
            }
            call.kernel = u32::try_from(index).unwrap_or(u32::MAX);
            plan.preparation.calls.push(call);
        }
        plan.kernels = codes.all.iter().map(|code| code.kernel().clone()).collect();
        plan.preparation.bytes = constants.prepared_bytes;
        (plan.constants, plan.preparation.sources) = constants.finish().map_err(RangeError::from)?;
        let (values, tables) = info_span!("fit").in_scope(|| tables::fit(&forms, &grid))?;
        debug!(
            forms = forms.len(),
            codes = codes.all.len(),
            tables = tables.len(),
            "ranges planned"
        );
        let results = results(&plan, &forms, &grid);
        Ok(RangePlan {
            plan,
            grid,
            inputs,
            results,
            forms,
            values,
            tables,
            codes,
        })
    }

    /// Returns the number of bytes of workspace that suffices for all sizes.
    pub fn workspace_bytes(&self) -> usize {
        self.plan.workspace_bytes
    }

    /// Packs the constants of the library, unless they have been packed.
    pub fn pack(&self) {
        let _ = (self.plan.constants.bytes(), self.plan.preparation.sources.bytes());
    }

    /// Returns the plan for the largest sizes, without calls of a run.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the code of all kernels.
    pub(super) fn codes(&self) -> &[KernelCode] {
        &self.codes.all
    }

    /// Returns the header of the library.
    pub fn header(&self) -> String {
        source::header(self)
    }

    /// Returns the C file of the library.
    pub(super) fn source(&self) -> source::Source {
        source::source(self)
    }
}

/// Returns the sizes of each result as text: a number, an expression in the named sizes, or `?`.
fn results(plan: &Plan, forms: &[Form], grid: &Grid) -> Vec<Vec<String>> {
    let names: Vec<String> = grid.ranges().iter().map(|r| r.name.clone()).collect();
    let points = forms.iter().flat_map(|f| &f.points).map(|&p| grid.sizes(p as usize));
    let fitter = Fitter::new(points.collect());
    let inputs: usize = plan.inputs.iter().map(|port| port.shape.len()).sum();
    let mut next = inputs;
    let text = |number: usize| {
        // The values of all forms, one after the other.
        let values = forms.iter().flat_map(|form| {
            let column = form.columns.get(form.layout().1).and_then(|c| c.get(number)).cloned();
            let column = column.unwrap_or(form::Column::Constant(0));
            (0..form.points.len()).map(move |i| column.value(i)).collect::<Vec<_>>()
        });
        let expr: Option<Expr> = fitter.fit(&values.collect::<Vec<i64>>());
        expr.map_or_else(|| "?".to_owned(), |expr| expr.text(&names))
    };
    let ports = plan.results().iter().map(|port| {
        let first = next;
        next += port.shape.len();
        (first..next).map(text).collect()
    });
    ports.collect()
}
