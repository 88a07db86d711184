#pragma once
// A backend whose algorithms take the time that a test tells, by a clock of its own.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/lowering.h"
#include "device/host_device.h"

namespace lamina::test {

/// The host, with timers that show a clock which only kernels advance.
class ToldDevice final : public Device {
 public:
  std::string describe() override { return "host of told time"; }
  void* allocate(std::size_t bytes) override { return host_.allocate(bytes); }
  void release(void* data) noexcept override { host_.release(data); }
  void upload(void* to, const void* from, std::size_t bytes) override { host_.upload(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { host_.download(to, from, bytes); }
  void fill(void* to, unsigned char byte, std::size_t bytes) override { host_.fill(to, byte, bytes); }
  void synchronize() override {}
  std::unique_ptr<Timer> timer() override { return std::make_unique<ToldTimer>(*this); }

  double now = 0;  ///< seconds

 private:
  struct ToldTimer final : Timer {
    explicit ToldTimer(ToldDevice& of) : device(of) {}
    void start() override { from = device.now; }
    void stop() override { to = device.now; }
    double seconds() override { return to - from; }
    ToldDevice& device;
    double from = 0, to = 0;
  };
  HostDevice host_{1};
};

/// An algorithm: what it takes at its run number 0, 1, ..., and what it promises.
struct Way {
  std::string name;
  std::function<double(int run)> seconds;
  double max_error = 1e-6;
  std::size_t workspace_bytes = 0;
  bool deterministic = true;
  std::size_t prepared_bytes = 0;  ///< in which `prepare` leaves the name, and forward looks for it
};

/// Convolutions by these ways in every pass; all else is "direct" and of no use.
class RaceBackend final : public Backend {
 public:
  explicit RaceBackend(std::vector<Way> ways) : ways_(std::move(ways)) {}

  std::string_view name() const override { return "race"; }
  std::string available() const override { return {}; }
  std::string describe() override { return "algorithms that take the time they are told"; }
  Device& device() override { return device_; }
  std::vector<std::string> algorithms(const Spec&, Pass) const override;
  Lowered lower(const Spec&, const Choice&) override;
  Choice measure(const Spec&, const Choice&, void* lent, std::size_t lent_bytes) override;

  int runs() const { return static_cast<int>(log.size()); }

  std::vector<std::string> log;     ///< "forward a", in the order of the runs
  std::vector<std::string> faults;  ///< what kernels found wrong with their arguments

 private:
  Lowered::Step step_of(const Way&, const Spec&, Pass);

  std::vector<Way> ways_;
  std::map<std::string, int> runs_of_;
  ToldDevice device_;
};

}  // namespace lamina::test
