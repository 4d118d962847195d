//! Statistics of the operating system on this process.

/// Returns the resident memory of the process in KiB, after the allocator has released its free memory.
pub fn resident_kib() -> usize {
    number_of("VmRSS:")
}

/// Returns the number of threads of the process.
pub fn threads() -> usize {
    number_of("Threads:")
}

fn number_of(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.expect("a number in the status of this process")
}
