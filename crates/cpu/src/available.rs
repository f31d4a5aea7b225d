//! How much memory the host can still give.

use std::fs::read_to_string;
use std::path::Path;

/// The bytes that are free, swap space included, and within the limit of the container; Linux tells, other systems are not
/// asked.
pub(super) fn memory() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let free = free(&read_to_string("/proc/meminfo").ok()?)?;
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(limit_files);
    let limits = limits.filter_map(|file| read_to_string(file).ok()?.trim().parse().ok());
    Some(limits.fold(free, u64::min))
}

/// What `/proc/meminfo` says can be had without taking it from anybody.
fn free(meminfo: &str) -> Option<u64> {
    let bytes = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    };
    Some(bytes("MemAvailable")? + bytes("SwapFree").unwrap_or(0))
}

/// Where the limits of a control group stand, and those of all above it, for a line of `/proc/self/cgroup`. Inside of a
/// container the path may be the one outside; the container's own group is the root then.
fn limit_files(line: &str) -> Vec<String> {
    let mut parts = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
        return Vec::new();
    };
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        list if list.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let groups = Path::new(path.trim_start_matches('/')).ancestors();
    groups.map(|group| Path::new(root).join(group).join(file).to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_what_is_available_and_swap() {
        let said =
            "MemTotal:       16000000 kB\nMemFree:  100 kB\nMemAvailable:    8000 kB\nSwapFree:   2000 kB\n";
        assert_eq!(free(said), Some(10_000 << 10));
        assert_eq!(free("MemAvailable: 5 kB\n"), Some(5 << 10));
        assert_eq!(free("MemFree: 5 kB\n"), None);
    }

    #[test]
    fn limits_stand_in_the_group_and_in_those_above_it() {
        assert_eq!(
            limit_files("0::/a/b"),
            ["/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup/memory.max"]
        );
        assert_eq!(limit_files("9:memory:/")[0], "/sys/fs/cgroup/memory/memory.limit_in_bytes");
        assert!(limit_files("3:cpu,cpuacct:/x").is_empty());
        assert!(limit_files("nonsense").is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_memory() {
        assert!(memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
