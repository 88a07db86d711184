// The same rows by several variants, in turns.

#include "variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include "io/grid.h"
#include "io/interrupt.h"
#include "io/result_file.h"
#include "lamina/error.h"
#include "process.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Flags of the parent alone; those with a value may have it behind "=" or as the next word.
constexpr std::array own_flags = {
    "--cudnn", "--programs", "--rounds", "--benchmark_out", "--benchmark_out_format", "--benchmark_format"};

/// cuDNN 8 opens its parts by bare names, which only the loader's path leads to the right ones.
std::map<std::string, std::string> environment_for(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "libcudnn.so.8")) return {};
  std::string path = folder.string();
  for (const char* companion : {"../../cublas/lib", "../../cuda_nvrtc/lib"})
    if (std::filesystem::exists(folder / companion)) path += ":" + (folder / companion).lexically_normal().string();
  if (const char* before = std::getenv("LD_LIBRARY_PATH"); before != nullptr && *before != '\0')
    path += std::string(":") + before;
  return {{"LD_LIBRARY_PATH", path}};
}

/// A file that is gone with its owner; empty at first.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::string name = (std::filesystem::temp_directory_path() / "lamina_bench_XXXXXX").string();
    const int file = ::mkstemp(name.data());
    if (file < 0)
      throw FileError(fmt::format("cannot make {}: {}; make room or set TMPDIR", name, std::strerror(errno)));
    ::close(file);
    path_ = name;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;  // two owners would both remove it
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// What all processes of one variant left.
struct Collected {
  Variant variant;
  Json context;
  Observations rows;
  std::vector<std::string> crashes;
};

/// Runs one process. Its rows go to `document` and to `collected`.
void run_round(Collected& collected, std::size_t round, std::size_t rounds, const std::vector<std::string>& shared,
               Json& document) {
  const TemporaryFile file;
  std::vector<std::string> arguments = shared;
  arguments.insert(arguments.end(), collected.variant.flags.begin(), collected.variant.flags.end());
  arguments.push_back("--benchmark_out=" + file.path().string());
  const Ended ended = run_process(collected.variant.program, arguments, collected.variant.environment);
  const bool early = document["benchmarks"].empty();  // when nothing is lost by saying so and ending
  if (ended.status == 2 && early)
    throw UsageError(
        fmt::format("{} does not take these flags: {}", collected.variant.label, fmt::join(arguments, " ")));
  std::ifstream stream(file.path());
  const Json result = Json::parse(stream, nullptr, false);
  const bool rows = result.is_object() && result.contains("benchmarks");
  const bool whole = rows && ended.status < 2;  // 1: some rows failed, which they say themselves
  if (!whole && interrupted() == 0)
    collected.crashes.push_back(
        fmt::format("round {}: {}; {}{}", round + 1, rows ? "not all rows" : "no rows", ended.description,
                    ended.status == 2 ? ", wrong use of it in its own words, which it has printed" : ""));
  if (!rows) return;
  if (collected.context.is_null()) collected.context = result["context"];
  for (const auto& [name, seen] : observations(result)) {
    collected.rows[name].resize(rounds);
    collected.rows[name][round] = seen;
  }
  for (Json run : result["benchmarks"]) {
    run["variant"] = collected.variant.label;
    run["round"] = round;
    document["benchmarks"].push_back(std::move(run));
  }
}

/// Before the first one has run for long.
void check_runs(const Variant& variant) {
  if (::access(variant.program.c_str(), X_OK) != 0)
    throw UsageError(fmt::format("cannot run {}: {}", variant.program, std::strerror(errno)));
}

bool has_time(const Difference& d) { return d.seconds > 0; }

std::string milliseconds(double seconds) { return seconds > 0 ? fmt::format("{:.3f}", 1e3 * seconds) : ""; }

/// Networks and set-up always, layers where they differ: a thousand equal ones hide the one that is not.
std::string table(const std::vector<Difference>& differences) {
  Grid grid;
  grid.columns = {{"row"},     {"first ms", true}, {"ms", true}, {"ratio", true}, {"99 % interval", true},
                  {"verdict"}, {"regression"},     {"evidence"}};
  for (const Difference& d : differences) {
    const bool layer = d.row.starts_with("layer/");
    if (layer && (d.verdict == Verdict::equal || d.verdict == Verdict::fails_in_both) && d.label.empty()) continue;
    const bool timed = d.seconds > 0;
    grid.rows.push_back({d.row, milliseconds(d.first_seconds), milliseconds(d.seconds),
                         timed ? fmt::format("{:.3f}", d.ratio) : "",
                         timed ? fmt::format("{:.3f} to {:.3f}", d.low, d.high) : "", std::string(to_string(d.verdict)),
                         d.label, d.evidence});
  }
  return grid.text();
}

std::string counts(const std::vector<Difference>& differences) {
  std::map<Verdict, int> count;
  for (const Difference& d : differences) ++count[d.verdict];
  std::vector<std::string> texts;
  for (const auto& [verdict, n] : count) texts.push_back(fmt::format("{} {}", n, to_string(verdict)));
  return fmt::format("{} rows: {}", differences.size(), fmt::join(texts, ", "));
}

Json as_json(const std::string& first, const std::string& other, const Difference& d) {
  return {{"name", d.row},
          {"variant", other},
          {"against", first},
          {"verdict", to_string(d.verdict)},
          {"ratio", d.ratio},
          {"low", d.low},
          {"high", d.high},
          {"confidence", confidence},
          {"seconds", d.seconds},
          {"first_seconds", d.first_seconds},
          {"memory_MiB", d.memory_MiB},
          {"first_memory_MiB", d.first_memory_MiB},
          {"algorithm", d.algorithm},
          {"first_algorithm", d.first_algorithm},
          {"regression", d.label},
          {"evidence", d.evidence}};
}

}  // namespace

std::vector<Variant> variants_of(const BenchOptions& options) {
  std::vector<Variant> variants;
  const std::string own = own_program().string();
  for (const std::string& folder : options.cudnn) {
    Variant variant{folder, own, {"--cudnn=" + folder}, environment_for(folder)};
    if (options.backends.empty()) variant.flags.emplace_back("--backend=cudnn");
    variants.push_back(std::move(variant));
  }
  if (variants.size() < 2) variants.clear();
  for (const std::string& program : options.programs) variants.push_back({program, program, {}});
  std::set<std::string> labels;
  for (std::size_t i = 0; i < variants.size(); ++i)  // a variant against itself: what noise looks like
    if (!labels.insert(variants[i].label).second) variants[i].label += fmt::format(" ({})", i + 1);
  return variants;
}

std::vector<std::string> child_arguments(const std::vector<std::string>& ours) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const std::string flag = ours[i].substr(0, ours[i].find('='));
    if (std::find(own_flags.begin(), own_flags.end(), flag) == own_flags.end()) {
      kept.push_back(ours[i]);
    } else if (flag == ours[i]) {
      ++i;
    }
  }
  return kept;
}

std::map<std::string, Observation> observations(const nlohmann::json& result) {
  std::map<std::string, Observation> found;
  for (const auto& run : result.at("benchmarks")) {
    if (run.value("run_type", std::string()) != "iteration") continue;
    const std::string name = run.at("name");
    Observation& seen = found[name];
    if (run.value("error_occurred", false) || run.value("skipped", false)) {
      seen.failure = run.value("error_message", run.value("skip_message", std::string("failed")));
      continue;
    }
    // A first call is the first one: by the next, libraries are open and their parts are loaded.
    if (name.starts_with("setup/") && run.value("repetition_index", 0) > 0) continue;
    const std::string unit = run.value("time_unit", std::string("ns"));
    const double scale = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9;
    const double seconds = scale * run.at("real_time").get<double>();
    seen.seconds = seen.seconds > 0 ? std::min(seen.seconds, seconds) : seconds;
    seen.memory_MiB = run.value("plan_MiB", 0.0);
    seen.algorithm = run.value("algorithm", std::string());
  }
  return found;
}

int run_variants(const BenchOptions& options, const std::vector<std::string>& arguments) {
  if (!options.out.empty()) check_writable(options.out);
  std::vector<Collected> all;
  for (Variant& variant : variants_of(options)) all.push_back({std::move(variant), {}, {}, {}});
  for (const Collected& each : all) check_runs(each.variant);
  const std::vector<std::string> shared = child_arguments(arguments);
  const auto rounds = static_cast<std::size_t>(options.rounds);
  ResultFile file(options.out);
  catch_interrupts(Further::counts);
  for (std::size_t round = 0; round < rounds && interrupted() == 0; ++round)
    for (std::size_t k = 0; k < all.size() && interrupted() == 0; ++k) {
      Collected& next = all[round % 2 == 0 ? k : all.size() - 1 - k];
      fmt::print(stderr, "Round {} of {}: {}\n", round + 1, rounds, next.variant.label);
      run_round(next, round, rounds, shared, file.document);
      file.save_now_and_then();
    }

  Json variants = Json::array();
  bool crashed = false;
  for (const Collected& each : all) {
    variants.push_back({{"variant", each.variant.label}, {"context", each.context}, {"crashes", each.crashes}});
    for (const std::string& crash : each.crashes) fmt::print(stderr, "{}: {}\n", each.variant.label, crash);
    crashed = crashed || !each.crashes.empty();
  }
  file.document["context"] = {{"variants", variants}, {"rounds", rounds}, {"interrupted", interrupted() != 0}};
  file.document["comparisons"] = Json::array();
  bool compared = false;
  for (std::size_t k = 1; k < all.size(); ++k) {
    const std::vector<Difference> differences = compare(all[0].rows, all[k].rows);
    compared = compared || std::any_of(differences.begin(), differences.end(), has_time);
    fmt::print("{}\nagainst {}, the first:\n\n{}\n{}\n", all[k].variant.label, all[0].variant.label, table(differences),
               counts(differences));
    for (const Difference& d : differences)
      file.document["comparisons"].push_back(as_json(all[0].variant.label, all[k].variant.label, d));
  }
  file.save();
  if (interrupted() != 0) return 128 + interrupted();
  return compared && !crashed ? 0 : 1;
}

}  // namespace lamina::bench
