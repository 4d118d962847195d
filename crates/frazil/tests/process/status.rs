//! What the operating system says about this process.

/// Memory that the process has, in KiB, once the allocator has nothing more to give back by itself.
pub fn resident_kib() -> usize {
    number_of("VmRSS:")
}

/// Threads that the process has.
pub fn threads() -> usize {
    number_of("Threads:")
}

fn number_of(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.expect("a number in the status of this process")
}
