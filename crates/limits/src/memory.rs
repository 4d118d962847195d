//! How much memory the process has.

/// Bytes of a page, in which the system counts: 4 KiB on the processors that code is compiled for.
const PAGE: u64 = 4096;

/// Bytes of private memory that the process has in use. `None` where the system does not tell.
pub(crate) fn private_bytes() -> Option<u64> {
    // Sizes in pages: all, resident, and those of the resident ones that a file is behind.
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut numbers = text.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, shared) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(resident.saturating_sub(shared) * PAGE)
}
