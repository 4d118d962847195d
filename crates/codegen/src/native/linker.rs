//! LLVM's linker in the process: ORC's LLJIT.

use super::jit::JitError;
use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile, LLVMOrcLLJITGetGlobalPrefix,
    LLVMOrcLLJITGetMainJITDylib, LLVMOrcLLJITLookup, LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::{
    LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess, LLVMOrcJITDylibAddGenerator, LLVMOrcJITDylibRef,
};
use std::ffi::{CStr, CString};
use std::ptr;

/// Machine code that LLVM's linker loaded. Symbols that the objects do not define (those of libm) come from the process.
pub struct LlvmJit {
    jit: LLVMOrcLLJITRef,
}

// SAFETY: LLJIT synchronises its session; it is bound to no thread.
unsafe impl Send for LlvmJit {}
// SAFETY: as above; the methods that take `&self` only look up.
unsafe impl Sync for LlvmJit {}

impl LlvmJit {
    pub(super) fn new(objects: &[&[u8]]) -> Result<LlvmJit, JitError> {
        super::llvm::initialize().map_err(|e| JitError(e.to_string()))?;
        let mut raw = ptr::null_mut();
        // SAFETY: a null builder asks for the defaults; every call's error is checked before its result is used.
        unsafe {
            check(LLVMOrcCreateLLJIT(&mut raw, ptr::null_mut()))?;
            let jit = LlvmJit { jit: raw };
            let library = LLVMOrcLLJITGetMainJITDylib(raw);
            let mut generator = ptr::null_mut();
            check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                &mut generator,
                LLVMOrcLLJITGetGlobalPrefix(raw),
                None,
                ptr::null_mut(),
            ))?;
            LLVMOrcJITDylibAddGenerator(library, generator);
            for object in objects {
                jit.add(library, object)?;
            }
            Ok(jit)
        }
    }

    fn add(&self, library: LLVMOrcJITDylibRef, object: &[u8]) -> Result<(), JitError> {
        // SAFETY: the buffer is a copy, which LLJIT takes over, also when it fails.
        unsafe {
            let buffer =
                LLVMCreateMemoryBufferWithMemoryRangeCopy(object.as_ptr().cast(), object.len(), c"kernel".as_ptr());
            check(LLVMOrcLLJITAddObjectFile(self.jit, library, buffer))
        }
    }

    pub(super) fn lookup(&self, symbol: &str) -> Result<usize, JitError> {
        let name = CString::new(symbol).map_err(|e| JitError(e.to_string()))?;
        let mut address = 0;
        // SAFETY: the name is a C string and lives as long as the call.
        unsafe { check(LLVMOrcLLJITLookup(self.jit, &mut address, name.as_ptr()))? };
        usize::try_from(address).map_err(|e| JitError(e.to_string()))
    }
}

impl Drop for LlvmJit {
    fn drop(&mut self) {
        // SAFETY: `jit` came from LLVMOrcCreateLLJIT, and nothing of it is used afterwards.
        unsafe {
            // Nothing can be done about an error here.
            let _ = check(LLVMOrcDisposeLLJIT(self.jit));
        }
    }
}

/// # Safety
/// `error` comes from LLVM and nobody else looks at it.
unsafe fn check(error: LLVMErrorRef) -> Result<(), JitError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: LLVMGetErrorMessage consumes the error and gives a C string, which is copied and freed.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(JitError(text))
    }
}
