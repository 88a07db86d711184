// The context of a file of results: the facts of machine and build that a reader of the file cannot find out later.

#include "context.h"

#include <benchmark/benchmark.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>

#include "bench/io/interrupt.h"
#include "bench/measure/row_key.h"
#include "bench/timing/machine_watch.h"
#include "build.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

void add_versions(Json& context) {
  context["lamina"] = build::lamina_version;
  context["commit"] = build::commit;
  context["compiler"] = build::compiler;
  context["build_type"] = build::type;
  context["compiler_flags"] = build::flags;
  context["google_benchmark"] = fmt::format("built against {}", build::benchmark_version);
#if defined(__GLIBC__)
  char glibc[64] = "not known";
  confstr(_CS_GNU_LIBC_VERSION, glibc, sizeof glibc);
  context["libc"] = fmt::format("{}, built against glibc {}.{}", glibc, __GLIBC__, __GLIBC_MINOR__);
#endif
}

void add_machine(Json& context) {
  const std::string memory = value_of("/proc/meminfo", "MemTotal"), name = value_of("/etc/os-release", "PRETTY_NAME=");
  const std::pair<const char*, std::string> facts[] = {
      {"processor", value_of("/proc/cpuinfo", "model name")},
      {"memory", memory.empty() ? "" : bytes_text(std::strtod(memory.c_str(), nullptr) * 1024)},
      {"kernel", first_line("/proc/sys/kernel/osrelease")},
      {"system", name.size() > 2 ? name.substr(1, name.size() - 2) : ""},
      // cpu_quota: limit of a container, which the count of processors does not show. governor: policy for the clock.
      {"cpu_quota", first_line("/sys/fs/cgroup/cpu.max")},
      {"governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")}};
  for (const auto& [fact, text] : facts)
    if (!text.empty()) context[fact] = text;
}

/// Adds a backend and its device. For a GPU, also adds which readings are in the rows, or why there are none.
void add_backend(Json& context, Backends& backends, const std::string& name) {
  const auto add = [&](const char* kind, auto&& describe) {
    try {
      context[kind + name] = describe(backends.at(name));
    } catch (const Error& error) {
      context[kind + name] = error.what();
    }
  };
  add("backend_", [](Backend& backend) { return backend.describe(); });
  add("device_", [](Backend& backend) { return backend.device().describe(); });
  try {
    Device& device = backends.usable(name).device();
    if (device.longest_hold() <= 0) return;
    const std::string missing = device.state().missing;
    context["readings_" + name] = "clock, temperature and power by NVML, read when a pass has ended" +
                                  (missing.empty() ? "" : "; not available: " + missing);
  } catch (const Error&) {
    // The reason is in the fact "device_...".
  }
}

/// The command line of this process, quoted for a shell, without the program's folder.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> line;
  for (std::string word; std::getline(file, word, '\0');)
    line.push_back(line.empty() ? word.substr(word.rfind('/') + 1) : word);
  return to_utf8(shell_line(line));
}

/// The context that Google Benchmark writes into its own files, with the pairs of --benchmark_context.
Json context_of_library() {
  benchmark::BenchmarkReporter::Context::executable_name = "lamina_bench";
  benchmark::JSONReporter reporter;
  std::ostringstream text;
  reporter.SetOutputStream(&text);
  reporter.ReportContext({});
  reporter.Finalize();
  return Json::parse(text.str())["context"];
}

}  // namespace

std::string value_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t start = line.find_first_not_of(": \t", key.size());
    if (start != std::string::npos) return line.substr(start);
  }
  return {};
}

Json runtime_context(const std::string& when) {
  double load[3] = {0, 0, 0};
  const bool known = getloadavg(load, 3) == 3;
  const std::optional<double> mhz = processor_mhz();  // clock of the fastest core
  const std::optional<Temperature> hottest = processor_temperature();
  return {
      {"time_" + when, fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"load_average_" + when, known ? fmt::format("{:.2f} {:.2f} {:.2f}", load[0], load[1], load[2]) : "not known"},
      {"clock_MHz_" + when, mhz ? fmt::format("{:.0f}", *mhz) : "not known"},
      {"temperature_C_" + when,
       hottest ? fmt::format("{:.0f}", hottest->celsius) : "not readable: no sensor of the processor in /sys/class"}};
}

Json start_context(Backends& backends) {
  const Json start = runtime_context("start");
  Json context = context_of_library();
  context["lamina_format"] = result_format;
  context["command"] = command_line();
  add_machine(context);
  context["threads"] = backends.threads() > 0 ? fmt::format("{}", backends.threads()) : "all";
  context.update(device_facts());
  add_versions(context);
  for (const std::string& name : backends.names()) add_backend(context, backends, name);
  if (!backends.left_out().empty()) context["left_out"] = fmt::format("{}", fmt::join(backends.left_out(), "; "));
  context.update(start);
  return context;
}

void add_peaks(Json& context, const Peaks& peaks) {
  const auto name = [](const Peaks::Key& of) { return fmt::format("{}/{}", of.first, to_string(of.second)); };
  for (const auto& [of, peak] : peaks.known()) {
    const std::string key = name(of);
    context["peak_GFLOPs_" + key] = fmt::format("{:.1f}", 1e-9 * peak.flops_per_second);
    if (peak.most > peak.flops_per_second) context["peak_most_GFLOPs_" + key] = fmt::format("{:.1f}", 1e-9 * peak.most);
    context["peak_is_" + key] = peak.description;
  }
  for (const auto& [of, flops] : peaks.known_products())
    if (flops > 0) context["product_GFLOPs_" + name(of)] = fmt::format("{:.1f}", 1e-9 * flops);
  for (const auto& [of, peak] : peaks.known())
    if (const double rate = peaks.known_bytes_per_second(of.first); rate > 0)
      context["memory_GBps_" + of.first] = fmt::format("{:.1f}", 1e-9 * rate);
}

void begin(ResultFile& file, Backends& backends, const char* list) {
  if (!file.wanted()) return;
  file.document["context"] = start_context(backends);
  file.document[list] = Json::array();
}

void end_context(Json& context, const Peaks& peaks) {
  add_peaks(context, peaks);
  context.update(runtime_context("end"));
  context["interrupted"] = interrupted() != 0;
}

void finish(ResultFile& file, const Peaks& peaks) {
  end_context(file.document["context"], peaks);
  file.save();
}

}  // namespace lamina::bench
