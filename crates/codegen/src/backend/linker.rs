//! In-process linking with LLVM: ORC's LLJIT.

use frazil_executor::link::{LinkError, LinkedCode};
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
#[derive(Debug)]
pub struct LlvmCode {
    jit: LLVMOrcLLJITRef,
}

// SAFETY: LLJIT synchronises its session; it is bound to no thread.
unsafe impl Send for LlvmCode {}
// SAFETY: as above; the methods that take `&self` only look up.
unsafe impl Sync for LlvmCode {}

impl LlvmCode {
    fn new(objects: &[&[u8]]) -> Result<LlvmCode, LinkError> {
        super::llvm::initialize().map_err(|e| LinkError(e.to_string()))?;
        let mut raw = ptr::null_mut();
        // SAFETY: a null builder asks for the defaults; every call's error is checked before its result is used.
        unsafe {
            check(LLVMOrcCreateLLJIT(&mut raw, ptr::null_mut()))?;
            let jit = LlvmCode { jit: raw };
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

    fn add(&self, library: LLVMOrcJITDylibRef, object: &[u8]) -> Result<(), LinkError> {
        // SAFETY: the buffer is a copy, which LLJIT takes over, also when it fails.
        unsafe {
            let buffer =
                LLVMCreateMemoryBufferWithMemoryRangeCopy(object.as_ptr().cast(), object.len(), c"kernel".as_ptr());
            check(LLVMOrcLLJITAddObjectFile(self.jit, library, buffer))
        }
    }

    /// Loads `objects`: a [`Linker`](frazil_executor::link::Linker).
    ///
    /// # Errors
    /// If one is not for this machine, a symbol is defined twice, or one that is referred to is not found.
    pub fn link(objects: &[&[u8]]) -> Result<Box<dyn LinkedCode>, LinkError> {
        Ok(Box::new(LlvmCode::new(objects)?))
    }
}

impl LinkedCode for LlvmCode {
    fn lookup(&self, symbol: &str) -> Result<usize, LinkError> {
        let name = CString::new(symbol).map_err(|e| LinkError(e.to_string()))?;
        let mut address = 0;
        // SAFETY: the name is a C string and lives as long as the call.
        unsafe { check(LLVMOrcLLJITLookup(self.jit, &mut address, name.as_ptr()))? };
        usize::try_from(address).map_err(|e| LinkError(e.to_string()))
    }
}

impl Drop for LlvmCode {
    fn drop(&mut self) {
        // SAFETY: `jit` came from LLVMOrcCreateLLJIT, and nothing of it is used afterwards.
        unsafe {
            // Nothing can be done about an error here.
            let _ = check(LLVMOrcDisposeLLJIT(self.jit));
        }
    }
}

/// # Safety
/// `error` comes from LLVM, and is not used afterwards.
unsafe fn check(error: LLVMErrorRef) -> Result<(), LinkError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: LLVMGetErrorMessage consumes the error and gives a C string, which is copied and freed.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(LinkError(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Machine, host_target};
    use frazil_executor::link::{Code, Image, is_sound};
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use object::{Object, ObjectSection};

    /// An object of LLVM IR.
    fn object(text: &str) -> Vec<u8> {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "text");
        let module = context.create_module_from_ir(buffer).unwrap();
        Machine::new(&host_target()).unwrap().object(&module).unwrap()
    }

    fn load(objects: &[&[u8]]) -> Result<Code, LinkError> {
        Code::load(objects, Some(LlvmCode::link))
    }

    fn call(jit: &Code, name: &str, x: f64) -> f64 {
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
        let image = load(&objects).unwrap();
        assert!(matches!(image, Code::Image(_)));
        let linked = Code::Linked(LlvmCode::link(&objects).unwrap());
        for jit in [&image, &linked] {
            let results = ["f", "g"].map(|name| [0.0, 1.0].map(|x| call(jit, name, x)));
            assert_eq!(results, [[1.5, 3.5], [2.5, 3.5]]);
            assert!(jit.lookup("h").is_err());
        }
        assert!(load(&[]).unwrap().lookup("f").is_err());
    }

    /// An object that calls a function of the process.
    fn caller() -> Vec<u8> {
        object(
            "declare double @cbrt(double)\ndefine double @f(double %x) {\n  \
             %y = call double @cbrt(double %x)\n  ret double %y\n}\n",
        )
    }

    #[test]
    fn functions_of_the_process_are_found() {
        let jit = load(&[&caller()]).unwrap();
        assert!(matches!(jit, Code::Linked(_)));
        assert!((call(&jit, "f", 27.0) - 3.0).abs() < 1e-9);
    }

    /// LLVM's linker would write there.
    #[test]
    fn relocations_outside_of_their_section_are_refused() {
        let whole = caller();
        assert!(is_sound(&whole));
        let file = object::File::parse(&*whole).unwrap();
        let tables = file
            .sections()
            .filter(|s| s.name().is_ok_and(|name| name.starts_with(".rela")));
        let tables: Vec<(u64, u64)> = tables.filter_map(|s| s.file_range()).collect();
        assert!(!tables.is_empty());
        for (start, _) in tables {
            for offset in [1 << 20, u64::MAX - 2] {
                let mut damaged = whole.clone();
                damaged[start as usize..][..8].copy_from_slice(&u64::to_le_bytes(offset));
                assert_eq!(
                    load(&[&damaged]).err(),
                    Some(LinkError("object 0 is damaged".to_owned()))
                );
            }
        }
    }

    /// Whatever stands in an object, it is linked or refused.
    #[test]
    fn damaged_objects_are_refused() {
        let whole = object(&table("f", 1.0));
        for end in 0..whole.len() {
            let _ = Image::load(&[&whole[..end]]);
            assert!(!is_sound(&whole[..end]));
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0xff, whole[at] ^ 1] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _ = (Image::load(&[&damaged]), is_sound(&damaged));
            }
        }
    }
}
