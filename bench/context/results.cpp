// The context of a file of results.

#include "results.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "bench/io/interrupt.h"
#include "bench/measure/rerun.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

void add(Json& context, const Facts& facts) {
  for (const auto& [key, value] : facts) context[key] = value;
}

/// As typed, for a shell; the program without its folder.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> line;
  for (std::size_t at = 0; at < words.size();) {
    std::string word = words.substr(at, words.find('\0', at) - at);
    at += word.size() + 1;
    if (line.empty()) word.erase(0, word.rfind('/') + 1);
    line.push_back(std::move(word));
  }
  return to_utf8(shell_line(line));
}

/// Some of it only the library knows.
Json context_of_library() {
  std::ostringstream text;
  benchmark::JSONReporter json;
  json.SetOutputStream(&text);
  json.ReportContext(benchmark::BenchmarkReporter::Context());  // leaves the list of rows open
  return Json::parse(text.str() + "]}")["context"];
}

}  // namespace

Json start_context(Backends& backends) {
  const Facts start = runtime_context("start");
  Json context = context_of_library();
  context["lamina_format"] = result_format;
  context["command"] = command_line();
  add(context, static_context(backends));
  add(context, start);
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

void end_context(Json& context, const Peaks& peaks) {
  add_peaks(context, peaks);
  add(context, runtime_context("end"));
  context["interrupted"] = interrupted() != 0;
}

Results::Results(Backends& backends, const std::filesystem::path& path, const char* list) : file_(path), list_(list) {
  if (path.empty()) return;
  check_writable(path);
  file_.document["context"] = start_context(backends);
  file_.document[list] = Json::array();
}

void Results::add(Json result, const std::string& rerun) {
  if (!wanted()) return;
  result["rerun"] = rerun;
  file_.document[list_].push_back(std::move(result));
  file_.save_now_and_then();
}

void Results::finish(const Peaks& peaks) {
  if (!wanted()) return;
  end_context(file_.document["context"], peaks);
  file_.save();
}

}  // namespace lamina::bench
