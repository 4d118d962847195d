//! Calls: an operator, what it is given, and running it.

use super::bind::{Family, NoMatch, Positional};
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

/// A call of an operator, before it runs: arguments by name may still be given, each by a method of its name or by [`OpCall::with`].
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

/// Which operator.
pub(super) enum Name {
    /// One that has a method: its number among them.
    Known(usize),
    Other(Box<str>),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Name::Known(number) => super::NAMES.get(*number).copied().unwrap_or_default(),
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

    /// Gives the next argument by position.
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

    /// Gives argument `name`.
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

    /// Runs it and gives its result, a tensor.
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
    /// When no overload takes these arguments, what the operator raises, and when the result is not one tensor.
    pub fn call(self) -> Result<Var> {
        let (mut results, ops) = self.run()?;
        match (results.pop(), results.is_empty()) {
            (Some(Value::Tensor(cell)), true) => Ok(ops.wrap(cell)),
            _ => Err(self.wrong_result("one tensor")),
        }
    }

    /// Runs it and gives its `N` results, tensors: `let [values, indices] = ...`.
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
    /// Those of [`OpCall::call`], and when there are not `N`.
    pub fn call_tuple<const N: usize>(self) -> Result<[Var; N]> {
        let (results, ops) = self.run()?;
        let vars = results.iter().filter_map(|v| match v {
            Value::Tensor(cell) => Some(ops.wrap(cell.clone())),
            _ => None,
        });
        let vars: Vec<Var> = vars.collect();
        vars.try_into().map_err(|_| self.wrong_result("so many tensors"))
    }

    /// Runs it and gives its result, a list of tensors.
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
    /// Those of [`OpCall::call`], and when the result is no such list.
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

    /// Runs it and gives its only result, whatever it is.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
    /// let same = x.equal(&x).call_value()?; // `torch.equal` gives a truth value and no tensor
    /// assert!(matches!(same, frazil::Value::Bool(true)));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`OpCall::call`], and when there is not one result.
    pub fn call_value(self) -> Result<Value> {
        let (mut results, _) = self.run()?;
        match results.pop() {
            Some(value) if results.is_empty() => Ok(value),
            _ => Err(self.wrong_result("one value")),
        }
    }

    /// Runs it and gives all its results.
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
    /// When no overload takes these arguments, and what the operator raises.
    pub fn call_values(self) -> Result<Vec<Value>> {
        Ok(self.run()?.0.into_vec())
    }

    /// Runs it; with the operators that the results belong to.
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
        let (overload, operator) = family.bind(ops, positional, named).map_err(no_match)?;
        let args = overload.args(ops.registry().ctx(), positional, named);
        let run = || ops.run(operator, &args, &overload.output_types);
        if !ops.is_tracing() {
            return Ok((run()?, ops));
        }
        // Operands are noted before the call: in-place operators make other values of them.
        let (given, values) = (overload.given(positional, named), values_of(&args));
        let operands = ops
            .record(|r| r.operands(operator, &given, &values, place))
            .transpose()?;
        let results = run()?;
        if let Some(operands) = operands {
            ops.record(|r| r.call(operator, &operands, &results, place));
        }
        Ok((results, ops))
    }

    /// The operators to call where an argument comes from a function that is being traced: those that record.
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

/// An operator's overloads, where they are kept.
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
    /// The operator's overloads, which are looked up once.
    fn family_of(&self, operator: &Name) -> Option<Found<'_>> {
        match operator {
            Name::Known(number) => {
                let find = || {
                    let name = super::NAMES.get(*number)?;
                    Family::find(&self.shared.registry, name)
                };
                let known = self.shared.known.get(*number)?;
                known.get_or_init(find).as_ref().map(Found::Known)
            }
            Name::Other(name) => self.family(name).map(Found::Other),
        }
    }

    fn run(&self, operator: &Operator, args: &[Given<'_>], output_types: &[TypeId]) -> Result<Results> {
        if let Semantics::Composite(_) = operator.semantics() {
            let results = self.shared.interpreter.run_operator(operator, &values_of(args));
            return results.map_err(Error::Run);
        }
        Ok(invoke_given(self.registry().ctx(), operator, args, output_types)?)
    }
}
