// How many threads this process may run at the same time.

#include "lib/core/system/usable_threads.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

#include "lamina/backend.h"

namespace lamina {
namespace {

/// The threads that one group's quota allows; 0: it has no quota.
int quota_of(const std::filesystem::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string quota;  // "max": none
  double microseconds = 0, period = 0;
  if (!(file >> quota >> period) || period <= 0 || !(std::istringstream(quota) >> microseconds) || microseconds <= 0)
    return 0;
  return static_cast<int>(std::clamp(std::ceil(microseconds / period), 1.0, static_cast<double>(most_backend_threads)));
}

}  // namespace

int usable_cores() {
#if defined(__linux__)
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    const int count = CPU_COUNT(&mask);
    if (count > 0) return count;
  }
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}

int limited_by_quota(int threads) {
  const int quota = quota_threads("/sys/fs/cgroup", "/proc/self/cgroup");
  return quota == 0 ? threads : std::min(threads, quota);
}

int usable_threads() { return limited_by_quota(usable_cores()); }

int quota_threads(const std::filesystem::path& groups, const std::filesystem::path& own) {
  std::ifstream file(own);
  int least = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::/")) continue;  // the line of cgroup version 2
    std::filesystem::path group = std::filesystem::path(line.substr(4)).relative_path();
    for (;; group = group.parent_path()) {
      const int threads = quota_of(groups / group);
      if (threads != 0 && (least == 0 || threads < least)) least = threads;
      if (group.empty()) break;
    }
  }
  return least;
}

}  // namespace lamina
