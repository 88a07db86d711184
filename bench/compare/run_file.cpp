// A file of results as rows.

#include "run_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <utility>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int newest_format = 1;  // that this program reads

constexpr const char* table_end = ".table.json";  // of the table that `run` writes beside its rows

/// What is wrong in a file that is JSON.
struct Wrong {
  std::string what;
};

double seconds_per(const std::string& unit) {
  if (unit == "s") return 1;
  if (unit == "ms") return 1e-3;
  if (unit == "us") return 1e-6;
  if (unit == "ns") return 1e-9;
  throw Wrong{"time_unit \"" + unit + "\" is unknown"};
}

void add_passes(RunFile& file, const Json& entries) {
  struct Pass {
    double seconds, cpu_seconds;
  };
  std::map<std::string, std::map<std::int64_t, Pass>> passes;
  const auto add = [&](const std::string& name, std::int64_t pass, double seconds, double cpu_seconds) {
    if (!(seconds > 0) || !std::isfinite(seconds)) throw Wrong{fmt::format("{} has the time {}", name, seconds)};
    if (!passes[name].emplace(pass, Pass{seconds, cpu_seconds}).second)
      throw Wrong{name + " has a pass twice, as in the files of bench/race/versions, which have verdicts of their own"};
  };
  for (const Json& entry : entries) {
    if (entry.value("run_type", std::string("iteration")) != "iteration") continue;
    const std::string name = entry.at("name").get<std::string>();
    RunRow& row = file.rows[name];
    row.key = entry.at("key");
    row.grade = entry.value("grade", row.grade);
    row.others_share = entry.value("others_share", row.others_share);
    if (entry.value("error_occurred", false) || entry.contains("skipped")) {
      row.failure = entry.value("error_message", entry.value("skip_message", std::string("failed")));
      continue;
    }
    const std::int64_t pass = entry.value("repetition_index", std::int64_t{0});
    if (row.field("what") == "setup" && pass != 0) continue;
    const double unit = seconds_per(entry.at("time_unit"));
    if (entry.contains("real_times")) {  // all passes in one entry
      const auto seconds = entry["real_times"].get<std::vector<double>>();
      const auto cpu_seconds = entry.value("cpu_times", std::vector<double>(seconds.size()));
      if (seconds.empty() || cpu_seconds.size() != seconds.size())
        throw Wrong{name + " has no real_times, or not as many cpu_times"};
      for (std::size_t i = 0; i < (row.field("what") == "setup" ? std::size_t{1} : seconds.size()); ++i)
        add(name, static_cast<std::int64_t>(i), unit * seconds[i], unit * cpu_seconds[i]);
      continue;
    }
    add(name, pass, unit * entry.at("real_time").get<double>(), unit * entry.value("cpu_time", 0.0));
  }
  for (const auto& [name, by_pass] : passes)
    for (const auto& [number, pass] : by_pass) {
      RunRow& row = file.rows[name];
      row.seconds.push_back(pass.seconds);
      if (pass.cpu_seconds > 0) row.cpu_seconds.push_back(pass.cpu_seconds);
    }
}

/// "ledger/resnet50/bn1 + relu/forward/eigen/f32/nchw/batch:16", and without a layer the whole pass.
std::string name_of(const Json& key, const std::string& layers, const std::string& pass) {
  std::string name =
      "ledger/" + key.at("network").get<std::string>() + (layers.empty() ? "" : "/" + layers) + "/" + pass;
  for (const char* field : {"backend", "type", "layout"}) name += "/" + key.at(field).get<std::string>();
  name += fmt::format("/batch:{}", key.at("batch").get<int>());
  if (key.contains("differs"))
    for (const auto& [what, value] : key["differs"].items())
      name += "/" + what + (value == "" ? "" : ":" + value.get<std::string>());
  return name;
}

void add_ledger(RunFile& file, const Json& ledger) {
  const auto add = [&](const std::string& layers, const std::string& pass, const Json& samples) {
    Json key = ledger.at("key");
    key["part"] = pass;
    if (!layers.empty()) key["layer"] = layers;
    const std::string name = name_of(ledger.at("key"), layers, pass);
    RunRow& row = file.rows[name];
    row.key = std::move(key);
    row.seconds = samples.get<std::vector<double>>();
    // A call whose median is 0 is shorter than the device's clock can tell, and has no ratio.
    const auto zeros = std::count_if(row.seconds.begin(), row.seconds.end(), [](double each) { return !(each > 0); });
    if (2 * static_cast<std::size_t>(zeros) >= row.seconds.size()) file.rows.erase(name);
  };
  add("", "forward", ledger.at("forward_samples"));
  add("", "backward", ledger.at("backward_samples"));
  for (const Json& call : ledger.at("calls")) add(call.at("layers"), call.at("pass"), call.at("samples"));
}

}  // namespace

std::string RunFile::fact(const char* name) const {
  const auto found = context.find(name);
  if (found == context.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::vector<std::string> other_machine(const RunFile& first, const RunFile& second) {
  std::vector<std::string> differences;
  for (const char* fact : {"processor", "num_cpus", "memory", "gpu_0", "threads", "cpu_quota"}) {
    const std::string a = first.fact(fact), b = second.fact(fact);
    if (!a.empty() && !b.empty() && a != b) differences.push_back(fmt::format("{}: {} and {}", fact, a, b));
  }
  return differences;
}

RunFile read_run_file(const std::filesystem::path& path, bool may_be_empty) {
  std::ifstream stream(path);
  if (!stream) throw FileError(fmt::format("cannot read {}: there is no such file, or no right to it", path.string()));
  const auto wrong = [&](const std::string& what) {
    return FileError(fmt::format("{} {}; measure again, into a new file", path.string(), what));
  };
  RunFile file{path, {}, {}};
  try {
    const Json document = Json::parse(stream);
    if (!document.is_object() || !document.contains("context") || !document["context"].is_object() ||
        (!document.contains("benchmarks") && !document.contains("ledgers")))
      throw wrong("holds no rows of lamina_bench: it has no \"context\" with \"benchmarks\" or \"ledgers\"");
    file.context = document["context"];
    if (const int format = file.context.value("lamina_format", newest_format); format > newest_format)
      throw wrong(fmt::format("has format {}, and this lamina_bench reads up to {}: it is from a newer version", format,
                              newest_format));
    if (document.contains("benchmarks")) add_passes(file, document["benchmarks"]);
    if (document.contains("ledgers"))
      for (const Json& ledger : document["ledgers"]) add_ledger(file, ledger);
  } catch (const nlohmann::json::parse_error& error) {
    throw wrong(fmt::format("is damaged, or not JSON: at byte {}", error.byte));
  } catch (const nlohmann::json::exception& error) {
    throw wrong(fmt::format("is damaged, or of another program: {}", error.what()));
  } catch (const Wrong& error) {
    throw wrong("is damaged, or of another program: " + error.what);
  }
  if (file.rows.empty() && !may_be_empty) throw wrong("holds no row");
  return file;
}

std::vector<RunFile> read_processes(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {read_run_file(path)};
  std::vector<RunFile> all;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".json" && !entry.path().string().ends_with(table_end))
      all.push_back(read_run_file(entry.path()));
  if (all.empty())
    throw FileError(fmt::format("{} holds no file *.json; give each process a file there", path.string()));
  const auto order = [](const RunFile& file) { return std::pair(file.fact("time_start"), file.path); };
  std::sort(all.begin(), all.end(), [&](const RunFile& a, const RunFile& b) { return order(a) < order(b); });
  return all;
}

}  // namespace lamina::bench
