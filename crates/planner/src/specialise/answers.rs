//! Graph breaks: the results of what was done at earlier ones, and the end of a run at the next one.

use super::loops::{Answer, LoopEnd, LoopKey, not_rolled};
use super::state::Specialiser;
use crate::error::LowerError;
use frazil_runtime::value::Value;
use frazil_tensor_ir::call::RuntimeCall;
use std::sync::Arc;

impl<'a> Specialiser<'a> {
    /// Returns the results of the call at this graph break, if they are known.
    pub(super) fn answer(&mut self) -> Result<Option<Vec<Value>>, LowerError> {
        if self.rolling.is_some() {
            return Err(not_rolled());
        }
        match self.next_answer() {
            None => {
                self.settled = self.tensors.len();
                Ok(None)
            }
            Some(Answer::Results(specs)) => {
                let given = specs.iter().map(|spec| self.input(spec, false));
                given.collect::<Result<_, _>>().map(Some)
            }
            Some(Answer::Loop(_)) => Err(LowerError::Malformed("the end of a loop in place of results".into())),
        }
    }

    /// Returns whether there are answers that have not been used.
    pub(super) fn has_answer(&self) -> bool {
        self.answers.is_some_and(|answers| answers.len() > self.answered)
    }

    /// Returns what a loop leaves behind, if it is the next graph break.
    pub(super) fn loop_answer(&mut self, key: LoopKey) -> Option<Arc<LoopEnd>> {
        let answer = self.answers.unwrap_or_default().get(self.answered)?;
        match answer {
            Answer::Loop(end) if end.key == key => {
                self.next_answer();
                Some(Arc::clone(end))
            }
            _ => None,
        }
    }

    fn next_answer(&mut self) -> Option<&'a Answer> {
        let answer = self.answers.unwrap_or_default().get(self.answered)?;
        self.answered += 1;
        self.earlier_checks = self.checks.len();
        Some(answer)
    }

    /// Ends the run at a graph break, with `call` as the call.
    pub(super) fn wait_for(&mut self, call: RuntimeCall) -> LowerError {
        if !self.unsupported.is_empty() {
            return self.all_unsupported();
        }
        let operator = call.name();
        self.waiting = Some(call);
        LowerError::Waits { operator }
    }
}
