// Grades of rows, and the machine's readings that decide a grade. The readings come from fake /proc and /sys.

#include "bench/timing/machine_watch.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "ended.h"

using namespace lamina::bench;
using lamina::test::Folder;

namespace {

/// A folder that takes the place of the root folder /.
struct Root {
  Folder folder;

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = folder.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  /// Writes the ticks of all processors: `busy` by this program and others, and `idle`.
  void stat(long busy, long idle) const {
    write("proc/stat", "cpu  " + std::to_string(busy) + " 0 0 " + std::to_string(idle) + " 0 0 0 0 0 0\ncpu0 1 2 3");
  }
};

Conditions quiet() {
  return {.others = 0.01, .clock_low_mhz = 2990, .clock_high_mhz = 3000, .hottest_c = 60, .limit_c = 95};
}

const std::vector<double> steady = {1.000, 1.001, 1.002, 1.001, 1.000, 1.003, 1.001, 1.002, 1.001};

bool names(const Grade& grade, const std::string& what) {
  return std::any_of(grade.reasons.begin(), grade.reasons.end(),
                     [&](const std::string& reason) { return reason.find(what) != std::string::npos; });
}

}  // namespace

TEST_CASE("nine steady samples on a quiet machine are an A without reasons") {
  const Grade all = grade(steady, quiet());
  CHECK(all.letter == 'A');
  CHECK(all.reasons.empty());
}

TEST_CASE("each condition alone lowers the grade, and the reason names it") {
  const auto with = [](auto&& change) {
    Conditions conditions = quiet();
    change(conditions);
    return grade(steady, conditions);
  };
  const auto check = [](const Grade& found, char letter, const std::string& what) {
    CAPTURE(what);
    CHECK(found.letter == letter);
    CHECK(found.reasons.size() == 1);
    CHECK(names(found, what));
  };
  check(grade({steady.begin(), steady.begin() + 8}, quiet()), 'B', "8 samples");
  check(grade({1.0, 1.001, 1.0}, quiet()), 'C', "3 samples");
  check(grade({1.0}, quiet()), 'D', "1 sample");
  check(grade({1.0, 1.05, 1.0, 1.05, 1.0, 1.05, 1.0, 1.05, 1.0}, quiet()), 'B', "median");
  check(grade({1.0, 1.5, 1.0, 1.5, 1.0, 1.5, 1.0, 1.5, 1.0}, quiet()), 'D', "median");
  check(with([](Conditions& c) { c.others = 0.1; }), 'B', "10.0 %");
  check(with([](Conditions& c) { c.others = 0.5; }), 'D', "50.0 %");
  check(with([](Conditions& c) { c.others.reset(); }), 'B', "load");
  check(with([](Conditions& c) { c.clock_low_mhz = 2700; }), 'C', "2700 and 3000 MHz");
  check(with([](Conditions& c) { c.hottest_c = 88; }), 'B', "88 of at most 95");
  check(with([](Conditions& c) { c.hottest_c = 97; }), 'D', "97 of at most 95");
  check(with([](Conditions& c) { c.throttled = "power cap"; }), 'C', "power cap");
}

TEST_CASE("the grade is the worst mark, and a reading that failed is named but has no mark") {
  const Grade worst = grade({1.0, 1.001, 1.0}, {.others = 0.9});
  CHECK(worst.letter == 'D');
  CHECK(names(worst, "3 samples"));
  CHECK(names(worst, "90.0 %"));
  const Grade blind = grade(steady, {.others = 0.0});
  CHECK(blind.letter == 'A');
  CHECK(names(blind, "not readable: clock, temperature"));
}

TEST_CASE("a GPU's row is graded by the GPU's clock and the causes that throttled it") {
  std::vector<Sample> samples(2);
  samples[0].state = {.sm_mhz = 1900, .temperature_c = 60, .power_w = {}, .throttled = "power cap"};
  samples[1].state = {.sm_mhz = 1500, .temperature_c = 70, .power_w = {}};
  const Conditions found = conditions_of(samples, quiet());
  CHECK(found.clock_low_mhz == 1500.0);
  CHECK(found.clock_high_mhz == 1900.0);
  CHECK(found.hottest_c == 70.0);
  CHECK_FALSE(found.limit_c);
  CHECK(found.throttled == "power cap");
  CHECK(found.others == 0.01);
  CHECK(conditions_of(std::vector<Sample>(2), quiet()).clock_high_mhz == 3000.0);  // of a processor
}

TEST_CASE("the load is the share of all processors that other programs took in a row's worst window") {
  const Root root;
  const double per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  double now = 0, own = 0;
  root.stat(0, 0);
  MachineWatch watch({root.folder.path(), [&] { return now; }, [&] { return own; }}, 0.5);
  watch.begin();
  CHECK_FALSE(watch.conditions().others);
  // One second on two processors: this program keeps one processor busy, and other programs use a quarter of the other
  // processor.
  now = 1;
  own = 1;
  root.stat(std::lround(1.25 * per_second), std::lround(0.75 * per_second));
  watch.look();
  CHECK(watch.conditions().others.value_or(-1) == Approx(0.125));
  now = 1.2;  // within the window
  root.stat(std::lround(1.45 * per_second), std::lround(0.95 * per_second));
  watch.look();
  CHECK(watch.conditions().others.value_or(-1) == Approx(0.125));
  now = 3;
  own = 3;
  root.stat(std::lround(3.25 * per_second), std::lround(2.75 * per_second));
  watch.look();
  CHECK(watch.conditions().others.value_or(-1) ==
        Approx(0.125));  // the worst window counts, although the last one was quiet
  watch.begin();
  CHECK(watch.conditions().others.value_or(-1) == Approx(0.0).margin(1e-9));  // the load of the last window
}

TEST_CASE("the clock is the fastest processor's and the temperature the hottest processor's, if there are sensors") {
  const Root root;
  CHECK_FALSE(processor_mhz(root.folder.path()));
  CHECK_FALSE(processor_temperature(root.folder.path()));
  root.write("proc/cpuinfo", "cpu MHz\t\t: 2600.5\ncpu MHz\t\t: 2500.0");
  CHECK(processor_mhz(root.folder.path()) == 2600.5);
  root.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1200000");
  root.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3400000");
  CHECK(processor_mhz(root.folder.path()) == 3400.0);
  root.write("sys/class/thermal/thermal_zone0/type", "acpitz");
  root.write("sys/class/thermal/thermal_zone0/temp", "99000");
  root.write("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp");
  root.write("sys/class/thermal/thermal_zone1/temp", "55000");
  CHECK(processor_temperature(root.folder.path()).value_or(Temperature{}).celsius == 55.0);
  root.write("sys/class/hwmon/hwmon0/name", "nvme");
  root.write("sys/class/hwmon/hwmon0/temp1_input", "99000");
  root.write("sys/class/hwmon/hwmon1/name", "k10temp");
  root.write("sys/class/hwmon/hwmon1/temp1_input", "61000");
  root.write("sys/class/hwmon/hwmon1/temp2_input", "72000");
  root.write("sys/class/hwmon/hwmon1/temp2_crit", "95000");
  const Temperature hottest = processor_temperature(root.folder.path()).value_or(Temperature{});
  CHECK(hottest.celsius == 72.0);
  CHECK(hottest.limit == 95.0);
}
