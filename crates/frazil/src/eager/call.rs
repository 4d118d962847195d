//! Calls: an operator, what it is given, and running it.

use super::bind::{Bound, Family, NoMatch, Positional};
use super::{Arg, Ops, Var};
use crate::{Error, Result};
use frazil_runtime::call::invoke;
use frazil_runtime::op::Results;
use frazil_runtime::{Semantics, Value};
use smallvec::SmallVec;
use std::fmt;
use std::panic::Location;

/// A call of an operator, before it runs: arguments by name may still be given, each by a method of its name or by [`OpCall::with`].
#[must_use = "nothing is computed before `call`"]
pub struct OpCall {
    ops: Ops,
    operator: Name,
    positional: Positional,
    named: Vec<(&'static str, Arg)>,
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

impl OpCall {
    #[track_caller]
    #[inline]
    pub(super) fn new(ops: Ops, operator: Name) -> OpCall {
        OpCall {
            ops,
            operator,
            positional: SmallVec::new(),
            named: Vec::new(),
            place: Location::caller(),
        }
    }

    /// Gives the next argument by position.
    #[inline]
    pub fn positional(mut self, value: impl Into<Arg>) -> OpCall {
        self.positional.push(value.into());
        self
    }

    /// Gives argument `name`.
    #[inline]
    pub fn with(mut self, name: &'static str, value: impl Into<Arg>) -> OpCall {
        self.named.push((name, value.into()));
        self
    }

    /// Runs it and gives its result, a tensor.
    ///
    /// # Errors
    /// When no overload takes these arguments, what the operator raises, and when the result is not one tensor.
    pub fn call(mut self) -> Result<Var> {
        let mut results = self.run()?;
        match (results.pop(), results.is_empty()) {
            (Some(Value::Tensor(cell)), true) => Ok(Var { cell, ops: self.ops }),
            _ => Err(self.wrong_result("one tensor")),
        }
    }

    /// Runs it and gives its `N` results, tensors: `let [values, indices] = ...`.
    ///
    /// # Errors
    /// Those of [`OpCall::call`], and when there are not `N`.
    pub fn call_tuple<const N: usize>(mut self) -> Result<[Var; N]> {
        let results = self.run()?;
        let vars = results.iter().filter_map(|v| match v {
            Value::Tensor(cell) => Some(self.ops.wrap(cell.clone())),
            _ => None,
        });
        let vars: Vec<Var> = vars.collect();
        vars.try_into().map_err(|_| self.wrong_result("so many tensors"))
    }

    /// Runs it and gives its result, a list of tensors.
    ///
    /// # Errors
    /// Those of [`OpCall::call`], and when the result is no such list.
    pub fn call_list(mut self) -> Result<Vec<Var>> {
        let results = self.run()?;
        let items = match results.as_slice() {
            [Value::List(list)] => list.items(),
            _ => return Err(self.wrong_result("a list of tensors")),
        };
        let var = |v: &Value| match v {
            Value::Tensor(cell) => Ok(self.ops.wrap(cell.clone())),
            _ => Err(self.wrong_result("a list of tensors")),
        };
        items.iter().map(var).collect()
    }

    /// Runs it and gives its only result, whatever it is.
    ///
    /// # Errors
    /// Those of [`OpCall::call`], and when there is not one result.
    pub fn call_value(mut self) -> Result<Value> {
        let mut results = self.run()?;
        match results.pop() {
            Some(value) if results.is_empty() => Ok(value),
            _ => Err(self.wrong_result("one value")),
        }
    }

    /// Runs it and gives all its results.
    ///
    /// # Errors
    /// When no overload takes these arguments, and what the operator raises.
    pub fn call_values(mut self) -> Result<Vec<Value>> {
        Ok(self.run()?.into_vec())
    }

    /// Runs it; `ops` are afterwards those that the results belong to.
    fn run(&mut self) -> Result<Results> {
        if let Some(recording) = self.recording() {
            self.ops = recording;
        }
        let OpCall {
            ops,
            operator: name,
            positional,
            named,
            place,
        } = self;
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
        ops.with_family(name, |family| {
            let family = family.ok_or_else(|| Error::Call(format!("there is no operator `{name}`")))?;
            let bound = family
                .bind(ops, positional, named, ops.is_tracing())
                .map_err(no_match)?;
            if !ops.is_tracing() {
                return ops.run(&bound);
            }
            // Operands are noted before the call: in-place operators make other values of them.
            let operands = ops
                .record(|r| r.operands(bound.operator, &bound.given, &bound.values, place))
                .transpose()?;
            let results = ops.run(&bound)?;
            if let Some(operands) = operands {
                ops.record(|r| r.call(bound.operator, &operands, &results, place));
            }
            Ok(results)
        })
    }

    /// The operators to call where an argument comes from a function that is being traced: those that record.
    fn recording(&self) -> Option<Ops> {
        fn find(arg: &Arg) -> Option<&Ops> {
            match arg {
                Arg::Var(var) => Some(var.ops()).filter(|ops| ops.is_tracing()),
                Arg::List(items) => items.iter().find_map(find),
                Arg::Value(_) => None,
            }
        }
        if self.ops.is_tracing() {
            return None;
        }
        let mut args = self.positional.iter().chain(self.named.iter().map(|(_, arg)| arg));
        args.find_map(find).cloned()
    }

    fn wrong_result(&self, expected: &str) -> Error {
        Error::Call(format!("{} does not give {expected}", self.operator))
    }
}

impl Ops {
    /// Does something with the operator's overloads, which are looked up once.
    fn with_family<R>(&self, operator: &Name, act: impl FnOnce(Option<&Family>) -> R) -> R {
        match operator {
            Name::Known(number) => {
                let known = self.shared.known.get(*number);
                let find = || {
                    let name = super::NAMES.get(*number)?;
                    Family::find(&self.shared.registry, name)
                };
                act(known.and_then(|family| family.get_or_init(find).as_ref()))
            }
            Name::Other(name) => act(self.family(name).as_deref()),
        }
    }

    fn run(&self, bound: &Bound<'_>) -> Result<Results> {
        let operator = bound.operator;
        let ctx = self.registry().ctx();
        if let Semantics::Composite(_) = operator.semantics() {
            let results = self.shared.interpreter.run_operator(operator, &bound.values);
            return results.map_err(Error::Run);
        }
        Ok(invoke(ctx, operator, &bound.values, bound.output_types, &[])?)
    }
}
