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
/// Workers that have slept for long start on processors of their own. A virtual machine's scheduler takes processors
/// that were long idle for taken, and would start them on the caller's, for milliseconds.
class Placement {
 public:
  void resize(std::size_t workers) { masks_.resize(workers); }

  /// Binds each worker to a processor that neither the caller nor another worker was given, if its mask has one.
  void bind(std::vector<std::thread>& workers) {
    cpu_set_t taken;
    CPU_ZERO(&taken);
    const int own = sched_getcpu();
    if (own < 0 || own >= CPU_SETSIZE) return;
    CPU_SET(own, &taken);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      cpu_set_t& mask = masks_[i].before;
      if (pthread_getaffinity_np(workers[i].native_handle(), sizeof mask, &mask) != 0) return;  // more than 1024
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &mask) || CPU_ISSET(cpu, &taken)) continue;
        CPU_SET(cpu, &taken);
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(cpu, &only);
        masks_[i].bound = pthread_setaffinity_np(workers[i].native_handle(), sizeof only, &only) == 0;
        break;
      }
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
