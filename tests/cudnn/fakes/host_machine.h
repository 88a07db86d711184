#pragma once
// The backend's machine on the host, for tests. It counts allocations, returns the times that a test sets, and only
// records folds and updates.

#include <memory>
#include <string>
#include <vector>

#include "lamina/error.h"
#include "lib/backends/cudnn/backend.h"
#include "lib/core/device/blas/blas.h"
#include "lib/core/device/host/host_device.h"
#include "tests/cudnn/fakes/fake.h"

namespace lamina::test {

/// The host as a device that counts calls. A test sets the times of its clock.
class CountingDevice final : public Device {
 public:
  int allocations = 0, waits = 0, copies = 0;
  bool lost = false;            ///< whether synchronize() throws
  std::vector<double> seconds;  ///< times of the next measurements, in order; then always 1 s

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
  /// Runs the work and returns null. As on a GPU, the work may not allocate, wait, or copy to or from the host.
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

/// The settings and records of a HostMachine. They must outlive the machine.
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
  int cuda_major = 0;                ///< requested major version of cuBLAS
  double peak_flops_per_second = 0;  ///< peak in f32; the peak in f64 is half of it
  int blas_status = 0;               ///< status of cuBLAS's calls in a pass; not 0: the calls do no work
};

std::unique_ptr<cudnn::Machine> make_host_machine(MachineLog&);

/// A backend on a fake cuDNN and the host. It is cudnn or, with engines, cudnn-graph.
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
