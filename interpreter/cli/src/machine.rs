//! What this machine has: memory, cores, bf16.

use rlhf_lang::graph::Dtype;

/// Bytes that can still be taken, where the system says: the smaller of what is free and of what the
/// control group allows.
pub fn available_memory() -> Option<u64> {
    let free = meminfo(&read("/proc/meminfo")?)?;
    Some(match group_memory() {
        Some(limit) => free.min(limit),
        None => free,
    })
}

/// Threads that can run at once: one a core, within what the process may use.
pub fn threads() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    match read("/proc/cpuinfo").map(|text| cores(&text)) {
        Some(cores) if cores > 0 => allowed.min(cores),
        _ => allowed,
    }
}

/// The type of parameters that no program decides: bf16 where the processor multiplies it.
pub fn dtype() -> Dtype {
    match read("/proc/cpuinfo") {
        Some(text) if has_bf16(&text) => Dtype::Bf16,
        _ => Dtype::F32,
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn group_memory() -> Option<u64> {
    let limit: u64 = read("/sys/fs/cgroup/memory.max")?.trim().parse().ok()?;
    let used: u64 = read("/sys/fs/cgroup/memory.current")?.trim().parse().ok()?;
    // The page cache of files counts as used but is given back on demand.
    let stat = read("/sys/fs/cgroup/memory.stat").unwrap_or_default();
    let cache = stat.lines().find_map(|l| l.strip_prefix("inactive_file "));
    let cache: u64 = cache.and_then(|c| c.trim().parse().ok()).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

fn cores(cpuinfo: &str) -> usize {
    let mut cores = std::collections::BTreeSet::new();
    let mut package = "";
    for line in cpuinfo.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        match key.trim() {
            "physical id" => package = value.trim(),
            "core id" => {
                cores.insert((package, value.trim()));
            }
            _ => {}
        }
    }
    cores.len()
}

fn has_bf16(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        matches!(key.trim(), "flags" | "Features").then_some(value)
    });
    flags.is_some_and(|flags| {
        flags
            .split_whitespace()
            .any(|flag| matches!(flag, "avx512_bf16" | "amx_bf16" | "bf16"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_THREADS_OF_ONE_CORE: &str = "processor\t: 0\nphysical id\t: 0\ncore id\t\t: 0\n\
        flags\t\t: fpu avx2 avx512_bf16\n\nprocessor\t: 1\nphysical id\t: 0\ncore id\t\t: 0\n";

    #[test]
    fn threads_of_one_core_count_once() {
        assert_eq!(cores(TWO_THREADS_OF_ONE_CORE), 1);
        assert_eq!(cores("Features\t: fp asimd bf16\n"), 0);
    }

    #[test]
    fn bf16_is_read_from_the_flags_of_both_architectures() {
        assert!(has_bf16(TWO_THREADS_OF_ONE_CORE));
        assert!(has_bf16("Features\t: fp asimd bf16\n"));
        assert!(!has_bf16("flags\t\t: fpu avx2 avx512f\n"));
    }

    #[test]
    fn available_memory_is_in_bytes() {
        assert_eq!(
            meminfo("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"),
            Some(2 << 20)
        );
    }
}
