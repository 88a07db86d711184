#pragma once
// The host as the backend's machine, for tests: memory that is counted, times that a test sets, a fold and an
// update that are only recorded.

#include <memory>
#include <string>
#include <vector>

#include "lamina/error.h"
#include "lib/backends/cudnn/backend.h"
#include "lib/core/device/blas/blas.h"
#include "lib/core/device/host/host_device.h"
#include "tests/cudnn/fakes/fake.h"

namespace lamina::test {

/// The host's memory, with every call counted and a clock that a test sets.
class CountingDevice final : public Device {
 public:
  int allocations = 0, waits = 0, copies = 0;
  bool lost = false;            ///< synchronize() throws
  std::vector<double> seconds;  ///< results of the next timings, from the front; then 1

  std::string describe() override { return host_.describe(); }
  void* allocate(std::size_t bytes) override { return check(), ++allocations, host_.allocate(bytes); }
  void release(void* data) noexcept override { host_.release(data); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    check(), ++copies, host_.upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    check(), ++copies, host_.download(to, from, bytes);
  }
  void fill(void* to, unsigned char byte, std::size_t bytes) override { ++copies, host_.fill(to, byte, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { ++copies, host_.copy(to, from, bytes); }
  void synchronize() override {
    check(), ++waits;
    if (lost) throw DeviceError("the device is lost");
  }
  std::unique_ptr<Timer> timer() override { return std::make_unique<ToldTimer>(*this); }
  /// Runs the work, in which memory, copies to and from the host and waits fail, as on a GPU. The result is null.
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) override {
    captures_ = true;
    work();
    captures_ = false;
    return nullptr;
  }

 private:
  void check() const {
    if (captures_) throw DeviceError("work that is captured may not do this");
  }

  struct ToldTimer final : Timer {
    explicit ToldTimer(CountingDevice& told) : device(told) {}
    void start() override {}
    void stop() override {}
    double seconds() override {
      if (device.seconds.empty()) return 1;
      const double first = device.seconds.front();
      device.seconds.erase(device.seconds.begin());
      return first;
    }
    CountingDevice& device;
  };
  HostDevice host_{1};
  bool captures_ = false;
};

/// The settings and records of a HostMachine; outlives it.
struct MachineLog {
  CountingDevice device;
  std::string unavailable;
  std::vector<std::string> calls;  ///< calls of cuBLAS and of our kernels, and copies, but no folds or updates
  struct Folded {
    cudnn::Fold fold;
    void *w_to, *bias_to;
  };
  std::vector<Folded> folds;
  std::vector<Update> updates;
  int cuda_major = 0;                ///< the version requested of cuBLAS
  double peak_flops_per_second = 0;  ///< of the machine's units in f32; in f64 half of it
  int blas_status = 0;               ///< the status of cuBLAS's calls of a pass, if not 0; such calls do no work
};

std::unique_ptr<cudnn::Machine> make_host_machine(MachineLog&);

/// A backend on a fake and the host: cudnn or, with engines, cudnn-graph.
struct FakeBackend {
  explicit FakeBackend(std::size_t version = 91900, const char* name = "cudnn",
                       std::unique_ptr<cudnn::graph::UnitEngines> engines = nullptr)
      : fake(version),
        made(cudnn::make_backend(
            name, make_host_machine(log), [this]() -> const cudnn::Api& { return fake.api; }, std::move(engines))) {}

  Fake fake;
  MachineLog log;
  std::unique_ptr<Backend> made;
  Backend& backend = *made;
};

}  // namespace lamina::test
