//! The maximum nesting of data, and sufficient stack for recursive code.

/// Maximum nesting, in levels: of a type, a value, the blocks of a graph, brackets and blocks in source, and the objects of an archive.
///
/// A scalar or a type without component types is one level, a list of it two. Python's limit is also 1000 levels (`sys.getrecursionlimit()`), so PyTorch cannot
/// have compiled a deeper program.
pub const MAX_NESTING: usize = 1000;

/// Maximum number of bytes of stack that one level of a recursion may use, including all calls. If less is left, [`with_stack`] allocates a new stack. The
/// largest frames are those of the interpreter and of the parser of source, 9 KiB in debug builds.
const LEVEL_BYTES: usize = 96 << 10;

/// Size in bytes of an additional stack segment. Its pages take memory only when they are used.
const SEGMENT_BYTES: usize = 2 << 20;

/// Runs `work`, on a new stack if the current one is nearly used up. Functions that recurse over nested data call this at each level.
///
/// ```
/// fn count(levels: u32) -> u32 {
///     match levels {
///         0 => 0,
///         _ => frazil_ir::nesting::with_stack(|| 1 + count(levels - 1)),
///     }
/// }
/// let thread = std::thread::Builder::new().stack_size(256 << 10);
/// assert_eq!(thread.spawn(|| count(1_000_000)).unwrap().join().unwrap(), 1_000_000);
/// ```
#[inline]
pub fn with_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(LEVEL_BYTES, SEGMENT_BYTES, work)
}
