#pragma once
// Which processors workers start on.

#include <cstddef>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace lamina::eigen {

#if defined(__linux__)
/// Workers that have slept for long start on processors of their own, where a pool takes all that its caller may use. A
/// virtual machine's scheduler takes processors that were long idle for taken, and would start workers on the caller's.
class Placement {
 public:
  void resize(std::size_t workers) { masks_.resize(workers); }

  /// Binds each worker to a processor of its mask that neither the caller nor an earlier worker has, while there is
  /// one.
  void bind(std::vector<std::thread>& workers) {
    cpu_set_t all;
    const int own = sched_getcpu();
    // Fails where there are more than CPU_SETSIZE processors.
    if (own < 0 || own >= CPU_SETSIZE || pthread_getaffinity_np(pthread_self(), sizeof all, &all) != 0) return;
    if (workers.size() + 1 < static_cast<std::size_t>(CPU_COUNT(&all))) return;  // others may want the rest
    int cpu = own;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      Mask& mask = masks_[i];
      if (pthread_getaffinity_np(workers[i].native_handle(), sizeof mask.before, &mask.before) != 0) return;
      do {
        cpu = (cpu + 1) % CPU_SETSIZE;
      } while (cpu != own && !CPU_ISSET(cpu, &mask.before));
      if (cpu == own) return;
      cpu_set_t only;
      CPU_ZERO(&only);
      CPU_SET(cpu, &only);
      mask.bound = pthread_setaffinity_np(workers[i].native_handle(), sizeof only, &only) == 0;
    }
  }

  /// Gives the calling worker back the processors it had.
  void release(std::size_t worker) {
    Mask& mask = masks_[worker];
    if (mask.bound) (void)pthread_setaffinity_np(pthread_self(), sizeof mask.before, &mask.before);
    mask.bound = false;
  }

 private:
  struct Mask {
    cpu_set_t before;
    bool bound = false;
  };
  std::vector<Mask> masks_;
};
#else
class Placement {
 public:
  void resize(std::size_t) {}
  void bind(std::vector<std::thread>&) {}
  void release(std::size_t) {}
};
#endif

}  // namespace lamina::eigen
