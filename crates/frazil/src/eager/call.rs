//! Calls: an operator, what it is given, and running it.

use super::bind::{Bound, NoMatch};
use super::{Arg, Ops, Var};
use crate::{Error, Result};
use frazil_ir::TypeId;
use frazil_runtime::call::invoke;
use frazil_runtime::op::Results;
use frazil_runtime::{Semantics, Value};
use smallvec::SmallVec;
use std::panic::Location;

/// A call of an operator, before it runs: arguments by name may still be given, each by a method of its name or by [`OpCall::with`].
#[must_use = "nothing is computed before `call`"]
pub struct OpCall {
    ops: Ops,
    operator: Box<str>,
    positional: SmallVec<[Arg; 4]>,
    named: Vec<(&'static str, Arg)>,
    place: &'static Location<'static>,
}

impl OpCall {
    #[track_caller]
    pub(super) fn new(ops: Ops, operator: &str) -> OpCall {
        OpCall {
            ops,
            operator: operator.into(),
            positional: SmallVec::new(),
            named: Vec::new(),
            place: Location::caller(),
        }
    }

    /// Gives the next argument by position.
    pub fn positional(mut self, value: impl Into<Arg>) -> OpCall {
        self.positional.push(value.into());
        self
    }

    /// Gives argument `name`.
    pub fn with(mut self, name: &'static str, value: impl Into<Arg>) -> OpCall {
        self.named.push((name, value.into()));
        self
    }

    /// Runs it and gives its result, a tensor.
    ///
    /// # Errors
    /// When no overload takes these arguments, what the operator raises, and when the result is not one tensor.
    pub fn call(self) -> Result<Var> {
        let (name, ops, results) = self.run()?;
        match results.as_slice() {
            [Value::Tensor(cell)] => Ok(ops.wrap(cell.clone())),
            _ => Err(wrong_result(&name, "one tensor")),
        }
    }

    /// Runs it and gives its `N` results, tensors: `let [values, indices] = ...`.
    ///
    /// # Errors
    /// Those of [`OpCall::call`], and when there are not `N`.
    pub fn call_tuple<const N: usize>(self) -> Result<[Var; N]> {
        let (name, ops, results) = self.run()?;
        let vars = results.iter().filter_map(|v| match v {
            Value::Tensor(cell) => Some(ops.wrap(cell.clone())),
            _ => None,
        });
        let vars: Vec<Var> = vars.collect();
        vars.try_into().map_err(|_| wrong_result(&name, "so many tensors"))
    }

    /// Runs it and gives its result, a list of tensors.
    ///
    /// # Errors
    /// Those of [`OpCall::call`], and when the result is no such list.
    pub fn call_list(self) -> Result<Vec<Var>> {
        let (name, ops, results) = self.run()?;
        let items = match results.as_slice() {
            [Value::List(list)] => list.items(),
            _ => return Err(wrong_result(&name, "a list of tensors")),
        };
        let var = |v: &Value| match v {
            Value::Tensor(cell) => Ok(ops.wrap(cell.clone())),
            _ => Err(wrong_result(&name, "a list of tensors")),
        };
        items.iter().map(var).collect()
    }

    /// Runs it and gives its only result, whatever it is.
    ///
    /// # Errors
    /// Those of [`OpCall::call`], and when there is not one result.
    pub fn call_value(self) -> Result<Value> {
        let (name, _, mut results) = self.run()?;
        match results.pop() {
            Some(value) if results.is_empty() => Ok(value),
            _ => Err(wrong_result(&name, "one value")),
        }
    }

    /// Runs it and gives all its results.
    ///
    /// # Errors
    /// When no overload takes these arguments, and what the operator raises.
    pub fn call_values(self) -> Result<Vec<Value>> {
        Ok(self.run()?.2.into_vec())
    }

    fn run(self) -> Result<(Box<str>, Ops, Results)> {
        let ops = self.recording();
        let no_match = |e: NoMatch| {
            Error::Call(match e {
                NoMatch::NoSemantics(schema) => format!("nothing says what this operator does: {schema}"),
                NoMatch::Arguments(schemas) => {
                    format!(
                        "{}: no overload takes these arguments; there are\n  {}",
                        self.operator,
                        schemas.join("\n  ")
                    )
                }
            })
        };
        let family = ops.family(&self.operator);
        let family = family.ok_or_else(|| Error::Call(format!("there is no operator `{}`", self.operator)))?;
        let bound = family.bind(&ops, &self.positional, &self.named).map_err(no_match)?;
        // Operands are noted before the call: in-place operators make other values of them.
        let operands = ops
            .record(|r| r.operands(&bound.operator, &bound.given, &bound.values, self.place))
            .transpose()?;
        let results = ops.run(&bound)?;
        if let Some(operands) = operands {
            ops.record(|r| r.call(&bound.operator, &operands, &results, self.place));
        }
        Ok((self.operator, ops, results))
    }

    /// The operators to call: those that record, if any argument comes from a function that is being traced.
    fn recording(&self) -> Ops {
        fn find(arg: &Arg) -> Option<&Ops> {
            match arg {
                Arg::Var(var) => Some(var.ops()).filter(|ops| ops.is_tracing()),
                Arg::List(items) => items.iter().find_map(find),
                Arg::Value(_) => None,
            }
        }
        if self.ops.is_tracing() {
            return self.ops.clone();
        }
        let mut args = self.positional.iter().chain(self.named.iter().map(|(_, arg)| arg));
        args.find_map(find).unwrap_or(&self.ops).clone()
    }
}

impl Ops {
    fn run(&self, bound: &Bound) -> Result<Results> {
        let operator = &bound.operator;
        let ctx = self.registry().ctx();
        if let Semantics::Composite(_) = operator.semantics() {
            let results = self.shared.interpreter.run_operator(operator, &bound.values);
            return results.map_err(Error::Run);
        }
        let output_types: SmallVec<[TypeId; 2]> = operator.schema().returns.iter().map(|r| r.ty).collect();
        Ok(invoke(ctx, operator, &bound.values, &output_types, &[])?)
    }
}

fn wrong_result(operator: &str, expected: &str) -> Error {
    Error::Call(format!("{operator} does not give {expected}"))
}
