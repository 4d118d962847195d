//! The MLIR part of the backend: contexts, the passes to the LLVM dialect, translation.

use inkwell::context::AsContextRef;
use melior::Context;
use melior::dialect::{DialectHandle, DialectRegistry};
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use melior::pass::{PassManager, conversion};
use std::cell::RefCell;
use std::rc::Rc;

/// Error of MLIR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stage}{}", .diagnostics.iter().map(|d| format!("\n  {d}")).collect::<String>())]
pub struct MlirError {
    /// The step that failed.
    pub stage: &'static str,
    /// The diagnostics, in order.
    pub diagnostics: Vec<String>,
}

/// An MLIR context with the dialects that the emitters use, for one thread.
pub struct MlirSession {
    context: Context,
    diagnostics: Rc<RefCell<Vec<String>>>,
}

impl Default for MlirSession {
    fn default() -> Self {
        MlirSession::new()
    }
}

impl MlirSession {
    /// Returns a session with a new context.
    pub fn new() -> MlirSession {
        frazil_executor::memory::deferred::run();
        let registry = DialectRegistry::new();
        for handle in [
            DialectHandle::arith(),
            DialectHandle::cf(),
            DialectHandle::func(),
            DialectHandle::llvm(),
            DialectHandle::scf(),
        ] {
            handle.insert_dialect(&registry);
        }
        // SAFETY: these give static tables that are only read.
        unsafe {
            DialectHandle::from_raw(mlir_sys::mlirGetDialectHandle__math__()).insert_dialect(&registry);
            DialectHandle::from_raw(mlir_sys::mlirGetDialectHandle__vector__()).insert_dialect(&registry);
        }
        let context = Context::new_with_registry(&registry, false);
        context.load_all_available_dialects();
        melior::utility::register_all_llvm_translations(&context);
        let diagnostics: Rc<RefCell<Vec<String>>> = Rc::default();
        let sink = Rc::clone(&diagnostics);
        context.attach_diagnostic_handler(move |d| {
            sink.borrow_mut().push(d.to_string());
            true
        });
        MlirSession { context, diagnostics }
    }

    /// Returns the context for emitted modules.
    pub fn context(&self) -> &Context {
        &self.context
    }

    fn error(&self, stage: &'static str) -> MlirError {
        MlirError {
            stage,
            diagnostics: self.diagnostics.take(),
        }
    }

    /// Lowers a module to the LLVM dialect and translates it into an LLVM module of `context`.
    pub fn translate<'l>(
        &self,
        mut module: Module<'_>,
        context: &'l inkwell::context::Context,
    ) -> Result<inkwell::module::Module<'l>, MlirError> {
        if cfg!(debug_assertions) && !module.as_operation().verify() {
            return Err(self.error("the emitted module does not verify"));
        }
        let passes = PassManager::new(&self.context);
        passes.enable_verifier(cfg!(debug_assertions));
        for pass in [
            conversion::create_scf_to_control_flow(),
            conversion::create_vector_to_llvm(),
            conversion::create_func_to_llvm(),
            conversion::create_math_to_llvm(),
            conversion::create_math_to_libm(),
            conversion::create_arith_to_llvm(),
            conversion::create_control_flow_to_llvm(),
            conversion::create_reconcile_unrealized_casts(),
        ] {
            passes.add_pass(pass);
        }
        passes
            .run(&mut module)
            .map_err(|_| self.error("lowering to the LLVM dialect failed"))?;
        // SAFETY: the operation is a module of the LLVM dialect and the LLVM context is alive; the result is checked for null.
        unsafe {
            let raw = mlir_sys::mlirTranslateModuleToLLVMIR(
                module.as_operation().to_raw(),
                context.as_ctx_ref().cast::<mlir_sys::LLVMOpaqueContext>(),
            );
            if raw.is_null() {
                return Err(self.error("translation to LLVM IR failed"));
            }
            Ok(inkwell::module::Module::new(raw.cast()))
        }
    }
}
