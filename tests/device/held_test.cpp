// Timing without the host's launches, and warming up, on a modelled device.

#include <chrono>
#include <thread>

#include "lamina/timing.h"
#include "lib/core/device/peak_rate.h"
#include "tests/support/catch.h"
#include "tests/support/queued_device.h"

namespace lamina {
namespace {

constexpr double longest = 5e-3;

/// A modelled device with a timer, and work that takes given times on the host and on the device.
struct Bench {
  test::QueuedDevice device;
  std::unique_ptr<Timer> timer = device.timer();
  HeldLaunches held{device};
  double host = 10e-6, work = 3e-6;
  int runs = 0;

  explicit Bench(double longest_hold = longest) { device.longest = longest_hold; }

  bool run() {
    return held.run(*timer, [&] {
      ++runs;
      timer->start();
      device.launch(host, work);
      timer->stop();
    });
  }
};

TEST_CASE("after a delay the time is the device's time, and without a delay it includes the host's launches") {
  Bench bench;
  CHECK(bench.run());
  CHECK(bench.timer->seconds() == Approx(3e-6));
  CHECK(bench.runs == 1);
  CHECK(bench.device.holds == std::vector<double>{100e-6});
  bench.timer->start();
  bench.device.launch(bench.host, bench.work);
  bench.timer->stop();
  CHECK(bench.timer->seconds() == Approx(13e-6));
}

TEST_CASE("a delay that is too short grows until it is long enough, and the time is that of the last run") {
  Bench bench;
  bench.host = 700e-6;
  CHECK(bench.run());
  const std::vector<double>& holds = bench.device.holds;
  REQUIRE(holds.size() >= 2);
  CHECK(holds.front() == 100e-6);
  for (std::size_t i = 1; i < holds.size(); ++i) {
    CHECK(holds[i - 1] < bench.host);
    CHECK(holds[i] >= 2 * holds[i - 1]);  // at least doubled; more if the host was slow
  }
  CHECK(holds.back() >= bench.host);
  CHECK(bench.runs == static_cast<int>(holds.size()));
  CHECK(bench.timer->seconds() == Approx(3e-6));
}

TEST_CASE("launches that the longest delay cannot hide are reported as included, and the next call runs only once") {
  Bench bench;
  bench.host = 6e-3;
  CHECK_FALSE(bench.run());
  CHECK(bench.device.holds.back() == longest);
  CHECK(bench.timer->seconds() == Approx(1e-3).epsilon(0.01));  // the part that the delay does not hide
  const int runs = bench.runs;
  CHECK_FALSE(bench.run());
  CHECK(bench.runs == runs + 1);
  bench.host = 10e-6;
  CHECK(bench.run());  // the next run succeeds
}

TEST_CASE("the next delay is adapted to the host's time") {
  Bench bench;
  const auto enqueue = [&](std::chrono::milliseconds needed) {
    return bench.held.run(*bench.timer, [&] {
      bench.timer->start();
      std::this_thread::sleep_for(needed);
      bench.timer->stop();
    });
  };
  CHECK(enqueue(std::chrono::milliseconds(1)));
  CHECK(bench.run());
  CHECK(bench.device.holds.back() >= 2e-3);
  for (int i = 0; i < 100 && bench.device.holds.back() >= 2e-3; ++i) bench.run();  // other programs may slow a run
  CHECK(bench.device.holds.back() < 2e-3);
}

TEST_CASE("a device without a queue gets no delay, and its work runs once") {
  Bench bench(0);
  CHECK_FALSE(bench.run());
  CHECK(bench.runs == 1);
  CHECK(bench.device.holds.empty());
  HostDevice host(1);
  CHECK(host.longest_hold() == 0);
  CHECK(host.timer()->started());
  CHECK_THROWS_AS(host.hold(1e-3), Unsupported);
  CHECK_FALSE(host.state().sm_mhz);
}

TEST_CASE("a device is warmed up for 50 ms, and not longer if its time and clock are constant") {
  Bench bench;
  double worked = 0;
  warm_up(bench.device, [&] {
    bench.device.launch(0, 1e-3);
    worked += 1e-3;
  });
  CHECK(worked >= 0.05);
  CHECK(worked < 0.08);
}

TEST_CASE("warming up goes on while the time or the clock changes, but for at most one second") {
  Bench bench;
  double worked = 0, mhz = 345;
  bench.device.reading = [&] {
    DeviceState state;
    state.sm_mhz = mhz;
    mhz = std::min(1980.0, 1.1 * mhz);
    return state;
  };
  warm_up(bench.device, [&] {
    bench.device.launch(0, 1e-3);
    worked += 1e-3;
  });
  CHECK(mhz == 1980);
  CHECK(worked < 0.5);

  worked = 0;
  double run = 1e-3;
  warm_up(bench.device, [&] {
    bench.device.launch(0, run);
    worked += run;
    run *= 1.05;
  });
  CHECK(worked >= 1);
  CHECK(worked < 1.5);
}

TEST_CASE("a device without a queue is not warmed up") {
  Bench bench(0);
  warm_up(bench.device, [] { FAIL("the work ran"); });
}

TEST_CASE("a peak is a round's operations divided by its time, without launches and the start of the run") {
  for (const double round : {3e-6, 40e-6, 7e-3}) {
    test::QueuedDevice device;
    device.longest = longest;
    CAPTURE(round);
    std::vector<int> rounds;
    const double rate = peak_rate(device, 1e6, [&](int count) {
      rounds.push_back(count);
      device.launch(10e-6, count * round);
    });
    CHECK(rate == Approx(1e6 / round));
    CHECK(rounds.back() * round >= 1.99e-3);
    CHECK((rounds.back() - 1) * round <= 2.01e-3);
  }
}

}  // namespace
}  // namespace lamina
