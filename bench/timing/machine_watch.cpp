// The state of the machine during timing: the load of other programs, and clock and temperature of the processors if
// the system shows them. The clock of one core, measured by additions. Grades of rows by number of samples, spread,
// load, clock and temperature.

#include "machine_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "lamina/statistics.h"

namespace lamina::bench {
namespace {

namespace fs = std::filesystem;

constexpr int runs = 6, steps = 8192, additions = 32;  // a run takes about 0.1 ms

/// The seconds of a chain of additions. The empty statements keep the compiler from merging the additions.
double seconds_of_chain() {
  const double start = steady_seconds();
  unsigned long sum = 1, addend = 3;
  asm volatile("" : "+r"(addend));
  for (int step = 0; step < steps; ++step) {
#pragma GCC unroll 32
    for (int i = 0; i < additions; ++i) {
      sum += addend;
      asm volatile("" : "+r"(sum));
    }
  }
  return steady_seconds() - start;
}

/// The number at the start of a file's first line. Empty: there is none.
std::optional<double> number_in(const fs::path& path) {
  const std::string line = first_line(path);
  char* end = nullptr;
  const double value = std::strtod(line.c_str(), &end);
  return end == line.c_str() ? std::nullopt : std::optional(value);
}

template <class Take>
void for_each_in(const fs::path& folder, Take&& take) {
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error))
    take(each->path());
}

/// Sets `highest` to the higher reading. An empty optional, which is no reading, compares below every reading.
void keep_highest(std::optional<double>& highest, std::optional<double> value) { highest = std::max(highest, value); }

void keep_lowest(std::optional<double>& lowest, std::optional<double> value) {
  if (value && (!lowest || *value < *lowest)) lowest = value;
}

/// Reads a temperature from a file, in thousandths of a degree, and keeps it in `hottest` if it is the highest so far.
void add_temperature(const fs::path& file, const fs::path& limit_file, std::optional<Temperature>& hottest) {
  const std::optional<double> value = number_in(file), limit = number_in(limit_file);
  if (!value || (hottest && 1e-3 * *value <= hottest->celsius)) return;
  hottest = Temperature{1e-3 * *value, limit ? std::optional(1e-3 * *limit) : std::nullopt};
}

/// Reads the temperatures of one sensor of /sys/class/hwmon, if the sensor belongs to a processor.
void add_sensor(const fs::path& folder, std::optional<Temperature>& hottest) {
  constexpr std::array names = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
  const std::string name = first_line(folder / "name");
  if (std::none_of(names.begin(), names.end(), [&](const char* known) { return name == known; })) return;
  for_each_in(folder, [&](const fs::path& file) {
    const std::string leaf = file.filename().string();
    if (leaf.starts_with("temp") && leaf.ends_with("_input"))
      add_temperature(file, folder / (leaf.substr(0, leaf.size() - 5) + "crit"), hottest);
  });
}

/// The worst values that still give the marks A, B and C.
using Scale = std::array<double, 3>;
constexpr Scale samples_scale{-9, -6, -3};      // minus the number of samples: more samples are better
constexpr Scale spread_scale{0.01, 0.03, 0.1};  // half of the median's interval, as a share of the median
constexpr Scale load_scale{0.05, 0.15, 0.4};    // share of all processors that other programs took
constexpr Scale clock_scale{0.02, 0.05, 0.15};  // loss from the highest to the lowest clock, as a share
constexpr Scale heat_scale{-10, -5, 0};         // degrees above the limit

char mark(const Scale& scale, double value) {
  return static_cast<char>('A' + (std::ranges::lower_bound(scale, value) - scale.begin()));
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

double core_clock() {
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) best = std::min(best, seconds_of_chain());
  return static_cast<double>(steps) * additions / best;
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<double> processor_mhz(const fs::path& root) {
  std::optional<double> fastest;
  for_each_in(root / "sys/devices/system/cpu", [&](const fs::path& folder) {
    if (!folder.filename().string().starts_with("cpu")) return;
    if (const std::optional<double> khz = number_in(folder / "cpufreq/scaling_cur_freq"))
      keep_highest(fastest, 1e-3 * *khz);
  });
  if (fastest) return fastest;
  std::ifstream file(root / "proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("cpu MHz") && line.find(':') != std::string::npos)
      keep_highest(fastest, std::strtod(line.c_str() + line.find(':') + 1, nullptr));
  return fastest;
}

std::optional<Temperature> processor_temperature(const fs::path& root) {
  std::optional<Temperature> hottest;
  for_each_in(root / "sys/class/hwmon", [&](const fs::path& folder) { add_sensor(folder, hottest); });
  if (hottest) return hottest;
  for_each_in(root / "sys/class/thermal", [&](const fs::path& folder) {
    if (first_line(folder / "type") == "x86_pkg_temp") add_temperature(folder / "temp", "", hottest);
  });
  return hottest;
}

MachineWatch::MachineWatch(Sources sources, double window_seconds)
    : sources_(std::move(sources)), window_(window_seconds) {
  since_ = sources_.now();
  own_ = sources_.own_seconds();
  ticks_ = ticks();
}

std::optional<MachineWatch::Ticks> MachineWatch::ticks() const {
  std::ifstream file(sources_.root / "proc/stat");
  std::string name;
  // The fields: user, nice, system, idle, iowait, irq, softirq, steal. Time of guests is in `user` and `nice`, too.
  std::array<double, 8> each{};
  if (!(file >> name) || name != "cpu") return std::nullopt;
  for (double& value : each)
    if (!(file >> value)) return std::nullopt;
  Ticks sum;
  for (std::size_t i = 0; i < each.size(); ++i) {
    sum.all += each[i];
    if (i != 3 && i != 4) sum.busy += each[i];
  }
  return sum;
}

void MachineWatch::begin() {
  worst_ = {};
  if (sources_.now() - since_ >= window_) read_load();
  worst_.others = last_others_;
  read_sensors();
}

void MachineWatch::look() {
  const double window = worst_.others ? window_ : window_ / 5;  // an inexact load is better than no load
  if (sources_.now() - since_ < window) return;
  read_load();
  read_sensors();
}

void MachineWatch::read_load() {
  const double now = sources_.now(), own = sources_.own_seconds();
  const std::optional<Ticks> ticks_now = ticks();
  if (ticks_ && ticks_now && ticks_now->all > ticks_->all) {
    const double own_ticks = (own - own_) * static_cast<double>(::sysconf(_SC_CLK_TCK));
    const double others = (ticks_now->busy - ticks_->busy - own_ticks) / (ticks_now->all - ticks_->all);
    last_others_ = std::max(0.0, others);
    keep_highest(worst_.others, last_others_);
  }
  since_ = now;
  own_ = own;
  ticks_ = ticks_now;
}

void MachineWatch::read_sensors() {
  const std::optional<double> mhz = processor_mhz(sources_.root);
  keep_lowest(worst_.clock_low_mhz, mhz);
  keep_highest(worst_.clock_high_mhz, mhz);
  if (const std::optional<Temperature> hot = processor_temperature(sources_.root)) {
    keep_highest(worst_.hottest_c, hot->celsius);
    keep_lowest(worst_.limit_c, hot->limit);
  }
}

Grade grade(const std::vector<double>& seconds, const Conditions& c) {
  Grade all;
  const auto add = [&](char letter, const std::string& reason) {
    if (letter > 'A') all.reasons.push_back(fmt::format("{}: {}", letter, reason));
    all.letter = std::max(all.letter, letter);
  };
  const Interval median = median_interval(seconds);
  const double spread = median.middle > 0 ? (median.high - median.low) / 2 / median.middle : 1;
  add(mark(samples_scale, -static_cast<double>(seconds.size())),
      fmt::format("{} sample{}", seconds.size(), seconds.size() == 1 ? "" : "s"));
  add(mark(spread_scale, spread), fmt::format("median known to {}", percent(spread)));
  if (c.others)
    add(mark(load_scale, *c.others), fmt::format("other programs took {} of the processors", percent(*c.others)));
  else
    add('B', "the load of other programs is not known");
  std::vector<std::string> unknown;
  if (c.clock_low_mhz && c.clock_high_mhz && *c.clock_high_mhz > 0)
    add(mark(clock_scale, 1 - *c.clock_low_mhz / *c.clock_high_mhz),
        fmt::format("clock between {:.0f} and {:.0f} MHz", *c.clock_low_mhz, *c.clock_high_mhz));
  else
    unknown.emplace_back("clock");
  if (!c.hottest_c)
    unknown.emplace_back("temperature");
  else if (c.limit_c)
    add(mark(heat_scale, *c.hottest_c - *c.limit_c),
        fmt::format("{:.0f} of at most {:.0f} degrees Celsius", *c.hottest_c, *c.limit_c));
  if (!c.throttled.empty()) add('C', "clock held down: " + c.throttled);
  if (!unknown.empty()) all.reasons.push_back(fmt::format("not readable: {}", fmt::join(unknown, ", ")));
  return all;
}

Conditions conditions_of(const std::vector<Sample>& samples, Conditions c) {
  const bool reports = std::any_of(samples.begin(), samples.end(), [](const Sample& sample) {
    return sample.state.sm_mhz || sample.state.temperature_c || !sample.state.missing.empty();
  });
  c.throttled = throttled_of(samples);
  if (!reports) return c;
  c.clock_low_mhz = c.clock_high_mhz = c.hottest_c = c.limit_c = std::nullopt;
  for (const Sample& sample : samples) {
    keep_lowest(c.clock_low_mhz, sample.state.sm_mhz);
    keep_highest(c.clock_high_mhz, sample.state.sm_mhz);
    keep_highest(c.hottest_c, sample.state.temperature_c);
  }
  return c;
}

}  // namespace lamina::bench
