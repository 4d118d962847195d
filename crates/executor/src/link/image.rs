//! Linking of object files in memory, without LLVM. Kernels refer only to their own constants. So linking only places sections next to one another and inserts
//! the distances between them. It takes microseconds, and a process that compiles nothing does not load the compiler's pages.

use memmap2::{Mmap, MmapMut};
use object::{Architecture, BinaryFormat, Object, ObjectKind, ObjectSection, ObjectSymbol};
use object::{RelocationFlags, RelocationTarget, SectionIndex, SectionKind, elf};
use std::collections::HashMap;

/// Machine code in this process.
#[derive(Debug)]
pub struct Image {
    /// Readable and executable memory, which is not written again.
    memory: Mmap,
    /// The offsets of functions in the memory, by name.
    functions: HashMap<String, usize>,
}

/// A section of an object file, and the offset `start` in the memory at which it is placed.
struct Placed<'a> {
    object: usize,
    index: SectionIndex,
    start: usize,
    data: &'a [u8],
}

/// Maximum size of an image in bytes: more than kernels need, and small enough that all distances fit 32 bits.
const MOST_BYTES: usize = 1 << 30;

impl Image {
    /// Loads object files. Returns `None` if one of them is damaged, or needs more of a linker than this function does, for example because it calls a function
    /// of the process.
    pub fn load(objects: &[&[u8]]) -> Option<Image> {
        let files: Vec<object::File<'_>> = objects
            .iter()
            .map(|bytes| object::File::parse(*bytes).ok().filter(is_simple))
            .collect::<Option<_>>()?;
        let (placed, size) = place(&files)?;
        let mut memory = MmapMut::map_anon(size.max(1)).ok()?;
        for section in &placed {
            let to = memory.get_mut(section.start..)?.get_mut(..section.data.len())?;
            to.copy_from_slice(section.data);
        }
        let starts: HashMap<(usize, SectionIndex), &Placed<'_>> =
            placed.iter().map(|p| ((p.object, p.index), p)).collect();
        // The offset in the memory of an address in a section. The end of a section is valid, because distances may be measured from there.
        let at = |object: usize, section: SectionIndex, address: u64| {
            let section = starts.get(&(object, section))?;
            let address = usize::try_from(address).ok().filter(|&a| a <= section.data.len())?;
            Some(section.start + address)
        };
        for section in &placed {
            let file = &files[section.object];
            for (offset, relocation) in file.section_by_index(section.index).ok()?.relocations() {
                let RelocationFlags::Elf {
                    r_type: elf::R_X86_64_PC32 | elf::R_X86_64_PLT32,
                } = relocation.flags()
                else {
                    return None;
                };
                let RelocationTarget::Symbol(symbol) = relocation.target() else {
                    return None;
                };
                let symbol = file.symbol_by_index(symbol).ok()?;
                let target = at(section.object, symbol.section_index()?, symbol.address())?;
                let place = at(section.object, section.index, offset)?;
                let distance = (target as i64).checked_add(relocation.addend())? - place as i64;
                let distance = i32::try_from(distance).ok()?;
                let field = offset as usize..(offset as usize).checked_add(4)?;
                section.data.get(field)?;
                memory
                    .get_mut(place..place + 4)?
                    .copy_from_slice(&distance.to_le_bytes());
            }
        }
        let mut functions = HashMap::new();
        for (number, file) in files.iter().enumerate() {
            let defined = file.symbols().filter(|s| s.is_global() && s.is_definition());
            for symbol in defined {
                let place = at(number, symbol.section_index()?, symbol.address())?;
                functions.insert(symbol.name().ok()?.to_owned(), place);
            }
        }
        Some(Image {
            memory: memory.make_exec().ok()?,
            functions,
        })
    }

    /// Returns the address of the function `name`, if there is one.
    pub fn lookup(&self, name: &str) -> Option<usize> {
        let &start = self.functions.get(name)?;
        Some(self.memory.get(start..)?.as_ptr() as usize)
    }
}

/// Returns whether all sections, symbols and relocations of an object file are within their bounds.
pub fn is_sound(object: &[u8]) -> bool {
    /// Minimum number of bytes that a relocation writes.
    const FIELD: u64 = 4;
    let Ok(file) = object::File::parse(object) else {
        return false;
    };
    let size = |index| file.section_by_index(index).map(|s| s.size());
    let symbols = file.symbols().all(|symbol| match symbol.section_index() {
        Some(index) => size(index).is_ok_and(|size| {
            symbol
                .address()
                .checked_add(symbol.size())
                .is_some_and(|end| end <= size)
        }),
        None => true,
    });
    let sections = file.sections().all(|section| {
        let mut relocations = section.relocations();
        let inside = |at: u64| at.checked_add(FIELD).is_some_and(|end| end <= section.size());
        section.data().is_ok() && relocations.all(|(at, _)| inside(at))
    });
    symbols && sections
}

/// Returns whether an object file is for this machine, of a supported kind, and without undefined symbols.
fn is_simple(file: &object::File<'_>) -> bool {
    cfg!(target_arch = "x86_64")
        && file.architecture() == Architecture::X86_64
        && file.is_little_endian()
        && file.format() == BinaryFormat::Elf
        && file.kind() == ObjectKind::Relocatable
        && file
            .symbols()
            .all(|s| !s.is_undefined() || s.name().is_ok_and(str::is_empty))
}

/// Returns the place of each section with code or constants, and the size of the image in bytes. Constants come first. Returns `None` if there are other
/// sections that a program needs.
fn place<'a>(files: &[object::File<'a>]) -> Option<(Vec<Placed<'a>>, usize)> {
    let mut placed = Vec::new();
    let mut end = 0usize;
    for wanted in [SectionKind::ReadOnlyData, SectionKind::Text] {
        for (object, file) in files.iter().enumerate() {
            for section in file.sections() {
                let kind = match section.kind() {
                    SectionKind::ReadOnlyString => SectionKind::ReadOnlyData,
                    kind => kind,
                };
                // Kernels do not unwind.
                if section.size() == 0 || section.name() == Ok(".eh_frame") {
                    continue;
                }
                match kind {
                    SectionKind::Text | SectionKind::ReadOnlyData => {}
                    SectionKind::Metadata | SectionKind::Note | SectionKind::Other => continue,
                    _ => return None,
                }
                if kind != wanted {
                    continue;
                }
                // The memory is aligned to a page.
                let align = usize::try_from(section.align()).ok().filter(|&a| a <= 4096)?;
                let start = end.checked_next_multiple_of(align.max(1))?;
                let data = section.data().ok()?;
                end = start.checked_add(data.len()).filter(|&end| end <= MOST_BYTES)?;
                placed.push(Placed {
                    object,
                    index: section.index(),
                    start,
                    data,
                });
            }
        }
    }
    Some((placed, end))
}
