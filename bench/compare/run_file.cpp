// A file of results as rows.

#include "run_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <utility>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// An error in a file that is well-formed JSON.
struct Wrong {
  std::string what;
};

double seconds_per(const std::string& unit) {
  static const std::map<std::string, double> units = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  if (const auto known = units.find(unit); known != units.end()) return known->second;
  throw Wrong{"time_unit \"" + unit + "\" is unknown"};
}

/// Adds an entry of the file to `rows`. An entry has one pass of a row, or all its passes. `paired`: variants took
/// turns, so rounds, which have numbers, take the place of passes.
void add_entry(std::map<std::string, RunRow>& rows, const Json& entry, bool paired) {
  if (entry.value("run_type", std::string("iteration")) != "iteration") return;
  const std::string name = entry.at("name").get<std::string>();
  if (!entry.contains("key")) throw Wrong{name + " has no key"};
  RunRow& row = rows[name];
  row.key = entry["key"];
  row.grade = entry.value("grade", row.grade);
  row.others_share = entry.value("others_share", row.others_share);
  row.rerun = entry.value("rerun", row.rerun);
  row.disturbed += entry.value("disturbed", std::size_t{0});
  if (entry.value("error_occurred", false) || entry.contains("skipped")) {
    row.failure = entry.value("error_message", entry.value("skip_message", std::string("failed")));
    return;
  }
  row.plan_MiB = entry.value("plan_MiB", row.plan_MiB);
  row.algorithm = entry.value("algorithm", row.algorithm);
  const double unit = seconds_per(entry.at("time_unit"));
  const bool several = entry.contains("real_times");
  using Numbers = std::vector<double>;
  const auto times = several ? entry["real_times"].get<Numbers>() : Numbers{entry.at("real_time").get<double>()};
  const auto cpu_times =
      several ? entry.value("cpu_times", Numbers(times.size())) : Numbers{entry.value("cpu_time", 0.0)};
  std::vector<std::int64_t> rounds(times.size(), entry.value(paired ? "round" : "repetition_index", std::int64_t{0}));
  if (several) std::iota(rounds.begin(), rounds.end(), 0), rounds = entry.value("rounds", rounds);
  if (times.empty() || cpu_times.size() != times.size() || rounds.size() != times.size())
    throw Wrong{name + " has no real_times, or not as many cpu_times or rounds"};
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!(times[i] > 0) || !std::isfinite(times[i])) throw Wrong{fmt::format("{} has the time {}", name, times[i])};
    if (std::ranges::find(row.rounds, rounds[i]) != row.rounds.end())
      throw Wrong{fmt::format("{} has {} {} twice", name, paired ? "round" : "pass", rounds[i])};
    row.rounds.push_back(rounds[i]);
    row.seconds.push_back(unit * times[i]);
    if (cpu_times[i] > 0) row.cpu_seconds.push_back(unit * cpu_times[i]);
  }
}

void add_ledger(RunFile& file, const Json& ledger) {
  const auto add = [&](const std::string& layers, const std::string& pass, const Json& samples) {
    Json key = ledger.at("key");
    key["part"] = pass;
    if (!layers.empty()) key["layer"] = layers;
    const std::string name = row_name(key);
    RunRow& row = file.rows[name];
    row.key = std::move(key);
    row.rerun = ledger.value("rerun", std::string());
    row.seconds = samples.get<std::vector<double>>();
    // A call whose median time is 0 is shorter than a tick of the device's clock. It has no ratio.
    const auto zeros = std::count_if(row.seconds.begin(), row.seconds.end(), [](double each) { return !(each > 0); });
    if (2 * static_cast<std::size_t>(zeros) >= row.seconds.size()) file.rows.erase(name);
  };
  add("", "forward", ledger.at("forward_samples"));
  if (ledger.contains("backward_samples")) add("", "backward", ledger.at("backward_samples"));  // absent in inference
  for (const Json& call : ledger.at("calls")) add(call.at("layers"), call.at("pass"), call.at("samples"));
}

/// Passes the file's document to `take`. Throws FileError, which says what is wrong with the file and what to do.
template <class Take>
void read_document(const std::filesystem::path& path, const Take& take) {
  std::ifstream stream(path);
  if (!stream) throw FileError(fmt::format("cannot read {}: there is no such file, or no permission", path.string()));
  const auto refused = [&](const std::string& what) { return FileError(path.string() + " " + what); };
  const auto damaged = [&](const std::string& what) { return refused(what + "; measure again, into a new file"); };
  try {
    Json document = Json::parse(stream, not_too_deep);
    if (!document.is_object() || !document.contains("context") || !document["context"].is_object() ||
        (!document.contains("benchmarks") && !document.contains("ledgers")))
      throw refused(
          "holds no rows of lamina_bench: it has no \"context\" with \"benchmarks\" or \"ledgers\"; give a file of "
          "--benchmark_out");
    if (const int format = document["context"].value("lamina_format", result_format); format > result_format)
      throw refused(fmt::format("has format {}, and this lamina_bench reads up to {}; use a newer lamina_bench", format,
                                result_format));
    take(std::move(document));
  } catch (const nlohmann::json::parse_error& error) {
    throw damaged(fmt::format("is damaged, or not JSON: at byte {}", error.byte));
  } catch (const nlohmann::json::exception& error) {
    throw damaged(fmt::format("is damaged, or of another program: {}", error.what()));
  } catch (const Wrong& error) {
    throw damaged("is damaged, or of another program: " + error.what);
  }
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
  RunFile file{path, {}, {}};
  read_document(path, [&](Json document) {
    file.context = document["context"];
    if (file.context.contains("variants"))
      throw FileError(path.string() + " holds variants that took turns; compare them by lamina_bench compare --paired");
    for (const Json& entry : document.value("benchmarks", Json::array())) add_entry(file.rows, entry, false);
    for (const Json& ledger : document.value("ledgers", Json::array())) add_ledger(file, ledger);
  });
  if (file.rows.empty() && !may_be_empty)
    throw FileError(fmt::format(
        "{} has no row with the times of single passes. compare needs a file of `run`, `sweep` or `ledger` that has "
        "them; aggregates such as medians are not enough",
        path.string()));
  return file;
}

PairedFile read_paired_file(const std::filesystem::path& path) {
  PairedFile file;
  read_document(path, [&](Json document) {
    for (const Json& variant : document["context"].value("variants", Json::array()))
      file.variants.push_back({variant.at("variant").get<std::string>(), {}});
    if (file.variants.size() < 2)
      throw FileError(fmt::format(
          "{} has {} variants in context.variants, and --paired needs two that took turns; compare separate "
          "files by lamina_bench compare A B",
          path.string(), file.variants.size()));
    for (const Json& entry : document.value("benchmarks", Json::array())) {
      const std::string name = entry.at("variant").get<std::string>();
      const auto variant = std::ranges::find(file.variants, name, &Variant::name);
      if (variant == file.variants.end()) throw Wrong{"context.variants lacks the variant " + name};
      add_entry(variant->rows, entry, true);
    }
    file.document = std::move(document);
  });
  return file;
}

std::vector<RunFile> read_processes(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {read_run_file(path)};
  std::vector<RunFile> all;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".json") all.push_back(read_run_file(entry.path()));
  if (all.empty())
    throw FileError(fmt::format("{} holds no file *.json; put the file of each process there", path.string()));
  std::ranges::sort(all, {}, [](const RunFile& file) { return std::pair(file.fact("time_start"), file.path); });
  return all;
}

}  // namespace lamina::bench
