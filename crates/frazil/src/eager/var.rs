//! Operators of a session and tensor variables, without the methods that start calls.

use super::family::Family;
use super::names::NAMES;
use super::recorder::Recorder;
use crate::error::Result;
use crate::session::Session;
use frazil_ir::DType;
use frazil_runtime::interp::Interpreter;
use frazil_runtime::value::TensorCell;
use frazil_runtime::{Registry, Scalar, Tensor, Value};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// The callable operators of a session. See the [module documentation](super).
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
    /// Records the calls, in a traced function.
    recorder: Option<Arc<Mutex<Recorder>>>,
}

/// State that all eager tensors of a session share.
struct Shared {
    registry: Arc<Registry>,
    interpreter: Interpreter,
    /// Operators that have methods, by index.
    known: Box<[OnceLock<Option<Family>>]>,
    /// Other operators that have been called, by name.
    families: RwLock<HashMap<Box<str>, Option<Arc<Family>>>>,
}

/// A tensor variable. Clones are the same variable. See the [module documentation](super).
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
    /// Returns the session's operators, callable on tensors.
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
    /// Returns a variable that holds `tensor`, whose memory it shares.
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

    /// Returns the variable in `value`; `None` if it is not a tensor.
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

    /// Returns the same operators, with calls recorded by `recorder`.
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

    /// Sets the source location of the following calls, for the graph that is being recorded and for warnings: a file and a line, or none. This is for calls
    /// from another language; others have their location in Rust.
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

    /// Calls `note` with the recorder, if there is one.
    pub(crate) fn record<R>(&self, note: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
        let recorder = self.recorder.as_ref()?;
        Some(note(&mut recorder.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Returns the overloads of the operator that has a method and this index, looked up once.
    pub(super) fn known_family(&self, number: usize) -> Option<&Family> {
        let find = || Family::find(self.registry(), NAMES.get(number)?);
        self.shared.known.get(number)?.get_or_init(find).as_ref()
    }

    /// Returns the operator's overloads, looked up once.
    pub(super) fn family(&self, operator: &str) -> Option<Arc<Family>> {
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

    pub(super) fn interpreter(&self) -> &Interpreter {
        &self.shared.interpreter
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.shared.registry
    }
}

impl Var {
    /// Returns the current tensor, which shares the variable's memory: later in-place operators change it. For a snapshot, see [`Elements`](super::Elements).
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

    /// Returns the operators that its methods call.
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

    /// Names the value in a graph that is being recorded. PyTorch's tracer takes these names from Python's variables.
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

    /// Returns the sizes as plain numbers: constants in a graph that is being recorded.
    ///
    /// See [`Var::size`] for an example.
    pub fn sizes(&self) -> Vec<i64> {
        self.get().sizes().to_vec()
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

    /// Warns, in a traced function, that following code may depend on a value that is not in the graph.
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
