//! Calls of operators on eager tensors.

use super::bind::{NoMatch, Positional};
use super::family::Family;
use super::names::NAMES;
use super::{Arg, Ops, Var};
use crate::error::{Error, Result};
use frazil_ir::TypeId;
use frazil_runtime::call::{Given, invoke_given, values_of};
use frazil_runtime::op::Results;
use frazil_runtime::{Operator, Semantics, Value};
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::sync::Arc;

/// A call of an operator that has not run yet. Keyword arguments are added by methods of their names or by [`OpCall::with`].
///
/// ```
/// # use frazil::{Session, Tensor};
/// # let ops = Session::new().eager();
/// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?);
/// let call = x.sum().dim([0]).keepdim(true); // nothing is computed yet
/// assert_eq!(call.call()?.sizes(), [1, 2]);
/// assert!(x.sum().dim([7]).call().is_err());
/// # Ok::<(), frazil::Error>(())
/// ```
#[must_use = "nothing is computed before `call`"]
pub struct OpCall<'a> {
    ops: &'a Ops,
    operator: Name,
    positional: Positional<'a>,
    named: Vec<(&'a str, Arg<'a>)>,
    place: &'static Location<'static>,
}

/// The operator that is called.
pub(super) enum Name {
    /// An operator with a method of its own, by its index in the table of methods.
    Known(usize),
    Other(Box<str>),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Name::Known(number) => NAMES.get(*number).copied().unwrap_or_default(),
            Name::Other(name) => name,
        })
    }
}

impl<'a> OpCall<'a> {
    #[track_caller]
    #[inline]
    pub(super) fn new(ops: &'a Ops, operator: Name) -> OpCall<'a> {
        OpCall {
            ops,
            operator,
            positional: SmallVec::new(),
            named: Vec::new(),
            place: Location::caller(),
        }
    }

    /// Adds a positional argument.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?);
    /// assert_eq!(x.start("aten::transpose").positional(0).positional(1).call()?.to_vec(), [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    #[inline]
    pub fn positional(mut self, value: impl Into<Arg<'a>>) -> OpCall<'a> {
        self.positional.push(value.into());
        self
    }

    /// Adds the keyword argument `name`.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
    /// assert_eq!(x.add(&x).with("alpha", 10).call()?.to_vec(), [11.0, 22.0]); // as `x.add(&x).alpha(10)`
    /// # Ok::<(), frazil::Error>(())
    /// ```
    #[inline]
    pub fn with(mut self, name: &'a str, value: impl Into<Arg<'a>>) -> OpCall<'a> {
        self.named.push((name, value.into()));
        self
    }

    /// Runs the call and returns its result, a tensor.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, -2.0], &[2])?);
    /// assert_eq!(x.relu().call()?.to_vec(), [1.0, 0.0]);
    /// let error = x.sort().call().unwrap_err(); // it gives two tensors
    /// assert_eq!(error.to_string(), "aten::sort does not give one tensor");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If no overload accepts these arguments, if the operator raises, or if the result is not one tensor.
    pub fn call(self) -> Result<Var> {
        let (mut results, ops) = self.run()?;
        match (results.pop(), results.is_empty()) {
            (Some(Value::Tensor(cell)), true) => Ok(ops.wrap(cell)),
            _ => Err(self.wrong_result("one tensor")),
        }
    }

    /// Runs the call and returns its `N` results, tensors: `let [values, indices] = ...`.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[3.0, 1.0], &[2])?);
    /// let [sorted, places] = x.sort().call_tuple()?;
    /// assert_eq!((sorted.to_vec(), places.to_vec()), (vec![1.0, 3.0], vec![1.0, 0.0]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`OpCall::call`]; also if the number of results is not `N`.
    pub fn call_tuple<const N: usize>(self) -> Result<[Var; N]> {
        let (results, ops) = self.run()?;
        let vars = results.iter().filter_map(|v| match v {
            Value::Tensor(cell) => Some(ops.wrap(cell.clone())),
            _ => None,
        });
        let vars: Vec<Var> = vars.collect();
        vars.try_into().map_err(|_| self.wrong_result("so many tensors"))
    }

    /// Runs the call and returns its result, a list of tensors.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0], &[3])?);
    /// let parts = x.split(2).call_list()?;
    /// assert_eq!((parts[0].to_vec(), parts[1].to_vec()), (vec![1.0, 2.0], vec![3.0]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`OpCall::call`]; also if the result is not a list of tensors.
    pub fn call_list(self) -> Result<Vec<Var>> {
        let (results, ops) = self.run()?;
        let items = match results.as_slice() {
            [Value::List(list)] => list.items(),
            _ => return Err(self.wrong_result("a list of tensors")),
        };
        let var = |v: &Value| match v {
            Value::Tensor(cell) => Ok(ops.wrap(cell.clone())),
            _ => Err(self.wrong_result("a list of tensors")),
        };
        items.iter().map(var).collect()
    }

    /// Runs the call and returns its only result, of any type.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
    /// let same = x.equal(&x).call_value()?; // `torch.equal` returns a bool and not a tensor
    /// assert!(matches!(same, frazil::Value::Bool(true)));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`OpCall::call`]; also if there is not exactly one result.
    pub fn call_value(self) -> Result<Value> {
        let (mut results, _) = self.run()?;
        match results.pop() {
            Some(value) if results.is_empty() => Ok(value),
            _ => Err(self.wrong_result("one value")),
        }
    }

    /// Runs the call and returns all its results.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[3.0, 1.0], &[2])?);
    /// let results = x.sort().call_values()?;
    /// assert_eq!(results[0].as_tensor().map(|t| t.to_f64_vec()), Some(vec![1.0, 3.0]));
    /// assert_eq!(results.len(), 2);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If no overload accepts these arguments, or if the operator raises.
    pub fn call_values(self) -> Result<Vec<Value>> {
        Ok(self.run()?.0.into_vec())
    }

    /// Runs the call. Returns the results, and the operators that ran it: those that record calls, if an argument belongs to a traced function.
    fn run(&self) -> Result<(Results, &Ops)> {
        let OpCall {
            operator: name,
            positional,
            named,
            place,
            ..
        } = self;
        let ops = self.recording().unwrap_or(self.ops);
        let no_match = |e: NoMatch| {
            Error::Call(match e {
                NoMatch::NoSemantics(schema) => format!("nothing says what this operator does: {schema}"),
                NoMatch::Arguments(schemas) => {
                    format!(
                        "{name}: no overload takes these arguments; there are\n  {}",
                        schemas.join("\n  ")
                    )
                }
            })
        };
        let Some(family) = ops.family_of(name) else {
            return Err(Error::Call(format!("there is no operator `{name}`")));
        };
        let bound = family.bind(ops, positional, named).map_err(no_match)?;
        let (overload, operator) = (bound.overload, bound.operator);
        let args = bound.args(ops.registry().ctx());
        let run = || ops.run(operator, &args, &overload.output_types);
        if !ops.is_tracing() {
            return Ok((run()?, ops));
        }
        // Operands are recorded before the call, since in-place operators change them.
        let (given, values) = (bound.given(), values_of(&args));
        let operands = ops
            .record(|r| r.operands(ops.registry(), operator, &given, &values, place))
            .transpose()?;
        let results = run()?;
        if let Some(operands) = operands {
            ops.record(|r| r.call(operator, &operands, &results, place));
        }
        Ok((results, ops))
    }

    /// Returns the operators that record calls, if an argument belongs to a function that is being traced.
    fn recording(&self) -> Option<&Ops> {
        fn find<'b>(arg: &'b Arg<'_>) -> Option<&'b Ops> {
            match arg {
                Arg::Borrowed(var) => Some(var.ops()).filter(|ops| ops.is_tracing()),
                Arg::Var(var) => Some(var.ops()).filter(|ops| ops.is_tracing()),
                Arg::List(items) => items.iter().find_map(find),
                Arg::Value(_) => None,
            }
        }
        if self.ops.is_tracing() {
            return None;
        }
        let mut args = self.positional.iter().chain(self.named.iter().map(|(_, arg)| arg));
        args.find_map(find)
    }

    fn wrong_result(&self, expected: &str) -> Error {
        Error::Call(format!("{} does not give {expected}", self.operator))
    }
}

/// A reference to an operator's overloads, in either of the two caches.
enum Found<'f> {
    Known(&'f Family),
    Other(Arc<Family>),
}

impl Deref for Found<'_> {
    type Target = Family;

    fn deref(&self) -> &Family {
        match self {
            Found::Known(family) => family,
            Found::Other(family) => family,
        }
    }
}

impl Ops {
    /// Returns the overloads of `operator`, which are looked up at the first call.
    fn family_of(&self, operator: &Name) -> Option<Found<'_>> {
        match operator {
            Name::Known(number) => self.known_family(*number).map(Found::Known),
            Name::Other(name) => self.family(name).map(Found::Other),
        }
    }

    fn run(&self, operator: &Operator, args: &[Given<'_>], output_types: &[TypeId]) -> Result<Results> {
        if let Semantics::Composite(_) = operator.semantics() {
            let results = self.interpreter().run_operator(operator, &values_of(args));
            return results.map_err(Error::Run);
        }
        Ok(invoke_given(self.registry().ctx(), operator, args, output_types)?)
    }
}
