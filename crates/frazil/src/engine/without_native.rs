//! Replacement for `native` in a build without the feature `codegen`: native engines cannot be created.

use crate::engine::instance::{Instance, MakeDelegate};
use crate::engine::kernel_counts::KernelCounts;
use crate::engine::options::EngineOptions;
use crate::error::{Error, Result};
use frazil_runtime::Value;
use frazil_syntax::FileIdentity;
use std::time::Duration;

/// Replacement for native code in a build without the feature `codegen`. It has no values.
pub(crate) enum NativeCode {}

/// The state of native code that belongs to one handle of an engine: none in this build.
#[derive(Default)]
pub(crate) struct Handle(());

impl NativeCode {
    pub(crate) fn new(_origin: Option<&FileIdentity>, _options: &EngineOptions) -> Result<NativeCode> {
        Err(Error::Unsupported(
            "this build has no native engine: it lacks the feature `codegen`".into(),
        ))
    }

    pub(crate) fn is_kept(&self) -> bool {
        match *self {}
    }

    pub(crate) fn warm_up(&self, _: &Instance, _: &[String]) -> Result<()> {
        match *self {}
    }

    pub(crate) fn subgraphs(&self) -> MakeDelegate {
        match *self {}
    }

    pub(crate) fn call(&self, _: &mut Handle, _: &Instance, _: &str, _: &[Value]) -> Result<Option<Value>> {
        match *self {}
    }

    pub(crate) fn finds(&self, _: &mut Handle, _: &Instance, _: &str, _: &[Value]) -> bool {
        match *self {}
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        match *self {}
    }

    pub(crate) fn compile_time(&self) -> Duration {
        match *self {}
    }

    pub(crate) fn kernel_counts(&self) -> KernelCounts {
        match *self {}
    }
}

/// Returns whether an engine with these options reads its model on first use.
pub(crate) fn reads_late(_options: &EngineOptions) -> bool {
    false
}
