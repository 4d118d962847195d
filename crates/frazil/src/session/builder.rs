//! Sessions with operators and passes of an embedder.

use crate::session::Session;
use crate::session::standard_operators;
use frazil_passes::{AnyPass, OptionInfo, PassInfo, PassOptions, PassRegistry};
use frazil_runtime::Registry;
use std::sync::Arc;

/// A builder of a session; see [`Session::builder`].
pub struct SessionBuilder {
    registry: Registry,
    passes: PassRegistry,
}

impl SessionBuilder {
    /// Returns a builder with the prim and aten dialects and the standard passes.
    pub(crate) fn standard() -> SessionBuilder {
        SessionBuilder {
            registry: standard_operators(Arc::default()),
            passes: PassRegistry::standard(),
        }
    }

    /// Adds a dialect: `register` adds schemas and semantics. New semantics of an existing operator replace the previous ones.
    ///
    /// # Errors
    /// The errors of `register`.
    pub fn operators<E>(mut self, register: impl FnOnce(&mut Registry) -> Result<(), E>) -> Result<SessionBuilder, E> {
        register(&mut self.registry)?;
        Ok(self)
    }

    /// Adds a pass to the session. An existing pass with the same name is replaced.
    #[must_use]
    pub fn pass(mut self, info: &'static PassInfo) -> SessionBuilder {
        self.passes.add(info);
        self
    }

    /// Adds a pass that `build` creates, which may have state; see [`PassRegistry::add_closure`].
    #[must_use]
    pub fn pass_closure(
        mut self,
        name: &'static str,
        summary: &'static str,
        options: &'static [OptionInfo],
        build: impl Fn(&PassOptions) -> AnyPass + Send + Sync + 'static,
    ) -> SessionBuilder {
        self.passes.add_closure(name, summary, options, build);
        self
    }

    /// Returns a session with the operators and passes of the builder.
    #[must_use]
    pub fn build(self) -> Session {
        Session::with(self.registry, self.passes)
    }
}
