//! Forms: plans for different sizes that differ only in integers.
//!
//! A form is the part of plans that is the same for many sizes: which code each call runs, and the kind of memory of each of its buffers. Everything else in a
//! plan is an integer with a value for each point of the [grid](super::grid): numbers of tasks, offsets, arguments of code, the sizes of inputs and outputs.

use super::constants::SharedConstants;
use super::error::RangeError;
use super::grid::Grid;
use frazil_planner::kernel::{CodeIdentity, KernelCode, KernelSpec};
use frazil_planner::plan::{Buffer, Call, Plan, Port};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;

/// Maximum number of forms of a library.
const MOST_FORMS: usize = 1024;

/// The kind of memory that contains a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The input of this index.
    Input(u32),
    /// The output of this index.
    Output(u32),
    /// The workspace.
    Workspace,
    /// The constants that the library contains.
    Constant,
    /// The constants that the library prepacks at load time.
    Prepared,
}

/// The part of a call that is the same for all sizes of a form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallForm {
    /// Index of the identity that the code has if all its integers are [arguments](KernelCode::with_all_arguments). All forms share these indices.
    pub code: usize,
    /// Number of phases of the kernel.
    pub phases: usize,
    /// The kind of memory of each buffer.
    pub places: SmallVec<[Place; 5]>,
    /// Number of the kernel's integers.
    pub numbers: usize,
}

/// The columns of a form that belong to one call.
#[derive(Clone, Debug)]
pub struct CallColumns {
    /// The order of the tasks: 1 if the last task runs first, plus 2 if the order is reversed in every other run.
    pub order: usize,
    /// The number of tasks of each phase.
    pub tasks: Range<usize>,
    /// The offset of each buffer, in bytes.
    pub offsets: Range<usize>,
    /// The integers of the kernel.
    pub numbers: Range<usize>,
}

/// The values of an integer of a form, one for each of its points.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// The same value for all points.
    Constant(i64),
    /// A value for each point, in the order of [`Form::points`].
    Values(Vec<i64>),
}

impl Column {
    /// Returns the value for the point of this index.
    pub fn value(&self, index: usize) -> i64 {
        match self {
            Column::Constant(value) => *value,
            Column::Values(values) => values.get(index).copied().unwrap_or_default(),
        }
    }

    /// Appends the value of the next point. The column has values for `count` points.
    fn push(&mut self, value: i64, count: usize) {
        match self {
            Column::Constant(constant) if *constant == value => {}
            Column::Constant(constant) => {
                let mut values = vec![*constant; count];
                values.push(value);
                *self = Column::Values(values);
            }
            Column::Values(values) => values.push(value),
        }
    }
}

/// Plans that differ only in integers.
#[derive(Debug)]
pub struct Form {
    /// The calls.
    pub calls: Vec<CallForm>,
    /// The kernel of each call for the first point.
    pub kernels: Vec<KernelSpec>,
    /// The points whose plans have this form, in increasing order.
    pub points: Vec<u32>,
    /// The integers: for each call those of [`CallColumns`], then the sizes of all inputs and outputs.
    pub columns: Vec<Column>,
}

impl Form {
    /// Returns the columns of each call, and those of the sizes of inputs and outputs.
    pub fn layout(&self) -> (Vec<CallColumns>, Range<usize>) {
        let mut next = 0;
        let mut take = |count: usize| {
            next += count;
            next - count..next
        };
        let calls = self.calls.iter().map(|call| CallColumns {
            order: take(1).start,
            tasks: take(call.phases),
            offsets: take(call.places.len()),
            numbers: take(call.numbers),
        });
        let calls = calls.collect();
        (calls, next..self.columns.len())
    }
}

/// The forms of a function, built up as plans are added.
pub struct Forms<'g> {
    grid: &'g Grid,
    /// All forms, in the order of their first points.
    pub all: Vec<Form>,
    /// The constants of all plans.
    pub constants: SharedConstants,
    /// The kernels that prepack constants at load time, and their calls.
    pub preparation: Vec<(KernelSpec, Call)>,
    /// A plan without calls, constants and kernels. Its inputs, outputs, workspace and list of checks are as large as the largest of all plans.
    pub largest: Option<Plan>,
    by_calls: HashMap<Vec<CallForm>, usize>,
    codes: HashMap<CodeIdentity, usize>,
}

impl<'g> Forms<'g> {
    /// Returns an empty collection of forms for the points of `grid`.
    pub fn new(grid: &'g Grid) -> Forms<'g> {
        Forms {
            grid,
            all: Vec::new(),
            constants: SharedConstants::default(),
            preparation: Vec::new(),
            largest: None,
            by_calls: HashMap::new(),
            codes: HashMap::new(),
        }
    }

    /// Adds the plan of `point`. Points are added in increasing order.
    ///
    /// # Errors
    /// If the plan has runtime calls, if its inputs or outputs differ from those of other points in more than their sizes, or if there are too many forms.
    pub fn add(&mut self, point: usize, plan: &Plan) -> Result<(), RangeError> {
        match plan.runtime_call_operators() {
            none if none.is_empty() => {}
            operators => return Err(RangeError::runtime_calls(self.grid.describe(point), &operators)),
        }
        self.add_interface(point, plan)?;
        let codes: Vec<usize> = plan.kernels.iter().map(|kernel| self.code(kernel)).collect();
        let relocation = self.constants.add(plan)?;
        let unknown = || RangeError::Inconsistent(self.grid.describe(point));
        let mut calls = Vec::with_capacity(plan.calls.len());
        let mut kernels = Vec::with_capacity(plan.calls.len());
        let mut row = Vec::new();
        for call in &plan.calls {
            let kernel = plan.kernels.get(call.kernel as usize).ok_or_else(unknown)?;
            let phases = kernel.phases();
            let numbers = kernel.numbers();
            row.push(i64::from(call.order.backward) + 2 * i64::from(call.order.turns));
            row.extend_from_slice(&phases);
            let mut places = SmallVec::new();
            for buffer in &call.buffers {
                let placed = relocation.place(*buffer).and_then(parts);
                let (place, offset) = placed.ok_or_else(unknown)?;
                places.push(place);
                row.push(i64::try_from(offset).map_err(|_| unknown())?);
            }
            row.extend_from_slice(&numbers);
            kernels.push(kernel.clone());
            calls.push(CallForm {
                code: codes.get(call.kernel as usize).copied().ok_or_else(unknown)?,
                phases: phases.len(),
                places,
                numbers: numbers.len(),
            });
        }
        for call in &plan.preparation.calls {
            let kernel = plan.kernels.get(call.kernel as usize).ok_or_else(unknown)?;
            let place = |buffer: &Buffer| match *buffer {
                // The preparation reads constants of its own.
                Buffer::Constant { offset } => Some(Buffer::Constant {
                    offset: relocation.sources + offset,
                }),
                other => relocation.place(other),
            };
            let buffers = call.buffers.iter().map(place).collect::<Option<_>>();
            let buffers = buffers.ok_or_else(unknown)?;
            self.preparation.push((
                kernel.clone(),
                Call {
                    buffers,
                    ..call.clone()
                },
            ));
        }
        let ports = plan.inputs.iter().chain(plan.results());
        row.extend(ports.flat_map(|port| port.shape.iter().copied()));
        self.add_row(point, calls, kernels, &row)
    }

    /// Adds the integers `row` of the plan of `point` to its form.
    fn add_row(
        &mut self,
        point: usize,
        calls: Vec<CallForm>,
        kernels: Vec<KernelSpec>,
        row: &[i64],
    ) -> Result<(), RangeError> {
        let point = u32::try_from(point).map_err(|_| RangeError::Inconsistent(self.grid.describe(point)))?;
        let known = self.by_calls.get(&calls).and_then(|&i| self.all.get_mut(i));
        if let Some(form) = known {
            let count = form.points.len();
            for (column, value) in form.columns.iter_mut().zip(row) {
                column.push(*value, count);
            }
            form.points.push(point);
            return Ok(());
        }
        if self.all.len() == MOST_FORMS {
            return Err(RangeError::TooManyForms(MOST_FORMS));
        }
        self.by_calls.insert(calls.clone(), self.all.len());
        self.all.push(Form {
            calls,
            kernels,
            points: vec![point],
            columns: row.iter().copied().map(Column::Constant).collect(),
        });
        Ok(())
    }

    /// Returns the value of [`CallForm::code`] for `kernel`.
    fn code(&mut self, kernel: &KernelSpec) -> usize {
        let identity = KernelCode::with_all_arguments(kernel.clone()).identity();
        let next = self.codes.len();
        *self.codes.entry(identity).or_insert(next)
    }

    /// Compares the plan's inputs and outputs with those of other points, and keeps the largest sizes.
    fn add_interface(&mut self, point: usize, plan: &Plan) -> Result<(), RangeError> {
        let Some(largest) = &mut self.largest else {
            self.largest = Some(Plan {
                name: plan.name.clone(),
                inputs: plan.inputs.clone(),
                outputs: plan.outputs.clone(),
                workspace_bytes: plan.workspace_bytes,
                checks: plan.checks.clone(),
                ..Plan::default()
            });
            return Ok(());
        };
        let (first, here) = (self.grid.describe(0), self.grid.describe(point));
        let changing = |what: String| RangeError::Changing {
            what,
            first: first.clone(),
            here: here.clone(),
        };
        for (kind, known, ports) in [
            ("input", largest.inputs.len(), plan.inputs.len()),
            ("output", largest.results().len(), plan.results().len()),
        ] {
            if known != ports {
                return Err(changing(format!("the number of {kind}s is {known} and {ports}")));
            }
        }
        let results = plan.results().len();
        let known = largest.outputs.iter_mut().take(results).chain(&mut largest.inputs);
        for (known, port) in known.zip(plan.results().iter().chain(&plan.inputs)) {
            if known.dtype != port.dtype || known.shape.len() != port.shape.len() {
                return Err(changing(format!(
                    "{} is a {} and a {}",
                    port.name,
                    describe(known),
                    describe(port)
                )));
            }
            for (largest, size) in known.shape.iter_mut().zip(&port.shape) {
                *largest = (*largest).max(*size);
            }
        }
        if plan.checks.len() > largest.checks.len() {
            largest.checks.clone_from(&plan.checks);
            largest
                .outputs
                .extend(plan.outputs.iter().skip(largest.outputs.len()).cloned());
        }
        largest.workspace_bytes = largest.workspace_bytes.max(plan.workspace_bytes);
        Ok(())
    }
}

/// Describes the dtype and the rank of a tensor.
fn describe(port: &Port) -> String {
    format!("{}-d tensor of {}", port.shape.len(), port.dtype.python_name())
}

/// Returns the kind of memory that contains `buffer`, and the offset in bytes; `None` for constants that are shared with other functions.
fn parts(buffer: Buffer) -> Option<(Place, u64)> {
    Some(match buffer {
        Buffer::Input { index, offset } => (Place::Input(index), offset),
        Buffer::Output { index, offset } => (Place::Output(index), offset),
        Buffer::Workspace { offset } => (Place::Workspace, offset),
        Buffer::Constant { offset } => (Place::Constant, offset),
        Buffer::Prepared { offset } => (Place::Prepared, offset),
        Buffer::Shared { .. } => return None,
    })
}
