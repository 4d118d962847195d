//! Objects in memory to functions in this process: by [`Image`], or by ORC's LLJIT where objects need more of a linker.

use super::image::{self, Image};
#[cfg(feature = "llvm")]
use super::linker::LlvmJit;

/// What the linker in the process reported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("loading compiled code: {0}")]
pub struct JitError(pub(super) String);

/// Machine code in this process.
pub enum Jit {
    /// Objects that are complete in themselves.
    Image(Image),
    /// Others.
    #[cfg(feature = "llvm")]
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
            None => Jit::link(objects),
        }
    }

    /// Loads objects that are not complete in themselves. LLVM's linker writes where relocations say: what is damaged must not get there.
    fn link(objects: &[&[u8]]) -> Result<Jit, JitError> {
        if let Some(number) = objects.iter().position(|object| !image::is_sound(object)) {
            return Err(JitError(format!("object {number} is damaged")));
        }
        #[cfg(feature = "llvm")]
        let linked = LlvmJit::new(objects).map(Jit::Llvm);
        #[cfg(not(feature = "llvm"))]
        let linked = Err(JitError(
            "an object needs LLVM's linker, which is not in this program".to_owned(),
        ));
        linked
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
            #[cfg(feature = "llvm")]
            Jit::Llvm(jit) => jit.lookup(symbol),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "llvm")]
mod tests {
    use super::*;
    use crate::native::{Machine, host_target};
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

    /// An object that calls a function of the process.
    fn caller() -> Vec<u8> {
        object(
            "declare double @cbrt(double)\ndefine double @f(double %x) {\n  \
             %y = call double @cbrt(double %x)\n  ret double %y\n}\n",
        )
    }

    #[test]
    fn functions_of_the_process_are_found() {
        let jit = Jit::new(&[&caller()]).unwrap();
        assert!(matches!(jit, Jit::Llvm(_)));
        assert!((call(&jit, "f", 27.0) - 3.0).abs() < 1e-9);
    }

    /// LLVM's linker would write there.
    #[test]
    fn relocations_outside_of_their_section_are_refused() {
        let whole = caller();
        assert!(image::is_sound(&whole));
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
                    Jit::new(&[&damaged]).err(),
                    Some(JitError("object 0 is damaged".to_owned()))
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
            assert!(!image::is_sound(&whole[..end]));
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0xff, whole[at] ^ 1] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _ = (Image::load(&[&damaged]), image::is_sound(&damaged));
            }
        }
    }
}
