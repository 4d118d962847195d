//! Objects in memory to functions in this process: by [`Image`], or by ORC's LLJIT where objects need more of a linker.

use super::image::Image;
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

/// What the linker in the process reported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("loading compiled code: {0}")]
pub struct JitError(String);

/// Machine code in this process.
pub enum Jit {
    /// Objects that are complete in themselves.
    Image(Image),
    /// Others.
    Llvm(LlvmJit),
}

impl Jit {
    /// Loads object files.
    ///
    /// # Errors
    /// When they are damaged or not for this machine, or a symbol is defined twice.
    pub fn new(objects: &[&[u8]]) -> Result<Jit, JitError> {
        match Image::load(objects) {
            Some(image) => Ok(Jit::Image(image)),
            None => Ok(Jit::Llvm(LlvmJit::new(objects)?)),
        }
    }

    /// The address of `symbol`.
    ///
    /// # Errors
    /// When there is no such symbol.
    pub fn lookup(&self, symbol: &str) -> Result<usize, JitError> {
        match self {
            Jit::Image(image) => image
                .lookup(symbol)
                .ok_or_else(|| JitError(format!("there is no symbol `{symbol}`"))),
            Jit::Llvm(jit) => jit.lookup(symbol),
        }
    }
}

/// Machine code that LLVM's linker loaded. Symbols that the objects do not define (those of libm) come from the process.
pub struct LlvmJit {
    jit: LLVMOrcLLJITRef,
}

// SAFETY: LLJIT synchronises its session; it is bound to no thread.
unsafe impl Send for LlvmJit {}
// SAFETY: as above; the methods that take `&self` only look up.
unsafe impl Sync for LlvmJit {}

impl LlvmJit {
    fn new(objects: &[&[u8]]) -> Result<LlvmJit, JitError> {
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

    fn lookup(&self, symbol: &str) -> Result<usize, JitError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Machine, host_target};
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    /// An object of LLVM IR.
    fn object(text: &str) -> Vec<u8> {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "text");
        let module = context.create_module_from_ir(buffer).unwrap();
        Machine::new(&host_target()).unwrap().object(&module).unwrap()
    }

    fn call(jit: &Jit, name: &str, x: f64) -> f64 {
        let address = jit.lookup(name).unwrap();
        // SAFETY: the functions below take a double and give one.
        let function = unsafe { std::mem::transmute::<usize, extern "C" fn(f64) -> f64>(address) };
        function(x)
    }

    /// A function that reads a table of its own, and calls another one.
    fn table(name: &str, factor: f64) -> String {
        format!(
            "@table = private unnamed_addr constant [2 x double] [double {factor:.1}, double 3.0]\n\
             define double @{name}(double %x) {{\n  %i = fptosi double %x to i64\n  %odd = and i64 %i, 1\n  \
             %p = getelementptr [2 x double], ptr @table, i64 0, i64 %odd\n  %t = load double, ptr %p\n  \
             %y = call double @{name}_inner(double %t)\n  ret double %y\n}}\n\
             define double @{name}_inner(double %x) noinline {{\n  %y = fadd double %x, 5.0e-1\n  ret double %y\n}}\n"
        )
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn complete_objects_need_no_linker() {
        let objects = [object(&table("f", 1.0)), object(&table("g", 2.0))];
        let objects: Vec<&[u8]> = objects.iter().map(Vec::as_slice).collect();
        let image = Jit::new(&objects).unwrap();
        assert!(matches!(image, Jit::Image(_)));
        let linked = Jit::Llvm(LlvmJit::new(&objects).unwrap());
        for jit in [&image, &linked] {
            let results = ["f", "g"].map(|name| [0.0, 1.0].map(|x| call(jit, name, x)));
            assert_eq!(results, [[1.5, 3.5], [2.5, 3.5]]);
            assert!(jit.lookup("h").is_err());
        }
        assert!(Jit::new(&[]).unwrap().lookup("f").is_err());
    }

    #[test]
    fn functions_of_the_process_are_found() {
        let text = "declare double @cbrt(double)\ndefine double @f(double %x) {\n  \
                    %y = call double @cbrt(double %x)\n  ret double %y\n}\n";
        let jit = Jit::new(&[&object(text)]).unwrap();
        assert!(matches!(jit, Jit::Llvm(_)));
        assert!((call(&jit, "f", 27.0) - 3.0).abs() < 1e-9);
    }

    /// Whatever stands in an object, it is linked or refused.
    #[test]
    fn damaged_objects_are_refused() {
        let whole = object(&table("f", 1.0));
        for end in 0..whole.len() {
            let _ = Image::load(&[&whole[..end]]);
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0xff, whole[at] ^ 1] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _ = Image::load(&[&damaged]);
            }
        }
    }
}
