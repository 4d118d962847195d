//! Tensor variables without elements: views of versioned storages.

use super::bounds::iterations;
use crate::error::LowerError;
use frazil_ir::{Constant, DType, TensorData};
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp, Number};
use frazil_runtime::gather::{Coordinate, Gather};
use frazil_runtime::layout::{contiguous_strides, extent};
use frazil_runtime::structured::{Access, Affine, Iteration, OutOfBounds, Structured, TensorId, TensorShape, ViewKind};
use frazil_runtime::value::{TensorCell, Value};
use frazil_runtime::{Storage, Tensor};
use frazil_tensor_ir::graph::{Origin, TensorGraph, TensorOp};
use frazil_tensor_ir::spec::PathStep;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// The current contents of a storage.
struct Contents {
    /// The sizes and strides of the tensor with the contents. Keeps the storage alive, so that the address is not reused.
    layout: Tensor,
    /// The tensor with the contents of the whole storage.
    whole: TensorId,
    version: u32,
    is_input: bool,
}

/// Description of a tensor variable.
#[derive(Clone)]
pub(super) struct Variable {
    /// Kept alive so that the address is not reused.
    _cell: TensorCell,
    storage: usize,
    path: Vec<PathStep>,
    /// The version of the storage when the variable was last read, and the result of that read.
    seen: Option<(u32, TensorId)>,
}

/// A variable that is a row of a tensor: one index along its first dimension.
struct Row {
    /// Kept alive so that the address is not reused.
    _cell: TensorCell,
    whole: TensorCell,
    index: i64,
}

/// All storages and variables of a run whose elements are unknown.
#[derive(Default)]
pub(super) struct Store {
    contents: FxHashMap<usize, Contents>,
    variables: FxHashMap<usize, Variable>,
    /// Rows that rolled loops have left behind, by the address of their variable. Most are only joined again, so one is described in `variables` when it is
    /// first read, written or viewed.
    rows: FxHashMap<usize, Row>,
    /// Tensors with known elements that the run created, by storage: all tensors that share it, each as a view of the one that covers the whole storage.
    made: FxHashMap<usize, Vec<(TensorCell, Vec<PathStep>)>>,
    /// Constants of the graph by the address of their variable, each with its tensor in the tensor graph once it is used.
    pub constants: FxHashMap<usize, (TensorCell, Arc<TensorData>, Option<TensorId>)>,
}

pub(super) fn address(storage: &Arc<Storage>) -> usize {
    Arc::as_ptr(storage) as usize
}

/// Maximum number of bytes of a tensor in compiled code. No machine has more memory, and sums of offsets cannot overflow. For larger tensors, the interpreter
/// raises PyTorch's exception.
const MAX_BYTES: usize = 1 << 38;

/// Returns the number of bytes of a row-major tensor; `None` if it is more than compiled code may have.
pub(super) fn compiled_bytes(shape: &TensorShape) -> Option<usize> {
    // The sizes beside a zero are multiplied to strides all the same.
    iterations(&shape.sizes)?;
    let bytes = Tensor::byte_size(shape.dtype, &shape.sizes).ok()?;
    (bytes <= MAX_BYTES).then_some(bytes)
}

fn too_large(shape: &TensorShape) -> LowerError {
    LowerError::TooLarge {
        sizes: shape.sizes.to_vec(),
    }
}

impl Store {
    /// Records the constants of the graph to which the tensors in `value` belong; `value` was made from `constant`.
    pub fn note_constant(&mut self, constant: &Constant, value: &Value) {
        match (constant, value) {
            (Constant::Tensor(data), Value::Tensor(cell)) => {
                let entry = || (cell.clone(), data.clone(), None);
                self.constants.entry(cell.address()).or_insert_with(entry);
            }
            (Constant::List(l), Value::List(values)) => self.note_constants(&l.items, &values.items()),
            (Constant::Tuple(t), Value::Tuple(values)) => self.note_constants(&t.items, &values.items),
            (Constant::Dict(d), Value::Dict(values)) => values.with(|entries| {
                for ((_, constant), value) in d.entries.iter().zip(entries.values()) {
                    self.note_constant(constant, value);
                }
            }),
            _ => {}
        }
    }

    fn note_constants(&mut self, constants: &[Constant], values: &[Value]) {
        for (constant, value) in constants.iter().zip(values) {
            self.note_constant(constant, value);
        }
    }

    /// Returns a new variable that covers a new storage with the contents `id`.
    pub fn fresh(&mut self, id: TensorId, shape: &TensorShape, is_input: bool) -> Result<TensorCell, LowerError> {
        let bytes = compiled_bytes(shape).ok_or_else(|| too_large(shape))?;
        self.stored(id, shape, (&contiguous_strides(&shape.sizes), bytes), is_input)
    }

    /// Returns a variable as [`Store::fresh`] does, with the strides of a view of a storage of `bytes` bytes. Compiled code stores the elements in row-major
    /// order; the strides only determine whether operators return views or copies.
    pub fn strided(
        &mut self,
        id: TensorId,
        shape: &TensorShape,
        strides: &[i64],
        bytes: usize,
    ) -> Result<TensorCell, LowerError> {
        self.stored(id, shape, (strides, bytes), false)
    }

    /// Returns a variable as [`Store::fresh`] does, for an input with these strides. The contents are the elements of the input in row-major order.
    pub fn strided_input(
        &mut self,
        id: TensorId,
        shape: &TensorShape,
        strides: &[i64],
        is_outer: bool,
    ) -> Result<TensorCell, LowerError> {
        let dense = compiled_bytes(shape).ok_or_else(|| too_large(shape))?;
        let last = extent(&shape.sizes, strides).map_or(0, |(_, high)| high);
        let bytes = (last as usize + 1).saturating_mul(shape.dtype.size());
        if bytes > MAX_BYTES {
            return Err(too_large(shape));
        }
        self.stored(id, shape, (strides, bytes.max(dense)), is_outer)
    }

    /// Gives `cell`, which covers a storage of this store, other strides if these leave no gaps. Compiled code stores the elements in row-major order whatever
    /// the strides; these say what is a view and what a copy.
    pub fn lay_out(&mut self, cell: &TensorCell, strides: &[i64]) {
        let tensor = cell.get();
        if let Ok(tensor) = tensor.as_strided(tensor.sizes(), strides, 0)
            && let Some(contents) = self.contents.get_mut(&address(tensor.storage()))
        {
            contents.layout = tensor.clone();
            cell.set(tensor);
        }
    }

    /// Returns the path of views from the storage to `cell`; `None` for a tensor that is no variable of this store.
    pub fn path(&mut self, cell: &TensorCell) -> Option<&[PathStep]> {
        Some(&self.described(cell)?.path)
    }

    /// Returns the description of a variable; `None` for a tensor that is no variable of this store.
    fn described(&mut self, cell: &TensorCell) -> Option<&mut Variable> {
        let address = cell.address();
        if !self.variables.contains_key(&address)
            && let Some(row) = self.rows.get(&address)
        {
            let from = self.variables.get(&row.whole.address())?;
            let tensor = cell.get();
            let rank = tensor.sizes().len();
            let mut map = vec![Affine::constant(rank, row.index)];
            map.extend((0..rank).map(|d| Affine::index(rank, d)));
            let step = PathStep {
                kind: ViewKind::Affine(map),
                shape: TensorShape {
                    dtype: tensor.dtype(),
                    sizes: tensor.sizes().into(),
                },
            };
            let variable = Variable {
                _cell: cell.clone(),
                storage: from.storage,
                path: [from.path.as_slice(), &[step]].concat(),
                seen: None,
            };
            self.variables.insert(address, variable);
        }
        self.variables.get_mut(&address)
    }

    /// Returns the contents of the storage of a variable of this store.
    fn contents_of(&self, cell: &TensorCell) -> Option<&Contents> {
        match self.variables.get(&cell.address()) {
            Some(variable) => self.contents.get(&variable.storage),
            None if self.rows.contains_key(&cell.address()) => self.contents.get(&address(cell.get().storage())),
            None => None,
        }
    }

    /// Returns a new variable that is row `index` of `whole`, a variable. `tensor` has the row's layout.
    pub fn add_row(&mut self, whole: &TensorCell, index: i64, tensor: Tensor) -> TensorCell {
        let cell = TensorCell::new(tensor);
        let row = Row {
            _cell: cell.clone(),
            whole: whole.clone(),
            index,
        };
        self.rows.insert(cell.address(), row);
        cell
    }

    /// Returns the tensor of which `cell` is a row that a rolled loop has left behind, and the row's index.
    pub fn row(&self, cell: &TensorCell) -> Option<(TensorCell, i64)> {
        let row = self.rows.get(&cell.address())?;
        Some((row.whole.clone(), row.index))
    }

    /// Returns whether a rolled loop has left rows behind.
    pub fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    fn stored(
        &mut self,
        id: TensorId,
        shape: &TensorShape,
        (strides, bytes): (&[i64], usize),
        is_input: bool,
    ) -> Result<TensorCell, LowerError> {
        let storage = Storage::unknown(bytes);
        let tensor = Tensor::from_storage(storage.clone(), shape.dtype, &shape.sizes, strides, 0)
            .map_err(|_| too_large(shape))?;
        let contents = Contents {
            layout: tensor.clone(),
            whole: id,
            version: 0,
            is_input,
        };
        self.contents.insert(address(&storage), contents);
        Ok(self.variable(tensor, address(&storage), Vec::new(), Some((0, id))))
    }

    fn variable(
        &mut self,
        tensor: Tensor,
        storage: usize,
        path: Vec<PathStep>,
        seen: Option<(u32, TensorId)>,
    ) -> TensorCell {
        let cell = TensorCell::new(tensor);
        let variable = Variable {
            _cell: cell.clone(),
            storage,
            path,
            seen,
        };
        self.variables.insert(cell.address(), variable);
        cell
    }

    /// Returns a new variable that is a view of `base` by `step`, with the layout of `tensor`. Its current contents are `id`.
    pub fn view(
        &mut self,
        base: &TensorCell,
        steps: Vec<PathStep>,
        tensor: Tensor,
        id: TensorId,
    ) -> Option<TensorCell> {
        let from = self.described(base)?.clone();
        let version = self.contents.get(&from.storage)?.version;
        let mut path = from.path;
        path.extend(steps);
        Some(self.variable(tensor, from.storage, path, Some((version, id))))
    }

    /// Returns true for a variable of this store.
    pub fn knows(&self, cell: &TensorCell) -> bool {
        self.variables.contains_key(&cell.address()) || self.rows.contains_key(&cell.address())
    }

    /// Makes `cell`, the result of an operator, the same view as `like`.
    pub fn alias(&mut self, cell: &TensorCell, like: &TensorCell) {
        if let Some(variable) = self.described(like).cloned() {
            let variable = Variable {
                _cell: cell.clone(),
                ..variable
            };
            self.variables.insert(cell.address(), variable);
            self.rows.remove(&cell.address());
        }
    }

    /// Records a tensor with known elements that covers a storage of its own.
    pub fn note_made(&mut self, cell: &TensorCell) {
        let tensor = cell.get();
        if tensor.is_contiguous() && tensor.offset() == 0 {
            let all = vec![(cell.clone(), Vec::new())];
            self.made.entry(address(tensor.storage())).or_insert(all);
        }
    }

    /// Records that `cell` is a view of `base` by `steps`. Both have known elements.
    pub fn note_view(&mut self, cell: &TensorCell, base: &TensorCell, steps: Vec<PathStep>) {
        if let Some(all) = self.made.get_mut(&address(cell.get().storage()))
            && let Some((_, path)) = all.iter().find(|(c, _)| c.is(base))
            && !all.iter().any(|(c, _)| c.is(cell))
        {
            let path = [path.as_slice(), &steps].concat();
            all.push((cell.clone(), path));
        }
    }

    /// Removes the record of the variables that share the storage of `cell`, a tensor with known elements, because one of them has become another view.
    pub fn forget(&mut self, cell: &TensorCell) {
        self.made.remove(&address(cell.get().storage()));
    }

    /// Returns the tensor that covers the storage of `cell`, if the run created it and all tensors that share the storage are recorded.
    pub fn owner(&self, cell: &TensorCell) -> Option<TensorCell> {
        let tensor = cell.get();
        let all = self.made.get(&address(tensor.storage()))?;
        // One handle in each variable, one here.
        let complete = Arc::strong_count(tensor.storage()) == all.len() + 1;
        let (owner, _) = all.iter().find(|(_, path)| path.is_empty())?;
        complete.then(|| owner.clone())
    }

    /// Makes all tensors that share the storage of `owner` variables of this store. The contents are `id`, with shape `shape`.
    pub fn adopt(&mut self, owner: &TensorCell, id: TensorId, shape: &TensorShape) -> Result<(), LowerError> {
        let all = self.made.remove(&address(owner.get().storage())).unwrap_or_default();
        let whole = self.fresh(id, shape, false)?;
        let storage = address(whole.get().storage());
        for (cell, path) in all {
            let old = cell.get();
            let layout = whole.get().as_strided(old.sizes(), old.strides(), old.offset());
            cell.set(layout.map_err(|_| LowerError::Malformed("a view that leaves its storage".into()))?);
            let variable = Variable {
                _cell: cell.clone(),
                storage,
                path,
                seen: None,
            };
            self.variables.insert(cell.address(), variable);
        }
        Ok(())
    }

    /// Forgets reads whose results have ids from `end` on, since they are removed. No variable with such contents may be read again.
    pub fn forget_reads_from(&mut self, end: TensorId) {
        for variable in self.variables.values_mut() {
            variable.seen = variable.seen.filter(|&(_, id)| id < end);
        }
        for (_, _, read) in self.constants.values_mut() {
            *read = read.filter(|&id| id < end);
        }
    }

    /// Returns the addresses of all storages, including those of recorded tensors with known elements.
    pub fn storages(&self) -> FxHashSet<usize> {
        self.contents.keys().chain(self.made.keys()).copied().collect()
    }

    /// Returns the current contents of the storage at this address; `None` if it is no storage of this store.
    pub fn whole(&self, storage: usize) -> Option<TensorId> {
        self.contents.get(&storage).map(|contents| contents.whole)
    }

    /// Returns the current contents of the storage at this address, as [`Store::whole`] does, and the layout in which the storage holds them.
    pub fn whole_with_layout(&self, storage: usize) -> Option<(TensorId, Tensor)> {
        let contents = self.contents.get(&storage)?;
        Some((contents.whole, contents.layout.clone()))
    }

    /// Returns true if an input was written.
    pub fn wrote_input(&self) -> bool {
        self.contents.values().any(|c| c.is_input && c.version > 0)
    }

    /// Returns true for a variable of an input that has been written.
    pub fn is_written_input(&self, cell: &TensorCell) -> bool {
        self.contents_of(cell).is_some_and(|c| c.is_input && c.version > 0)
    }

    /// Returns true for a variable that was created in this run and has been written since.
    pub fn is_written(&self, cell: &TensorCell) -> bool {
        self.contents_of(cell).is_some_and(|c| !c.is_input && c.version > 0)
    }

    /// Returns the current contents of a variable.
    pub fn read(&mut self, graph: &mut TensorGraph, cell: &TensorCell) -> Option<TensorId> {
        self.described(cell)?;
        let variable = self.variables.get_mut(&cell.address())?;
        let contents = self.contents.get(&variable.storage)?;
        if let Some((version, id)) = variable.seen
            && version == contents.version
        {
            return Some(id);
        }
        let mut id = contents.whole;
        for step in &variable.path {
            id = graph.view(step.over(id), Vec::new());
        }
        variable.seen = Some((contents.version, id));
        Some(id)
    }

    /// Writes a variable, which creates the next version of its storage. Returns the reason if that is not possible.
    pub fn write(
        &mut self,
        graph: &mut TensorGraph,
        cell: &TensorCell,
        value: TensorId,
        origins: &[Origin],
    ) -> Result<(), &'static str> {
        let unknown = "writes to a tensor of unknown origin";
        let variable = self.described(cell).cloned().ok_or(unknown)?;
        let contents = self.contents.get_mut(&variable.storage).ok_or(unknown)?;
        // What each step of the path reads, from the whole on.
        let mut bases = vec![contents.whole];
        let mut base = contents.whole;
        for step in &variable.path {
            base = graph.view(step.over(base), Vec::new());
            bases.push(base);
        }
        let mut new = value;
        for (step, &base) in variable.path.iter().zip(&bases).rev() {
            new = match &step.kind {
                ViewKind::Reshape => {
                    let back = PathStep {
                        kind: ViewKind::Reshape,
                        shape: graph.shape(base).clone(),
                    };
                    graph.view(back.over(new), Vec::new())
                }
                ViewKind::Affine(map) => {
                    let s = scatter(graph, map, &step.shape, base, new)
                        .ok_or("writes to a diagonal or overlapping part of a tensor")?;
                    graph.nest(s, origins.to_vec())
                }
            };
        }
        contents.whole = new;
        contents.version += 1;
        Ok(())
    }
}

/// The position of a view in one dimension of its base.
struct Placed {
    /// The dimension of the view that iterates over this dimension, and the step between its elements; `None` if the view has one index here.
    along: Option<(usize, i64)>,
    /// The first index in the base.
    offset: i64,
    /// Number of elements of the view in this dimension.
    extent: i64,
}

/// Returns the position, in each dimension of its base, of a view by `map` with sizes `view`; `None` if elements of the view overlap or lie on a diagonal.
fn placed(map: &[Affine], view: &[i64]) -> Option<Vec<Placed>> {
    let mut found = vec![false; view.len()];
    let mut all = Vec::new();
    for m in map {
        let mut loops = m
            .coefficients
            .iter()
            .enumerate()
            .filter(|(d, c)| **c != 0 && view[*d] != 1);
        let along = match (loops.next(), loops.next()) {
            (None, _) => None,
            (Some((d, &step)), None) if step > 0 && !found[d] => {
                found[d] = true;
                Some((d, step))
            }
            _ => return None,
        };
        all.push(Placed {
            along,
            offset: m.offset,
            extent: along.map_or(1, |(d, _)| view[d]),
        });
    }
    // A dimension that no coordinate of the base follows is repeated: its elements overlap.
    found.iter().zip(view).all(|(&f, &n)| f || n == 1).then_some(all)
}

/// Returns the nest that copies `base` with `value` in place of its view by `map`. It selects one of the two for each element of `base`, by its coordinates.
fn scatter(
    graph: &mut TensorGraph,
    map: &[Affine],
    view: &TensorShape,
    base: TensorId,
    value: TensorId,
) -> Option<Structured> {
    let shape = graph.shape(base).clone();
    let rank = shape.sizes.len();
    let dtype = shape.dtype;
    let dims = placed(map, &view.sizes)?;
    let mut body = Expr::new();
    let mut inside = None;
    for (k, (dim, &size)) in dims.iter().zip(&shape.sizes).enumerate() {
        let step = dim.along.map_or(1, |(_, step)| step);
        if dim.offset == 0 && dim.extent == size && step == 1 {
            continue;
        }
        let at = body.push(ExprOp::Index(k as u32), DType::Long);
        let low = body.int(dim.offset, DType::Long);
        let high = body.int(dim.offset + step * (dim.extent - 1) + 1, DType::Long);
        let (ge, lt) = (body.binary(BinaryOp::Ge, at, low), body.binary(BinaryOp::Lt, at, high));
        let mut both = body.binary(BinaryOp::And, ge, lt);
        if step > 1 {
            let (step, zero) = (body.int(step, DType::Long), body.int(0, DType::Long));
            let distance = body.binary(BinaryOp::Sub, at, low);
            let rest = body.binary(BinaryOp::Remainder, distance, step);
            let hit = body.binary(BinaryOp::Eq, rest, zero);
            both = body.binary(BinaryOp::And, both, hit);
        }
        inside = Some(match inside {
            Some(i) => body.binary(BinaryOp::And, i, both),
            None => both,
        });
    }
    let identity = || (0..rank).map(|l| Affine::index(rank, l)).collect();
    let steps = dims.iter().any(|d| d.along.is_some_and(|(_, step)| step != 1));
    let read_new = if steps && view.numel() > 0 {
        Access {
            tensor: spread(graph, &dims, view, &shape, value)?,
            map: identity(),
            out_of_bounds: OutOfBounds::Never,
        }
    } else {
        // The view's coordinates as functions of the base's.
        let mut inverse: SmallVec<[Affine; 6]> = view.sizes.iter().map(|_| Affine::constant(rank, 0)).collect();
        for (k, dim) in dims.iter().enumerate() {
            if let Some((d, _)) = dim.along {
                inverse[d] = Affine::index(rank, k);
                inverse[d].offset = -dim.offset;
            }
        }
        Access {
            tensor: value,
            map: inverse,
            out_of_bounds: OutOfBounds::Value(Number::Int(0)),
        }
    };
    let new = body.input(0, dtype);
    let body = match inside {
        Some(inside) => {
            let old = body.input(1, dtype);
            let chosen = body.select(inside, new, old);
            body.finish(chosen)
        }
        None => Expr::identity(dtype),
    };
    let read_old = Access {
        tensor: base,
        map: identity(),
        out_of_bounds: OutOfBounds::Never,
    };
    Some(Structured {
        domain: shape.sizes.clone(),
        iterations: smallvec::smallvec![Iteration::Parallel; rank],
        inputs: smallvec::smallvec![read_new, read_old],
        body,
        combine: None,
        accumulate: dtype,
        finish: None,
        finish_inputs: SmallVec::new(),
        output: shape,
    })
}

/// Returns a tensor of the base's sizes that contains the elements of `value`, a view with steps, at the positions of the view. Other elements are
/// unspecified.
fn spread(
    graph: &mut TensorGraph,
    dims: &[Placed],
    view: &TensorShape,
    base: &TensorShape,
    value: TensorId,
) -> Option<TensorId> {
    let rank = base.sizes.len();
    let zero = Coordinate::Affine(Affine::constant(rank, 0));
    let mut coordinates: SmallVec<[Coordinate; 4]> = smallvec::smallvec![zero; view.sizes.len()];
    for (k, (dim, &size)) in dims.iter().zip(&base.sizes).enumerate() {
        let Some((d, step)) = dim.along else { continue };
        let place = |at: i64| ((at - dim.offset).div_euclid(step)).clamp(0, dim.extent - 1);
        let bytes: Vec<u8> = (0..size).flat_map(|at| place(at).to_ne_bytes()).collect();
        let index = graph.constant(Arc::new(TensorData::contiguous(DType::Long, &[size], bytes).ok()?));
        coordinates[d] = Coordinate::Value {
            tensor: index,
            map: vec![Affine::index(rank, k)],
        };
    }
    let gather = Gather {
        tensor: value,
        coordinates,
        from_end: false,
        message: "".into(),
        output: base.clone(),
    };
    Some(graph.push(base.clone(), TensorOp::Gather(Box::new(gather)), Vec::new()))
}

/// Collects the tensors in `value`.
pub(super) fn tensors_in(value: &Value, found: &mut Vec<TensorCell>) {
    match value {
        Value::Tensor(cell) => found.push(cell.clone()),
        Value::List(l) => l.items().iter().for_each(|v| tensors_in(v, found)),
        Value::Tuple(t) => t.items.iter().for_each(|v| tensors_in(v, found)),
        Value::Dict(d) => {
            let values: Vec<Value> = d.with(|entries| entries.values().cloned().collect());
            values.iter().for_each(|v| tensors_in(v, found));
        }
        _ => {}
    }
}
