//! Tensor variables without elements: views of versioned storages.

use super::Specialiser;
use crate::affine::as_loop;
use crate::error::LowerError;
use crate::graph::{Origin, TensorGraph};
use frazil_ir::{DType, TensorData};
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp, Number};
use frazil_runtime::import::tensor_to_constant;
use frazil_runtime::layout::{checked_numel, contiguous_strides};
use frazil_runtime::structured::{
    Access, Affine, Iteration, OutOfBounds, Structured, TensorId, TensorShape, ViewKind, ViewMap,
};
use frazil_runtime::value::TensorCell;
use frazil_runtime::{Storage, Tensor};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// One step from a storage's whole contents to a view of it.
#[derive(Clone, Debug)]
pub(super) struct PathStep {
    pub kind: ViewKind,
    pub shape: TensorShape,
}

/// The contents of a storage at the present point of the run.
struct Contents {
    /// Keeps the address from being used again.
    _storage: Arc<Storage>,
    /// The tensor that fills the storage.
    whole: TensorId,
    version: u32,
    is_input: bool,
}

/// What a tensor variable is.
#[derive(Clone)]
pub(super) struct Variable {
    /// Keeps the address from being used again.
    _cell: TensorCell,
    storage: usize,
    path: Vec<PathStep>,
    /// The tensor that it was when it was last read, and the version of the storage then.
    seen: Option<(u32, TensorId)>,
}

/// All storages and variables of a run that have no elements.
#[derive(Default)]
pub(super) struct Store {
    contents: HashMap<usize, Contents>,
    variables: HashMap<usize, Variable>,
    /// Tensors with elements that the run made, by storage: those that share it, and how each views the one that fills it.
    made: HashMap<usize, Vec<(TensorCell, Vec<PathStep>)>>,
    /// Constants of the graph by the address of their variable, and what they are in the tensor graph.
    pub constants: HashMap<usize, (TensorCell, Arc<TensorData>, Option<TensorId>)>,
}

pub(super) fn address(storage: &Arc<Storage>) -> usize {
    Arc::as_ptr(storage) as usize
}

impl Store {
    /// A new variable that is all of a new storage with contents `id`.
    pub fn fresh(&mut self, id: TensorId, shape: &TensorShape, is_input: bool) -> Result<TensorCell, LowerError> {
        let too_large = || LowerError::TooLarge {
            sizes: shape.sizes.to_vec(),
        };
        let numel = checked_numel(&shape.sizes).ok_or_else(too_large)?;
        let bytes = (numel as usize)
            .checked_mul(shape.dtype.size())
            .filter(|b| *b <= isize::MAX as usize / 4)
            .ok_or_else(too_large)?;
        let storage = Storage::unknown(bytes);
        let strides = contiguous_strides(&shape.sizes);
        let tensor =
            Tensor::from_storage(storage.clone(), shape.dtype, &shape.sizes, &strides, 0).map_err(|_| too_large())?;
        let contents = Contents {
            _storage: storage.clone(),
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

    /// A new variable that views `base` through `step` and has the layout of `tensor`; `id` is its present contents.
    pub fn view(
        &mut self,
        base: &TensorCell,
        steps: Vec<PathStep>,
        tensor: Tensor,
        id: TensorId,
    ) -> Option<TensorCell> {
        let from = self.variables.get(&base.address())?.clone();
        let version = self.contents.get(&from.storage)?.version;
        let mut path = from.path;
        path.extend(steps);
        Some(self.variable(tensor, from.storage, path, Some((version, id))))
    }

    /// True for a variable of this store.
    pub fn knows(&self, cell: &TensorCell) -> bool {
        self.variables.contains_key(&cell.address())
    }

    /// Lets `cell`, which an operator made, be the same view as `like`.
    pub fn alias(&mut self, cell: &TensorCell, like: &TensorCell) {
        if let Some(variable) = self.variables.get(&like.address()).cloned() {
            let variable = Variable {
                _cell: cell.clone(),
                ..variable
            };
            self.variables.insert(cell.address(), variable);
        }
    }

    /// Notes a tensor with elements that fills a storage of its own.
    pub fn note_made(&mut self, cell: &TensorCell) {
        let tensor = cell.get();
        if tensor.is_contiguous() && tensor.offset() == 0 {
            let all = vec![(cell.clone(), Vec::new())];
            self.made.entry(address(tensor.storage())).or_insert(all);
        }
    }

    /// Notes that `cell` views `base`, both with elements, through `steps`.
    pub fn note_view(&mut self, cell: &TensorCell, base: &TensorCell, steps: Vec<PathStep>) {
        if let Some(all) = self.made.get_mut(&address(cell.get().storage()))
            && let Some((_, path)) = all.iter().find(|(c, _)| c.is(base))
            && !all.iter().any(|(c, _)| c.is(cell))
        {
            let path = [path.as_slice(), &steps].concat();
            all.push((cell.clone(), path));
        }
    }

    /// The tensor that fills the storage of `cell`, when it was made by the run and everything that shares it is noted.
    pub fn owner(&self, cell: &TensorCell) -> Option<TensorCell> {
        let tensor = cell.get();
        let all = self.made.get(&address(tensor.storage()))?;
        // One handle in each variable, one here.
        let complete = Arc::strong_count(tensor.storage()) == all.len() + 1;
        let (owner, _) = all.iter().find(|(_, path)| path.is_empty())?;
        complete.then(|| owner.clone())
    }

    /// Makes all tensors that share the storage of `owner` variables of this store, with contents `id` of shape `shape`.
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

    /// True when an input was written.
    pub fn wrote_input(&self) -> bool {
        self.contents.values().any(|c| c.is_input && c.version > 0)
    }

    /// The present contents of a variable.
    fn read(&mut self, graph: &mut TensorGraph, cell: &TensorCell) -> Option<TensorId> {
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

    /// Gives a variable new contents: the next version of its storage. `Err` says why that is not possible.
    pub fn write(
        &mut self,
        graph: &mut TensorGraph,
        cell: &TensorCell,
        value: TensorId,
        origins: &[Origin],
    ) -> Result<(), &'static str> {
        let unknown = "writes to a tensor of unknown origin";
        let variable = self.variables.get(&cell.address()).cloned().ok_or(unknown)?;
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
                        .ok_or("writes to a strided or overlapping part of a tensor")?;
                    graph.compute(s, origins.to_vec())
                }
            };
        }
        contents.whole = new;
        contents.version += 1;
        Ok(())
    }
}

impl PathStep {
    fn over(&self, tensor: TensorId) -> ViewMap {
        ViewMap {
            tensor,
            kind: self.kind.clone(),
            output: self.shape.clone(),
        }
    }
}

/// `base` with `value` in the place of its view by `map`: a choice for each element of `base` by its coordinates.
fn scatter(
    graph: &TensorGraph,
    map: &[Affine],
    view: &TensorShape,
    base: TensorId,
    value: TensorId,
) -> Option<Structured> {
    let shape = graph.shape(base).clone();
    let rank = shape.sizes.len();
    let dtype = shape.dtype;
    let mut body = Expr::new();
    let mut inside = None;
    // The view's coordinates as functions of the base's.
    let mut inverse: SmallVec<[Affine; 6]> = view.sizes.iter().map(|_| Affine::constant(rank, 0)).collect();
    let mut found = vec![false; view.sizes.len()];
    for (k, m) in map.iter().enumerate() {
        let shifted = Affine { offset: 0, ..m.clone() };
        let extent = match as_loop(&shifted) {
            Some(d) if !found[d] => {
                found[d] = true;
                inverse[d] = Affine::index(rank, k);
                inverse[d].offset = -m.offset;
                view.sizes[d]
            }
            None if m.coefficients.iter().all(|&c| c == 0) => 1,
            _ => return None,
        };
        let whole = m.offset == 0 && extent == shape.sizes[k];
        if !whole {
            let at = body.push(ExprOp::Index(k as u32), DType::Long);
            let (low, high) = (
                body.int(m.offset, DType::Long),
                body.int(m.offset + extent, DType::Long),
            );
            let (ge, lt) = (body.binary(BinaryOp::Ge, at, low), body.binary(BinaryOp::Lt, at, high));
            let both = body.binary(BinaryOp::And, ge, lt);
            inside = Some(match inside {
                Some(i) => body.binary(BinaryOp::And, i, both),
                None => both,
            });
        }
    }
    // A dimension that no coordinate of the base follows is repeated: its elements overlap.
    if found.iter().zip(&view.sizes).any(|(&f, &n)| !f && n != 1) {
        return None;
    }
    let new = body.input(0, dtype);
    let body = match inside {
        Some(inside) => {
            let old = body.input(1, dtype);
            let chosen = body.select(inside, new, old);
            body.finish(chosen)
        }
        None => Expr::identity(dtype),
    };
    let read_new = Access {
        tensor: value,
        map: inverse,
        out_of_bounds: OutOfBounds::Value(Number::Int(0)),
    };
    let read_old = Access {
        tensor: base,
        map: (0..rank).map(|l| Affine::index(rank, l)).collect(),
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

impl Specialiser<'_> {
    /// The present contents of a tensor variable; a constant when its elements are known.
    pub(super) fn read(&mut self, cell: &TensorCell) -> Result<TensorId, LowerError> {
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
