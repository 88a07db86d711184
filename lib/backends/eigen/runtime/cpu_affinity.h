#pragma once
// The processors on which workers start.

#include <cstddef>
#include <limits>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace lamina::eigen {

#if defined(__linux__)
/// If a pool takes all processors of its caller, workers that have slept for long start on separate processors. The
/// scheduler of a virtual machine counts a long idle processor as busy, and would start all workers on the caller's.
class CpuAffinity {
 public:
  /// Decides once whether these workers and their caller take all of the caller's processors.
  void start(std::size_t workers, std::size_t processors = usable()) {
    binds_ = workers + 1 >= processors;  // otherwise other programs may want the rest
    masks_.resize(workers);
  }

  /// Binds each worker to a processor of its mask that neither the caller nor an earlier worker has, if there is such a
  /// processor. Does nothing if start() decided against it.
  void bind(std::vector<std::thread>& workers) {
    if (!binds_) return;
    const int own = sched_getcpu();
    if (own < 0 || own >= CPU_SETSIZE) return;
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

  /// Restores the processors that the calling worker had.
  void release(std::size_t worker) {
    Mask& mask = masks_[worker];
    if (mask.bound) (void)pthread_setaffinity_np(pthread_self(), sizeof mask.before, &mask.before);
    mask.bound = false;
  }

  /// The number of processors that the calling thread may use. If that is not known, for instance above CPU_SETSIZE,
  /// the result is larger than any pool.
  static std::size_t usable() {
    cpu_set_t all;
    if (pthread_getaffinity_np(pthread_self(), sizeof all, &all) != 0) return std::numeric_limits<std::size_t>::max();
    return static_cast<std::size_t>(CPU_COUNT(&all));
  }

 private:
  struct Mask {
    cpu_set_t before;
    bool bound = false;
  };
  std::vector<Mask> masks_;
  bool binds_ = false;
};
#else
class CpuAffinity {
 public:
  void start(std::size_t) {}
  void bind(std::vector<std::thread>&) {}
  void release(std::size_t) {}
};
#endif

}  // namespace lamina::eigen
