//! Memory use of the process.

/// Bytes of a page, the system's unit: 4 KiB on the processors that code is compiled for.
const PAGE: u64 = 4096;

/// Returns the bytes of private memory that the process has in use. `None` if the system does not report them.
pub(crate) fn private_bytes() -> Option<u64> {
    // Sizes in pages: all, resident, and resident ones that are backed by a file.
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut numbers = text.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, shared) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(resident.saturating_sub(shared) * PAGE)
}
