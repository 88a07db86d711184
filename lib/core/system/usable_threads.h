#pragma once
// How many threads this process may run at the same time.

#include <filesystem>

namespace lamina {

int usable_cores();                 ///< cores in the process's affinity mask
int limited_by_quota(int threads);  ///< `threads`, limited by the quota of processor time
int usable_threads();               ///< usable_cores(), limited by the quota

/// The number of threads that the quotas of processor time allow to run all the time, rounded up. `own` is a file like
/// /proc/self/cgroup, which names the process's group. The quotas are the `cpu.max` of this group and of the groups
/// around it, below `groups` (like /sys/fs/cgroup, version 2); the least quota counts. 0: no quota that can be read.
int quota_threads(const std::filesystem::path& groups, const std::filesystem::path& own);

}  // namespace lamina
