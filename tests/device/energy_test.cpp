// Energy from fake counters: RAPL's files, NVIDIA's library, and counters that stand still, wrap around or go back.

#include "lamina/energy.h"

#include <unistd.h>

#include <deque>
#include <fstream>
#include <string>

#include "lamina/error.h"
#include "lib/device/cuda/nvml.h"
#include "tests/support/catch.h"

using Catch::Matchers::ContainsSubstring;

namespace lamina {
namespace {

namespace fs = std::filesystem;

/// A folder of power zones that goes with the test.
class Zones {
 public:
  Zones() : root_(fs::temp_directory_path() / ("lamina_rapl_" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~Zones() { fs::remove_all(root_); }
  void write(const std::string& zone, const char* file, const std::string& text) const {
    fs::create_directories(root_ / zone);
    std::ofstream(root_ / zone / file) << text << "\n";
  }
  void zone(const std::string& zone, const std::string& name, long long microjoules) const {
    write(zone, "name", name);
    write(zone, "energy_uj", std::to_string(microjoules));
    write(zone, "max_energy_range_uj", "10000000");
  }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

/// Gives the readings that a test names, one after another.
class Listed final : public EnergyCounter {
 public:
  explicit Listed(std::deque<double> readings) : readings_(std::move(readings)) {}
  std::string describe() const override { return "a list"; }
  double joules() override {
    const double now = readings_.front();
    readings_.pop_front();
    return now;
  }

 private:
  std::deque<double> readings_;
};

TEST_CASE("the processor's energy is that of its packages, without the zones inside them") {
  const Zones zones;
  zones.zone("intel-rapl:0", "package-0", 1'000'000);
  zones.zone("intel-rapl:1", "package-1", 5'000'000);
  zones.zone("intel-rapl:0:0", "core", 700'000);
  const auto counter = processor_energy(zones.root());
  CHECK(counter->describe() == "RAPL package-0, package-1");
  const double before = counter->joules();
  zones.zone("intel-rapl:0", "package-0", 3'000'000);
  zones.zone("intel-rapl:1", "package-1", 5'500'000);
  zones.zone("intel-rapl:0:0", "core", 9'000'000);
  CHECK(counter->joules() - before == Approx(2.5));
}

TEST_CASE("a package that the system has twice counts once") {
  const Zones zones;
  for (const char* folder : {"intel-rapl-mmio:0", "intel-rapl:0"}) zones.zone(folder, "package-0", 1'000'000);
  zones.zone("intel-rapl-mmio:1", "package-1", 0);
  const auto counter = processor_energy(zones.root());
  CHECK(counter->describe() == "RAPL package-0, package-1");
  const double before = counter->joules();
  zones.zone("intel-rapl:0", "package-0", 3'000'000);
  zones.zone("intel-rapl-mmio:0", "package-0", 9'000'000);
  zones.zone("intel-rapl-mmio:1", "package-1", 500'000);
  CHECK(counter->joules() - before == Approx(2.5));
}

TEST_CASE("a package's number that wraps around counts on") {
  const Zones zones;
  zones.zone("intel-rapl:0", "package-0", 9'500'000);
  const auto counter = processor_energy(zones.root());
  const double before = counter->joules();
  zones.zone("intel-rapl:0", "package-0", 250'000);
  CHECK(counter->joules() - before == Approx(0.75));
  zones.zone("intel-rapl:0", "package-0", 1'250'000);
  CHECK(counter->joules() - before == Approx(1.75));
}

TEST_CASE("without power zones, or without the right to read them, the reason is named") {
  const Zones zones;
  CHECK_THROWS_WITH(processor_energy(zones.root() / "none"), ContainsSubstring("none"));
  CHECK_THROWS_AS(processor_energy(zones.root()), Unsupported);
  zones.write("intel-rapl:0", "name", "package-0");  // and no number
  CHECK_THROWS_AS(processor_energy(zones.root()), Unsupported);
  CHECK_THROWS_WITH(processor_energy(zones.root()), ContainsSubstring("intel-rapl:0/energy_uj"));
  zones.zone("intel-rapl:0", "package-0", 1);
  const auto counter = processor_energy(zones.root());
  fs::remove(zones.root() / "intel-rapl:0/energy_uj");
  CHECK_THROWS_AS(counter->joules(), DeviceError);
}

TEST_CASE("a GPU's energy is the library's total in joules, and is refused with the reason where there is none") {
  const auto library = [](const std::string& kind) { return LAMINA_FAKES "/nvml_" + kind + "/libnvidia-ml.so.1"; };
  const auto counter = nvml_energy(Nvml("0000:3b:00.0", library("whole")));
  const double before = counter->joules();
  CHECK(counter->joules() - before == Approx(5));
  const auto refusal = [&](const std::string& kind) { return nvml_energy(Nvml("0000:3b:00.0", library(kind))); };
  CHECK_THROWS_AS(refusal("old"), Unsupported);
  CHECK_THROWS_WITH(refusal("old"), ContainsSubstring("nvmlDeviceGetTotalEnergyConsumption"));
  CHECK_THROWS_WITH(refusal("refusing"), ContainsSubstring("nvmlInit_v2"));
}

TEST_CASE("a window of work lasts as long as asked, and has its joules by run and its watts") {
  Listed counter({100, 130});
  double now = 0;
  int runs = 0;
  const EnergyUsed used = measure_energy(
      counter, [&] { ++runs, now += 0.3; }, 1, [&] { return now; });
  CHECK(runs == 4);
  CHECK(used.runs == 4);
  CHECK(used.seconds == Approx(1.2));
  CHECK(used.joules == Approx(30));
  CHECK(used.joules_per_run() == Approx(7.5));
  CHECK(used.watts() == Approx(25));
}

TEST_CASE("a counter that stands still or goes back gives no energy but its reason") {
  double now = 0;
  const auto measured = [&](std::deque<double> readings) {
    Listed counter(std::move(readings));
    return measure_energy(
        counter, [&] { now += 1; }, 1, [&] { return now; });
  };
  CHECK_THROWS_AS(measured({5, 5}), Unsupported);
  CHECK_THROWS_WITH(measured({5, 5}), ContainsSubstring("stood still"));
  CHECK_THROWS_WITH(measured({5, 4}), ContainsSubstring("went back"));
}

}  // namespace
}  // namespace lamina
