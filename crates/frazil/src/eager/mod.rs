//! Eager tensors: every operator of the catalogue is a method, with arguments by position and by name.
//!
//! ```
//! use frazil::{Session, Tensor};
//!
//! # fn main() -> Result<(), frazil::Error> {
//! let ops = Session::new().eager();
//! let x = ops.var(Tensor::from_f32(&[1.0, -2.0, 3.0, -4.0], &[2, 2])?);
//! let y = (x.relu().call()? * 2.0)?; // operators of Rust broadcast and promote as PyTorch's do
//! let sums = y.sum().dim([1]).keepdim(true).call()?; // arguments by name; the others have their defaults
//! assert_eq!(sums.get().to_f64_vec(), [2.0, 6.0]);
//! y.at(0)?.fill_(9).call()?; // a view: y changes
//! assert_eq!(y.get().to_f64_vec(), [9.0, 9.0, 6.0, 0.0]);
//! let [values, indices] = y.max().dim(1).call_tuple()?;
//! assert_eq!((values.get().to_f64_vec(), indices.get().to_i64_vec()), (vec![9.0, 6.0], vec![0, 0]));
//! # Ok(())
//! # }
//! ```
//!
//! - An [`Ops`] belongs to a [`Session`] and calls its operators, including those of embedders ([`Ops::start`]). It is cheap to clone.
//! - A [`Var`] is a tensor variable: clones are the same variable, views share its memory, and in-place methods change it.
//! - A method takes the arguments that all overloads of its operator require, and returns an [`OpCall`]. This takes the others by name, and [`OpCall::call`] or
//!   one of its variants runs it. The overload is chosen by the arguments, as in PyTorch.
//!
//! Calls in a traced function are recorded too; see [`Session::trace`](crate::Session::trace).

mod arg;
mod arithmetic;
mod bind;
mod call;
mod elements;
mod index;
pub(crate) mod outputs;
pub(crate) mod recorder;
pub(crate) mod warning;

pub use arg::Arg;
pub use call::OpCall;
pub use elements::Elements;
pub use index::Index;

use crate::error::Result;
use crate::session::Session;
use bind::Family;
use frazil_ir::DType;
use frazil_runtime::interp::Interpreter;
use frazil_runtime::value::TensorCell;
use frazil_runtime::{Registry, Scalar, Tensor, Value};
use recorder::Recorder;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// The callable operators of a session. See the [module documentation](self).
///
/// ```
/// # use frazil::{Session, Tensor};
/// let ops = Session::new().eager();
/// let x = ops.var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
/// assert_eq!(ops.cat([&x, &x]).call()?.to_vec(), [1.0, 2.0, 1.0, 2.0]); // it starts from a list, not from one tensor
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone)]
pub struct Ops {
    shared: Arc<Shared>,
    /// Recorder of the calls, if the operators belong to a function that is being traced.
    recorder: Option<Arc<Mutex<Recorder>>>,
}

/// State that all eager tensors of a session share: interpreter and caches of overloads.
struct Shared {
    registry: Arc<Registry>,
    interpreter: Interpreter,
    /// Overloads of the operators that have methods, by the index of the method.
    known: Box<[OnceLock<Option<Family>>]>,
    /// Overloads of other operators that have been called, by name.
    families: RwLock<HashMap<Box<str>, Option<Arc<Family>>>>,
}

/// A tensor variable. Clones are the same variable. See the [module documentation](self).
///
/// ```
/// # use frazil::{Session, Tensor};
/// # let ops = Session::new().eager();
/// let x = ops.var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
/// let same = x.clone();
/// same.mul_(3).call()?; // a clone is the same variable: `clone_tensor` copies
/// assert_eq!(x.to_vec(), [3.0, 6.0]);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone)]
pub struct Var {
    cell: TensorCell,
    ops: Ops,
}

impl Session {
    /// Returns the session's operators, which can be called on tensors.
    ///
    /// See the [module documentation](crate::eager) for an example.
    pub fn eager(&self) -> Ops {
        Ops {
            shared: Arc::new(Shared {
                registry: Arc::clone(self.registry()),
                interpreter: Interpreter::new(Arc::clone(self.registry())),
                known: NAMES.iter().map(|_| OnceLock::new()).collect(),
                families: RwLock::default(),
            }),
            recorder: None,
        }
    }
}

impl Ops {
    /// Returns a new variable with `tensor`, whose memory it shares.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[4.0, 9.0], &[2])?);
    /// assert_eq!(x.sqrt().call()?.to_vec(), [2.0, 3.0]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn var(&self, tensor: Tensor) -> Var {
        self.wrap(TensorCell::new(tensor))
    }

    pub(crate) fn wrap(&self, cell: TensorCell) -> Var {
        Var {
            cell,
            ops: self.clone(),
        }
    }

    /// Returns the variable in `value`; `None` if the value is not a tensor.
    ///
    /// ```
    /// # use frazil::{Session, Tensor, Value};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0], &[1])?);
    /// let same = ops.var_of(&x.to_value()).ok_or("a tensor")?;
    /// same.mul_(3).call()?;
    /// assert_eq!(x.to_vec(), [3.0]);
    /// assert!(ops.var_of(&Value::Int(3)).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn var_of(&self, value: &Value) -> Option<Var> {
        match value {
            Value::Tensor(cell) => Some(self.wrap(cell.clone())),
            _ => None,
        }
    }

    /// Returns a 0-d tensor.
    ///
    /// ```
    /// # use frazil::{Session, ir::DType};
    /// # let ops = Session::new().eager();
    /// let three = ops.scalar(DType::Long, 3.into());
    /// assert_eq!((three.sizes(), three.to_vec()), (vec![], vec![3.0]));
    /// ```
    pub fn scalar(&self, dtype: DType, value: Scalar) -> Var {
        self.var(Tensor::scalar(dtype, value))
    }

    /// Starts a call of any operator by its qualified name: `aten::add`, `mine::swish`. Arguments are added to the returned call.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
    /// assert_eq!(ops.start("aten::mul").positional(&x).positional(3).call()?.to_vec(), [3.0, 6.0]);
    /// assert!(ops.start("mine::swish").positional(&x).call().is_err()); // no dialect has it
    /// # Ok::<(), frazil::Error>(())
    /// ```
    #[track_caller]
    pub fn start(&self, operator: &str) -> OpCall<'_> {
        OpCall::new(self, call::Name::Other(operator.into()))
    }

    /// Starts a call of the operator with index `number` in the table of methods, as [`Ops::start`] does for a name.
    #[track_caller]
    #[inline]
    fn start_known(&self, number: usize) -> OpCall<'_> {
        OpCall::new(self, call::Name::Known(number))
    }

    /// Returns the overloads of `operator`, which are looked up at the first call.
    fn family(&self, operator: &str) -> Option<Arc<Family>> {
        let known = self
            .shared
            .families
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(operator)
            .cloned();
        known.unwrap_or_else(|| {
            let family = Family::find(&self.shared.registry, operator).map(Arc::new);
            let mut families = self.shared.families.write().unwrap_or_else(PoisonError::into_inner);
            families.entry(operator.into()).or_insert(family).clone()
        })
    }

    /// Returns the same operators, whose calls `recorder` records.
    pub(crate) fn recorded_by(&self, recorder: Arc<Mutex<Recorder>>) -> Ops {
        Ops {
            shared: Arc::clone(&self.shared),
            recorder: Some(recorder),
        }
    }

    /// Returns true in a traced function (`torch.jit.is_tracing`).
    ///
    /// ```
    /// use frazil::{Session, Tensor, trace::TraceOptions};
    ///
    /// # let session = Session::new();
    /// assert!(!session.eager().is_tracing());
    /// let function = |x: &[frazil::eager::Var]| if x[0].ops().is_tracing() { x[0].neg().call() } else { Ok(x[0].clone()) };
    /// let trace = session.trace(function, &[Tensor::from_f32(&[1.0], &[1])?], &TraceOptions::default())?;
    /// assert!(trace.graph("forward")?.to_string().contains("aten::neg"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn is_tracing(&self) -> bool {
        self.recorder.is_some()
    }

    /// Sets the source location of later calls, for the recorded graph and for warnings: a file and a line, or none. It is intended for calls from other
    /// languages; calls from Rust have their location in Rust.
    ///
    /// ```
    /// # use frazil::{Session, Tensor, trace::TraceOptions};
    /// # let session = Session::new();
    /// let function = |x: &[frazil::eager::Var]| {
    ///     x[0].ops().set_place(Some(("model.lua", 7)));
    ///     x[0].neg().call()
    /// };
    /// let trace = session.trace(function, &[Tensor::from_f32(&[1.0], &[1])?], &TraceOptions::default())?;
    /// assert!(trace.graph("forward")?.to_string().contains("# model.lua:7:0"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn set_place(&self, place: Option<(&str, u32)>) {
        self.record(|r| r.set_place(place));
    }

    /// Calls `note` with the recorder, if calls are recorded.
    pub(crate) fn record<R>(&self, note: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
        let recorder = self.recorder.as_ref()?;
        Some(note(&mut recorder.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.shared.registry
    }
}

impl Var {
    /// Returns the current tensor, which shares the variable's memory: later in-place operators change it. For a snapshot, see [`Elements`].
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
    /// let tensor = x.get();
    /// assert_eq!(tensor.to_f64_vec(), [1.0, 2.0]);
    /// x.fill_(0).call()?;
    /// assert_eq!(tensor.to_f64_vec(), [0.0, 0.0]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn get(&self) -> Tensor {
        self.cell.get()
    }

    /// Returns the operators of the variable's session, which its methods call.
    ///
    /// ```
    /// # use frazil::{Session, Tensor, eager::Var};
    /// fn twice(x: &Var) -> frazil::Result<Var> {
    ///     x.ops().cat([x, x]).call() // no session is needed
    /// }
    /// let x = Session::new().eager().var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
    /// assert_eq!(twice(&x)?.sizes(), [4]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn ops(&self) -> &Ops {
        &self.ops
    }

    pub(crate) fn cell(&self) -> &TensorCell {
        &self.cell
    }

    /// Returns the variable as a value. It stays the same variable.
    ///
    /// See [`Ops::var_of`] for an example.
    pub fn to_value(&self) -> Value {
        Value::Tensor(self.cell.clone())
    }

    /// Starts a call of any operator with this tensor as its first argument.
    ///
    /// See [`OpCall::positional`] for an example.
    #[track_caller]
    pub fn start(&self, operator: &str) -> OpCall<'_> {
        self.ops.start(operator).positional(self)
    }

    /// Starts a call of an operator with a method, by its index, as [`Var::start`] does.
    #[track_caller]
    #[inline]
    fn start_known(&self, number: usize) -> OpCall<'_> {
        self.ops.start_known(number).positional(self)
    }

    /// Names the value in the graph that is being recorded. PyTorch's tracer uses the names of Python's variables.
    ///
    /// ```
    /// # use frazil::{Session, Tensor, trace::TraceOptions};
    /// # let session = Session::new();
    /// let function = |x: &[frazil::eager::Var]| x[0].relu().call()?.named("positive").neg().call();
    /// let trace = session.trace(function, &[Tensor::from_f32(&[1.0], &[1])?], &TraceOptions::default())?;
    /// assert!(trace.graph("forward")?.to_string().contains("aten::neg(%positive)"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    #[must_use]
    pub fn named(self, name: &str) -> Var {
        self.ops.record(|r| r.name(&self.cell, name));
        self
    }

    /// Returns the sizes as plain numbers, which are constants in a recorded graph.
    ///
    /// See [`Var::size`] for an example.
    pub fn sizes(&self) -> Vec<i64> {
        self.get().sizes().to_vec()
    }

    /// Returns the size of dimension `dim` (negative ones count from the end) as a zero-dimensional tensor, which converts to a number where one is required.
    /// A recorded graph computes the size from its input.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0], &[1, 3])?);
    /// assert_eq!((x.sizes(), x.size(-1)?.to_vec()), (vec![1, 3], vec![3.0]));
    /// let flat = x.reshape([x.size(1)?]).call()?; // in a trace: the size of whatever comes in
    /// assert_eq!(flat.sizes(), [3]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such dimension.
    #[track_caller]
    pub fn size(&self, dim: i64) -> Result<Var> {
        let place = std::panic::Location::caller();
        let value = self.start("aten::size").positional(dim).call_value()?;
        let size = value.as_int().unwrap_or_default();
        let var = self.ops.scalar(DType::Long, Scalar::Int(size));
        self.ops.record(|r| r.size(&self.cell, dim, &var.cell, place));
        Ok(var)
    }

    /// Returns the only element (`Tensor.item`).
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
    /// assert_eq!(x.sum().call()?.item()?.as_f64(), 3.0);
    /// assert!(x.item().is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not exactly one.
    #[track_caller]
    pub fn item(&self) -> Result<Scalar> {
        self.leaves_the_trace("number");
        Ok(self.get().item()?)
    }

    /// Returns the only element as a bool, as `if` converts it in Python.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
    /// assert!(x.gt(0).call()?.all().call()?.is_true()?);
    /// assert!(x.is_true().is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not exactly one element.
    #[track_caller]
    pub fn is_true(&self) -> Result<bool> {
        self.leaves_the_trace("boolean");
        Ok(self.get().item()?.as_bool())
    }

    /// Returns the elements in row-major order, converted (`Tensor.tolist`).
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_i64(&[1, 2, 3, 4], &[2, 2])?);
    /// assert_eq!(x.t().call()?.to_vec(), [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    #[track_caller]
    pub fn to_vec(&self) -> Vec<f64> {
        self.leaves_the_trace("list");
        self.get().to_f64_vec()
    }

    /// In a traced function, warns that later code may depend on a value that is not in the graph.
    #[track_caller]
    fn leaves_the_trace(&self, kind: &str) {
        let place = std::panic::Location::caller();
        self.ops.record(|r| r.leaves(&self.cell, kind, place));
    }
}

impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Returns the index of an operator with a method. In a constant, a name without a method is a compile error.
const fn known(name: &str) -> usize {
    let mut number = 0;
    while !is(NAMES[number].as_bytes(), name.as_bytes()) {
        number += 1;
    }
    number
}

/// Returns whether two byte strings are equal, in constant expressions.
const fn is(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

include!(concat!(env!("OUT_DIR"), "/methods.rs"));
