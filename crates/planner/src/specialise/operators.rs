//! Running operators: programs are appended to the tensor graph, kernels on known values run at once.

use super::bounds;
use super::loops::not_rolled;
use super::refusal::{READS_NEGATIVES, Refusal};
use super::state::{Slot, Specialiser};
use super::store::{address, compiled_bytes, tensors_in};
use crate::error::{LowerError, Unsupported};
use frazil_ir::schema::FunctionSchema;
use frazil_ir::{Graph, NodeId, TypeId, types};
use frazil_runtime::call::{args_of, check_overlaps, composite_arguments, invoke, result_strides};
use frazil_runtime::entry::ResultLayout;
use frazil_runtime::import::tensor_to_constant;
use frazil_runtime::interp::walk::{Operands, Outputs};
use frazil_runtime::layout::shares_elements;
use frazil_runtime::op::{Form, OpError, Operator, Results};
use frazil_runtime::promote::can_cast;
use frazil_runtime::registry::out_arguments;
use frazil_runtime::structured::{Program, Step, TensorId, TensorShape};
use frazil_runtime::value::{ListValue, TensorCell, Value};
use frazil_runtime::{Semantics, Tensor, Variant};
use frazil_tensor_ir::graph::Origin;
use frazil_tensor_ir::spec::PathStep;

/// A tensor of a program that is being appended.
struct Made {
    id: TensorId,
    /// The variable, if the tensor is an argument or a view of one.
    cell: Option<TensorCell>,
}

impl Specialiser<'_> {
    /// Runs an operator. Returns one slot per output; `None` for outputs that depend on something unsupported.
    pub(super) fn run_operator(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        slots: Operands<Slot>,
    ) -> Result<Outputs<Slot>, LowerError> {
        // Nodes that depend on an unsupported one are not reported.
        let Some(values) = slots.into_iter().collect::<Option<Vec<Value>>>() else {
            return Ok(Outputs::new());
        };
        if self.rolling.is_none() {
            return self.run_on_values(graph, node, op, values);
        }
        let written = self.note_uses(op, &values)?;
        if let Some(result) = self.in_each_iteration(graph, node, op, &values)? {
            return Ok(smallvec::smallvec![Some(result)]);
        }
        let results = self.run_on_values(graph, node, op, values)?;
        if let Some((list, before)) = written {
            self.check_appended(&list, &before)?;
        }
        Ok(results)
    }

    fn run_on_values(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: Vec<Value>,
    ) -> Result<Outputs<Slot>, LowerError> {
        if let Some(joined) = self.joined_rows(graph, node, op, &values)? {
            return Ok(smallvec::smallvec![Some(joined)]);
        }
        let nothing = Outputs::new();
        let values = match self.with_numbers(graph, node, op, values) {
            Ok(Ok(number)) => return Ok(smallvec::smallvec![Some(number)]),
            Ok(Err(values)) => values,
            Err(Refusal::Fatal(e)) => return Err(e),
            Err(Refusal::Reason(reason)) => {
                self.refuse(graph, node, &op.schema().full_name(self.ctx), reason);
                return Ok(nothing);
            }
        };
        if let Some(reason) = self.unknown_place(op, &values) {
            self.refuse(graph, node, &op.schema().full_name(self.ctx), reason);
            return Ok(nothing);
        }
        match self.call(graph, node, op, &values) {
            Ok(results) => Ok(results.into_iter().map(Some).collect()),
            Err(Refusal::Fatal(e)) => Err(e),
            // A driver can run it as the interpreter does.
            Err(Refusal::Reason(_)) if self.can_wait(op) && !matches!(op.semantics(), Semantics::Composite(_)) => {
                match self.wait(graph, node, op, &values) {
                    Ok(results) => Ok(results.into_iter().map(Some).collect()),
                    Err(Refusal::Fatal(e)) => Err(e),
                    Err(Refusal::Reason(reason)) => {
                        self.refuse(graph, node, &op.schema().full_name(self.ctx), reason);
                        Ok(nothing)
                    }
                }
            }
            Err(Refusal::Reason(reason)) => {
                self.refuse(graph, node, &op.schema().full_name(self.ctx), reason);
                Ok(nothing)
            }
        }
    }

    pub(super) fn call(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
    ) -> Result<Vec<Value>, Refusal> {
        let mut cells = Vec::new();
        values.iter().for_each(|v| tensors_in(v, &mut cells));
        let known = cells.iter().all(|c| !self.store.knows(c));
        if op.schema().is_mutable() && self.writes_constant(op.schema(), values) {
            return Err("writes to a constant of the graph".into());
        }
        match op.semantics() {
            Semantics::Kernel(_) if known => self.kernel(graph, node, op, values, &cells),
            Semantics::Kernel(_) => match self.functional(op) {
                Some(other) if matches!(other.semantics(), Semantics::Kernel(_)) => {
                    let functional = other.functional();
                    let results = self.kernel(graph, node, &functional, values, &cells)?;
                    self.give(graph, node, &other, values, results)
                }
                Some(program) => self.program(graph, node, &program, values),
                None => self.kernel(graph, node, op, values, &cells),
            },
            Semantics::Composite(body) => {
                let body = body.clone();
                let slots = self.run_composite(
                    &body,
                    composite_arguments(op, &body, values).into_iter().map(Some).collect(),
                )?;
                let results = slots.into_iter().collect::<Option<Vec<Value>>>();
                let mut results = results.ok_or("a part of it cannot be compiled")?;
                if op.variant() == Variant::Functional {
                    results = self.laid_out(op, values, results)?;
                }
                self.give(graph, node, op, values, results)
            }
            Semantics::Pointwise(_) | Semantics::Program(..) if known => self.kernel(graph, node, op, values, &cells),
            Semantics::Pointwise(_) | Semantics::Program(..) => self.program(graph, node, op, values),
        }
    }

    /// Returns the functional variant of an in-place operator that the registry implements as a kernel. `None` if the variant neither has a program (as that of
    /// `copy_` does) nor can be a runtime call (as that of `scatter_add_` can).
    fn functional(&self, op: &Operator) -> Option<Operator> {
        let schema = op.schema();
        let name = self.ctx.name(schema.name).strip_suffix('_')?;
        let overload = self.ctx.name(schema.overload);
        let found = self.registry.find(name, overload)?;
        let usable = match found.semantics() {
            Semantics::Kernel(_) => found.has_fixed_sizes(),
            Semantics::Composite(_) => false,
            Semantics::Pointwise(_) | Semantics::Program(..) => true,
        };
        (usable && schema.is_mutable()).then(|| found.in_place(schema.clone()))
    }

    fn writes_constant(&self, schema: &FunctionSchema, values: &[Value]) -> bool {
        let written = schema
            .arguments
            .iter()
            .zip(values)
            .filter(|(a, _)| [&a.alias, &a.element_alias].into_iter().flatten().any(|x| x.is_write));
        written.into_iter().any(|(_, v)| match v {
            Value::Tensor(c) => self.constants.contains(&address(c.get().storage())),
            _ => false,
        })
    }

    /// Runs an operator on values as the interpreter does. The operator must not read elements that are unknown at compile time.
    fn kernel(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
        cells: &[TensorCell],
    ) -> Result<Vec<Value>, Refusal> {
        // Without operands whose elements are unknown it would run here, once for all calls.
        if op.is_random() {
            return Err("draws random numbers anew in every call".into());
        }
        let before: Vec<Tensor> = cells.iter().map(TensorCell::get).collect();
        for t in &before {
            t.storage().take_touched();
        }
        let output_types: Vec<TypeId> = graph.node_outputs(node).iter().map(|&v| graph.ty(v)).collect();
        let results = invoke(self.ctx, op, values, &output_types, graph.attributes(node));
        let mut touched = false;
        for t in &before {
            touched |= t.storage().take_touched();
        }
        if touched {
            let is_called = op.has_fixed_sizes() && op.variant() == Variant::Functional;
            return match results {
                Ok(like) if is_called && !like.is_empty() && like.iter().all(|v| v.as_tensor().is_some()) => {
                    self.runtime_call(graph, node, op, values, &like)
                }
                _ => Err("depends on the elements of a tensor, and has no program".into()),
            };
        }
        let same = |a: &Tensor, b: &Tensor| {
            a.shares_storage(b) && a.sizes() == b.sizes() && a.strides() == b.strides() && a.offset() == b.offset()
        };
        if cells
            .iter()
            .zip(&before)
            .any(|(c, b)| self.store.knows(c) && !same(&c.get(), b))
        {
            return Err("changes sizes or strides of a tensor in place".into());
        }
        let results: Results = results.map_err(|e| self.error(graph, node, e))?;
        if op.changes_view() {
            cells.iter().for_each(|c| self.store.forget(c));
        }
        let mut made = Vec::new();
        results.iter().for_each(|v| tensors_in(v, &mut made));
        for cell in &made {
            let tensor = cell.get();
            if !tensor.storage().is_unknown() || self.store.knows(cell) {
                continue;
            }
            let like = cells.iter().zip(&before).find(|(_, b)| same(&tensor, b));
            match like {
                Some((like, _)) => self.store.alias(cell, like),
                None => return Err("makes a view of which no program says how".into()),
            }
        }
        made.retain(|c| !c.get().storage().is_unknown());
        self.note_results(op, values, &made);
        Ok(results.into_vec())
    }

    /// Appends an operator's program.
    fn program(&mut self, graph: &Graph, node: NodeId, op: &Operator, values: &[Value]) -> Result<Vec<Value>, Refusal> {
        let (args, cells) = args_of(self.ctx, op.schema(), values);
        let mut program = match op.program(&args) {
            Ok(Some(p)) => p,
            Ok(None) => return Err("has no program".into()),
            Err(e) => return Err(self.error(graph, node, e)),
        };
        let origins = self.origin(graph, node);
        let tensors = self.append(&mut program, &cells, &origins)?;
        let copies = |&id: &TensorId| tensors.get(id.index()).is_none_or(|made| made.cell.is_none());
        if op.semantics().form() == Form::View && op.sees_strides() && program.outputs.iter().any(copies) {
            // `view` of strides that allow none raises.
            let types = vec![types::TENSOR; program.outputs.len()];
            invoke(self.ctx, &op.functional(), values, &types, &[]).map_err(|e| self.error(graph, node, e))?;
        }
        let operands: Vec<Tensor> = cells.iter().map(TensorCell::get).collect();
        let eager = self.as_laid_out(op, values, &program, &operands);
        let mut results = Vec::new();
        for (i, &output) in program.outputs.iter().enumerate() {
            let made = tensors
                .get(output.index())
                .ok_or_else(|| LowerError::Malformed("an unknown output".into()))?;
            let eager = eager.get(i);
            let copied = |cell: &TensorCell| eager.is_some_and(|e| !e.shares_storage(&cell.get()));
            let cell = match &made.cell {
                Some(cell) if !copied(cell) => cell.clone(),
                // A view that the strides do not allow is a copy, which would have to be one of the negatives.
                _ if operands.iter().any(|t| !t.marks().is_none()) => return Err(READS_NEGATIVES.into()),
                _ => {
                    let shape = self.tensors.shape(made.id).clone();
                    let cell = self.store.fresh(made.id, &shape, false)?;
                    let strides = match eager {
                        Some(e) => Some(e.strides().into()),
                        None => result_strides(op, &operands, &shape.sizes),
                    };
                    if let Some(strides) = strides {
                        self.store.lay_out(&cell, &strides);
                    }
                    cell
                }
            };
            results.push(Value::Tensor(cell));
        }
        // Handles on storages would look like further tensors that share them.
        drop((operands, eager));
        let returns = &op.schema().returns;
        let is_list = |ty| matches!(self.ctx.type_kind(ty), frazil_ir::TypeKind::List(_));
        if let [only] = returns.as_slice()
            && is_list(only.ty)
        {
            results = vec![Value::List(ListValue::new(types::TENSOR, results))];
        }
        self.give(graph, node, op, values, results)
    }

    /// Returns the results of the interpreter, as tensors without elements, for operators whose operand strides determine the strides of the result, or
    /// whether it is a copy. Empty for other operators.
    fn as_laid_out(&self, op: &Operator, values: &[Value], program: &Program, operands: &[Tensor]) -> Vec<Tensor> {
        let itself = |&id: &TensorId| id.index() < program.arguments.len();
        let converts = op.semantics().form() == Form::Pointwise && operands.len() <= 2;
        let decides = || program.outputs.iter().any(itself) || !operands.iter().all(Tensor::is_contiguous);
        if !op.sees_strides() || !converts || !decides() {
            return Vec::new();
        }
        let types = vec![types::TENSOR; program.outputs.len()];
        let given = invoke(self.ctx, &op.functional(), values, &types, &[]).unwrap_or_default();
        given.iter().filter_map(Value::as_tensor).collect()
    }

    /// Appends the program's steps, which are moved out of it; `cells` are its arguments.
    fn append(
        &mut self,
        program: &mut Program,
        cells: &[TensorCell],
        origins: &[Origin],
    ) -> Result<Vec<Made>, Refusal> {
        let mut tensors: Vec<Made> = Vec::with_capacity(cells.len() + program.steps.len());
        let views_only = program.steps.iter().all(|s| matches!(s, Step::View(_)));
        for cell in cells {
            // A view of a tensor that is still to be filled must share its versions.
            if views_argument(program, tensors.len()) {
                self.track(cell)?;
            }
            // A view of a view of negatives reads none of them.
            let base = match views_only {
                true => self.store.read(&mut self.tensors, cell),
                false => None,
            };
            tensors.push(Made {
                id: base.map_or_else(|| self.read(cell), Ok)?,
                cell: Some(cell.clone()),
            });
        }
        let malformed = || LowerError::Malformed("a step reads a tensor that is not there".into());
        for step in std::mem::take(&mut program.steps) {
            let shape = match &step {
                Step::Compute(s) => &s.output,
                Step::Gather(g) => &g.output,
                Step::View(v) => &v.output,
            };
            if compiled_bytes(shape).is_none() {
                return Err(Refusal::Fatal(LowerError::TooLarge {
                    sizes: shape.sizes.to_vec(),
                }));
            }
            let shape_of = |t: TensorId| tensors.get(t.index()).map(|made| self.tensors.shape(made.id));
            bounds::check(&step, shape_of)?;
            let made = match step {
                Step::Compute(s) => {
                    let mut s = *s;
                    for access in s.inputs.iter_mut().chain(&mut s.finish_inputs) {
                        access.tensor = tensors.get(access.tensor.index()).ok_or_else(malformed)?.id;
                    }
                    self.check_divisors(&s, origins)?;
                    Made {
                        id: self.compute(s, origins),
                        cell: None,
                    }
                }
                Step::Gather(g) => {
                    let mut g = *g;
                    for tensor in g.operands_mut() {
                        *tensor = tensors.get(tensor.index()).ok_or_else(malformed)?.id;
                    }
                    Made {
                        id: self.gather(g, origins)?,
                        cell: None,
                    }
                }
                Step::View(mut v) => {
                    let base = tensors.get(v.tensor.index()).ok_or_else(malformed)?;
                    v.tensor = base.id;
                    let step = PathStep {
                        kind: v.kind.clone(),
                        shape: v.output.clone(),
                    };
                    let base_cell = base.cell.clone();
                    let id = self.tensors.view(v, origins.to_vec());
                    let cell = base_cell.and_then(|base| {
                        let layout = step.of(&base.get())?;
                        self.store.view(&base, vec![step], layout, id)
                    });
                    Made { id, cell }
                }
            };
            tensors.push(made);
        }
        Ok(tensors)
    }

    /// Adds a tensor with known elements, and all tensors that share its storage, to the store's variables. Afterwards, elements that are unknown at compile
    /// time can be written to them. Does nothing if the tensor is a variable already, or if the run did not create all tensors that share the storage.
    fn track(&mut self, cell: &TensorCell) -> Result<(), Refusal> {
        if let Some(owner) = self.store.owner(cell)
            && let Some(rolling) = &self.rolling
            && !self.store.knows(cell)
            && rolling.storages.contains(&address(owner.get().storage()))
        {
            // The tensor would stay a variable after the iteration, whose tensors are removed.
            return Err(Refusal::Fatal(not_rolled()));
        }
        Ok(self.track_owned(cell)?)
    }

    /// As [`Specialiser::track`], outside of rolled loops.
    pub(super) fn track_owned(&mut self, cell: &TensorCell) -> Result<(), LowerError> {
        if self.store.knows(cell) {
            return Ok(());
        }
        let Some(owner) = self.store.owner(cell) else {
            return Ok(());
        };
        let id = self.read(&owner)?;
        let shape = self.tensors.shape(id).clone();
        self.store.adopt(&owner, id, &shape)
    }

    /// Records the results of a kernel on known tensors: new tensors, and views of the operands.
    fn note_results(&mut self, op: &Operator, values: &[Value], made: &[TensorCell]) {
        if made.is_empty() {
            return;
        }
        let (args, cells) = args_of(self.ctx, op.schema(), values);
        let program = op.program(&args).ok().flatten();
        for (i, cell) in made.iter().enumerate() {
            let tensor = cell.get();
            let shares = |c: &TensorCell| c.get().shares_storage(&tensor);
            let path = program.as_ref().and_then(|p| view_path(p, i));
            match path {
                Some((argument, steps)) if cells.get(argument).is_some_and(shares) => {
                    self.store.note_view(cell, &cells[argument], steps);
                }
                _ if !cells.iter().any(shares) => self.store.note_made(cell),
                _ => {}
            }
        }
    }

    /// Returns the results of the operator, given the results of its functional form. In-place and `out` variants write them to their arguments.
    fn give(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
        results: Vec<Value>,
    ) -> Result<Vec<Value>, Refusal> {
        let targets: Vec<&Value> = match op.variant() {
            Variant::Functional => return Ok(results),
            Variant::InPlace if op.changes_view() => return self.change_view(values, results),
            Variant::InPlace => values.iter().take(1).collect(),
            Variant::Out => out_arguments(op.schema()).filter_map(|i| values.get(i)).collect(),
        };
        let mut given = Vec::new();
        for (target, result) in targets.into_iter().zip(&results) {
            let (Value::Tensor(target), Value::Tensor(result)) = (target, result) else {
                return Err("writes to something other than a tensor".into());
            };
            if op.variant() == Variant::InPlace {
                check_overlaps(op, &target.get(), &values[1..]).map_err(|e| self.error(graph, node, e))?;
            }
            self.write(graph, node, target, result)?;
            given.push(Value::Tensor(target.clone()));
        }
        Ok(given)
    }

    /// Changes the first argument to the view that the functional form returns.
    fn change_view(&mut self, values: &[Value], results: Vec<Value>) -> Result<Vec<Value>, Refusal> {
        let (Some(Value::Tensor(target)), Some(Value::Tensor(view))) = (values.first(), results.first()) else {
            return Err("makes a view of something other than a tensor".into());
        };
        let (to, from) = (target.get(), view.get());
        let is_argument = self.inputs.iter().any(|input| input.is(target));
        if is_argument || !self.store.knows(target) || !to.shares_storage(&from) {
            return Err("changes sizes or strides of a tensor in place".into());
        }
        drop(to);
        self.store.alias(target, view);
        target.set(from);
        Ok(vec![Value::Tensor(target.clone())])
    }

    /// Returns new tensors with the strides that the operator's layout specifies, and other values unchanged. Programs and kernels apply the layout to their
    /// results themselves.
    fn laid_out(&mut self, op: &Operator, values: &[Value], results: Vec<Value>) -> Result<Vec<Value>, Refusal> {
        if op.layout() == ResultLayout::AsComputed {
            return Ok(results);
        }
        let operands: Vec<Tensor> = values.iter().filter_map(Value::as_tensor).collect();
        let each = |result: Value| -> Result<Value, Refusal> {
            let Value::Tensor(cell) = &result else {
                return Ok(result);
            };
            let tensor = cell.get();
            let is_new = !operands.iter().any(|t| t.shares_storage(&tensor));
            let strides = result_strides(op, &operands, tensor.sizes()).filter(|s| is_new && **s != *tensor.strides());
            let Some(strides) = strides else {
                return Ok(result);
            };
            if !tensor.storage().is_unknown() {
                let laid_out = tensor
                    .with_strides(&strides)
                    .map_err(|e| Refusal::Reason(e.to_string()))?;
                return Ok(laid_out.into());
            }
            drop(tensor);
            let id = self.read(cell)?;
            let shape = self.tensors.shape(id).clone();
            let bytes = compiled_bytes(&shape).ok_or("a result that is too large")?;
            Ok(Value::Tensor(self.store.strided(id, &shape, &strides, bytes)?))
        };
        results.into_iter().map(each).collect()
    }

    fn write(&mut self, graph: &Graph, node: NodeId, target: &TensorCell, result: &TensorCell) -> Result<(), Refusal> {
        let (to, from) = (target.get(), result.get());
        if !can_cast(from.dtype(), to.dtype()) {
            let message = format!(
                "result type {} can't be cast to the desired output type {}",
                from.dtype().type_name(),
                to.dtype().type_name()
            );
            return Err(self.error(graph, node, OpError::raised(message)));
        }
        if to.sizes() != from.sizes() {
            let message = format!(
                "output with shape {:?} doesn't match the broadcast shape {:?}",
                to.sizes(),
                from.sizes()
            );
            return Err(self.error(graph, node, OpError::raised(message)));
        }
        let overlaps = |input: &TensorCell| {
            let input = input.get();
            input.shares_storage(&to) && shares_elements(input.sizes(), input.strides()).unwrap_or(true)
        };
        // A copy in row-major order would have several copies of what is one element.
        if self.strided.contains(&address(to.storage())) && self.inputs.iter().any(overlaps) {
            return Err("writes to an argument that overlaps itself".into());
        }
        let dtype = to.dtype();
        // Handles on the storage would look like further tensors that share it.
        drop((to, from));
        self.track(target)?;
        if !self.store.knows(target) {
            return Err("writes to a tensor that is shared with a constant".into());
        }
        if !target.get().marks().is_none() {
            return Err(READS_NEGATIVES.into());
        }
        let value = self.read(result)?;
        let value = self.converted(value, dtype);
        let origins = self.origin(graph, node);
        self.store
            .write(&mut self.tensors, target, value, &origins)
            .map_err(Refusal::from)
    }

    pub(super) fn converted(&mut self, id: TensorId, dtype: frazil_ir::DType) -> TensorId {
        let shape = self.tensors.shape(id).clone();
        if shape.dtype == dtype {
            return id;
        }
        let target = TensorShape { dtype, ..shape.clone() };
        self.tensors.nest(
            frazil_tensor_ir::transform::simplify::conversion(id, &shape, target),
            Vec::new(),
        )
    }

    fn error(&self, graph: &Graph, node: NodeId, e: OpError) -> Refusal {
        if e.is_unsupported() {
            return Refusal::Reason(e.to_string());
        }
        if !self.unsupported.is_empty() {
            // Values may differ from those of a run: a loop whose count is not known has not run.
            return Refusal::Reason("may raise an exception after what is not supported".into());
        }
        let place = self
            .place(graph, node)
            .map(|p| format!(" (at {p})"))
            .unwrap_or_default();
        Refusal::Fatal(LowerError::Raises {
            message: format!("{}: {e}{place}", graph.kind_name(node)),
        })
    }
}

/// Returns the index of the argument of which the program's output `output` is a view, and the view steps from the argument to the output; `None` if the output
/// is not a view of an argument.
fn view_path(program: &Program, output: usize) -> Option<(usize, Vec<PathStep>)> {
    let mut id = program.outputs.get(output)?.index();
    let mut steps = Vec::new();
    while let Some(step) = id.checked_sub(program.arguments.len()) {
        let Step::View(v) = program.steps.get(step)? else {
            return None;
        };
        steps.push(PathStep {
            kind: v.kind.clone(),
            shape: v.output.clone(),
        });
        id = v.tensor.index();
    }
    steps.reverse();
    Some((id, steps))
}

/// Returns true if a step of the program is a direct view of argument `argument`.
fn views_argument(program: &Program, argument: usize) -> bool {
    let views = |s: &Step| matches!(s, Step::View(v) if v.tensor.index() == argument);
    program.steps.iter().any(views)
}

impl Specialiser<'_> {
    /// Returns the current contents of a tensor variable; a constant if its elements are known.
    pub(super) fn read(&mut self, cell: &TensorCell) -> Result<TensorId, LowerError> {
        if self.store.knows(cell) && !cell.get().marks().is_none() {
            // The storage holds the elements of the base.
            return Err(LowerError::Unsupported(vec![Unsupported {
                operator: "a view of negatives".into(),
                reason: READS_NEGATIVES.into(),
                source: None,
            }]));
        }
        if let Some(id) = self.store.read(&mut self.tensors, cell) {
            return Ok(id);
        }
        if let Some((_, data, id)) = self.store.constants.get_mut(&cell.address()) {
            return Ok(*id.get_or_insert_with(|| self.tensors.constant(data.clone())));
        }
        let tensor = cell.get();
        let data = tensor_to_constant(&tensor).map_err(|_| LowerError::TooLarge {
            sizes: tensor.sizes().to_vec(),
        })?;
        Ok(self.tensors.constant(data))
    }
}
