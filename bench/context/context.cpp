// Facts about machine and build that go with the rows.

#include "context.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <set>

#include "bench/io/quantities.h"
#include "bench/timing/machine_watch.h"
#include "build.h"
#include "devices.h"
#include "lamina/error.h"
#include "lib/core/files/system_file.h"

namespace lamina::bench {
namespace {

/// The value of the first line "key : value" of a file of /proc, or nothing.
std::string value_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t start = line.find_first_not_of(": \t", key.size());
    if (start != std::string::npos) return line.substr(start);
  }
  return {};
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// File names of the shared libraries in this process; a distribution's have their versions in them.
std::string shared_libraries() {
  std::ifstream file("/proc/self/maps");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    const std::size_t slash = line.rfind('/');
    if (slash != std::string::npos && line.find(".so", slash) != std::string::npos)
      names.insert(line.substr(slash + 1));
  }
  return fmt::format("{}", fmt::join(names, " "));
}

void add_versions(Facts& facts) {
  facts.emplace_back("lamina", build::lamina_version);
  facts.emplace_back("commit", build::commit);
  facts.emplace_back("compiler", build::compiler);
  facts.emplace_back("build_type", build::type);
  facts.emplace_back("compiler_flags", build::flags);
  facts.emplace_back("google_benchmark", fmt::format("built against {}", build::benchmark_version));
#if defined(__GLIBC__)
  char glibc[64] = "not known";
  confstr(_CS_GNU_LIBC_VERSION, glibc, sizeof glibc);
  facts.emplace_back("libc", fmt::format("{}, built against glibc {}.{}", glibc, __GLIBC__, __GLIBC_MINOR__));
#endif
  facts.emplace_back("shared_libraries", shared_libraries());
}

void add_machine(Facts& facts) {
  if (const std::string model = value_of("/proc/cpuinfo", "model name"); !model.empty())
    facts.emplace_back("processor", model);
  if (const std::string memory = value_of("/proc/meminfo", "MemTotal"); !memory.empty())
    facts.emplace_back("memory", bytes_text(std::strtod(memory.c_str(), nullptr) * 1024));
  if (const std::string kernel = first_line("/proc/sys/kernel/osrelease"); !kernel.empty())
    facts.emplace_back("kernel", kernel);
  if (const std::string name = value_of("/etc/os-release", "PRETTY_NAME="); name.size() > 2)
    facts.emplace_back("system", name.substr(1, name.size() - 2));
  // What containers hide from the count of processors, and what holds the clock down.
  if (const std::string quota = first_line("/sys/fs/cgroup/cpu.max"); !quota.empty())
    facts.emplace_back("cpu_quota", quota);
  if (const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
      !governor.empty())
    facts.emplace_back("governor", governor);
}

/// Which readings of a GPU are in the rows, or why not; of a processor nothing.
void add_readings(Facts& facts, Backends& backends, const std::string& backend) {
  try {
    Device& device = backends.usable(backend).device();
    if (device.longest_hold() <= 0) return;
    const std::string missing = device.state().missing;
    facts.emplace_back("readings_" + backend,
                       std::string("clock, temperature and power by NVML, read when a pass has ended") +
                           (missing.empty() ? "" : "; not available: " + missing));
  } catch (const Error&) {
    // Said in the facts of the device.
  }
}

}  // namespace

Facts static_context(Backends& backends) {
  Facts facts;
  add_machine(facts);
  facts.emplace_back("threads", backends.threads() > 0 ? fmt::format("{}", backends.threads()) : "all");
  for (Fact& fact : device_facts()) facts.push_back(std::move(fact));
  add_versions(facts);
  for (const std::string& name : backends.names()) {
    const auto add = [&](const char* kind, auto&& describe) {
      try {
        facts.emplace_back(kind + name, describe(backends.at(name)));
      } catch (const Error& error) {
        facts.emplace_back(kind + name, error.what());
      }
    };
    add("backend_", [](Backend& backend) { return backend.describe(); });
    add("device_", [](Backend& backend) { return backend.device().describe(); });
    add_readings(facts, backends, name);
  }
  if (!backends.left_out().empty())
    facts.emplace_back("left_out", fmt::format("{}", fmt::join(backends.left_out(), "; ")));
  return facts;
}

Facts runtime_context(const std::string& when) {
  double load[3] = {0, 0, 0};
  const bool known = getloadavg(load, 3) == 3;
  const std::optional<double> mhz = processor_mhz();  // of the fastest
  const std::optional<Temperature> hottest = processor_temperature();
  return {
      {"time_" + when, utc_now()},
      {"load_average_" + when, known ? fmt::format("{:.2f} {:.2f} {:.2f}", load[0], load[1], load[2]) : "not known"},
      {"clock_MHz_" + when, mhz ? fmt::format("{:.0f}", *mhz) : "not known"},
      {"temperature_C_" + when,
       hottest ? fmt::format("{:.0f}", hottest->celsius) : "not readable: no sensor of the processor in /sys/class"}};
}

}  // namespace lamina::bench
