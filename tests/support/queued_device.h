#pragma once
// A modelled device with a queue. The host enqueues work, the device runs it in order, and the times of both are
// simulated. Memory is host memory, and kernels compute when they are enqueued.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/device/host/host_device.h"

namespace lamina::test {

/// A device that is idle at first. If `longest` is 0, it reports that it has no queue, like the host.
class QueuedDevice : public Device {
 public:
  double longest = 0;         ///< longest_hold(), in seconds
  std::vector<double> holds;  ///< requests to hold()
  int waits = 0;              ///< calls of synchronize()
  std::function<DeviceState()> reading = [] { return DeviceState{}; };
  std::function<void(std::size_t bytes)> at_fill = [](std::size_t) {};  ///< called by fill()

  /// Enqueues work. The host takes `host_seconds` to enqueue it, and the device `device_seconds` to run it.
  void launch(double host_seconds, double device_seconds) {
    if (!replaying_) host_ += host_seconds;
    device_ = std::max(device_, host_) + device_seconds;
  }
  double idle_from() const { return device_; }  ///< time at which the device finishes all enqueued work

  std::string describe() override { return "modelled device"; }
  void* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  void release(void* data) noexcept override { memory_.release(data); }
  void upload(void* to, const void* from, std::size_t bytes) override { wait(), memory_.upload(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { wait(), memory_.download(to, from, bytes); }
  void fill(void* to, unsigned char byte, std::size_t bytes) override {
    at_fill(bytes);
    memory_.fill(to, byte, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { memory_.copy(to, from, bytes); }
  void synchronize() override { ++waits, wait(); }
  std::unique_ptr<Timer> timer() override { return std::make_unique<Marks>(*this); }
  double longest_hold() const override { return longest; }
  void hold(double seconds) override {
    holds.push_back(seconds);
    launch(0, seconds);
  }
  DeviceState state() override { return reading(); }
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) override {
    return std::make_unique<Recorded>(*this, work);
  }

 private:
  struct Marks final : Timer {
    explicit Marks(QueuedDevice& of) : device(&of) {}
    void start() override { first = std::max(device->device_, device->host_); }
    void stop() override { second = std::max(device->device_, device->host_); }
    bool started() override { return device->host_ >= first; }
    double seconds() override {
      device->wait();
      return second - first;
    }
    QueuedDevice* device;
    double first = 0, second = 0;
  };
  /// Runs the work at each launch, without the host's time for each kernel.
  struct Recorded final : CapturedGraph {
    Recorded(QueuedDevice& of, std::function<void()> work) : device(&of), recorded(std::move(work)) {}
    void launch() override {
      device->replaying_ = true;
      recorded();
      device->replaying_ = false;
    }
    QueuedDevice* device;
    std::function<void()> recorded;
  };
  void wait() { host_ = std::max(host_, device_); }

  double host_ = 0, device_ = 0;  ///< host_: the host's time; device_: end of the device's work
  bool replaying_ = false;
  HostDevice memory_{1};
};

}  // namespace lamina::test
