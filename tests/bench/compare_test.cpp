// Verdicts on two sets of results: on the noise of real passes, and on files that cannot be compared.

#include "bench/compare/comparison.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/compare/compare.h"
#include "lamina/error.h"
#include "tests/bench/ended.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;
using lamina::test::Folder;
using nlohmann::json;

namespace {

/// What real passes took over the median of their nine: two quiet processor cores.
const std::vector<double>& noise() {
  static const std::vector<double> all = [] {
    std::vector<double> found;
    const json kept = test::read(LAMINA_RESULTS "/epyc_2_cores.json");
    for (const json& race : kept["races"])
      for (const json& row : race["rows"]) {
        if (row["key"]["backend"] != "eigen") continue;
        const auto ms = row["ms"].get<std::vector<double>>();
        for (const double each : ms) found.push_back(each / median_interval(ms).middle);
      }
    return found;
  }();
  return all;
}

constexpr int passes = 9;

/// A machine whose passes differ as real ones do, and whose processes differ once more as much as the medians of their
/// passes. Where it `stalls`, it runs at half its speed for some processes in a row, now and then, as a virtual machine
/// was seen to do.
class Machine {
 public:
  explicit Machine(unsigned seed, bool stalls = false) : engine_(seed), stalls_(stalls) {}

  /// A process: four networks, of which resnet18 takes so many times as long.
  RunFile networks(double resnet18 = 1) {
    const double process = next_process();
    RunFile file{"run.json", {}, {}};
    for (const char* network : {"alexnet", "resnet18", "resnet50", "vgg16"}) {
      const double seconds = process * (std::string(network) == "resnet18" ? 0.4 * resnet18 : 0.3);
      file.rows[std::string("net/") + network] = row(nlohmann::ordered_json::object(), seconds);
    }
    return file;
  }

  /// A ledger of five layers with two calls each, of which one forward takes so many times as long.
  RunFile ledger(double slow_layer = 1) {
    const double process = next_process();
    RunFile file{"ledger.json", {}, {}};
    const auto add = [&](const std::string& layer, const std::string& part, double seconds) {
      nlohmann::ordered_json key = {{"what", "ledger"}, {"network", "resnet18"}, {"part", part}, {"backend", "eigen"},
                                    {"type", "f32"},    {"layout", "nchw"},      {"batch", 16}};
      if (!layer.empty()) key["layer"] = layer;
      file.rows["ledger/" + layer + "/" + part] = row(key, process * seconds);
    };
    for (int i = 0; i < 5; ++i) {
      const std::string layer = "conv" + std::to_string(i);
      add(layer, "forward", 0.01 * (i == 3 ? slow_layer : 1));
      add(layer, "backward_params", 0.02);
    }
    add("", "forward", 0.05 + 0.01 * (slow_layer - 1));
    add("", "backward", 0.1);
    return file;
  }

 private:
  double any() { return noise()[std::uniform_int_distribution<std::size_t>(0, noise().size() - 1)(engine_)]; }

  double next_process() {
    // One process in ten begins such a time, and it lasts for two on average.
    if (stalls_) stalled_ = std::bernoulli_distribution(stalled_ ? 0.5 : 0.1)(engine_);
    std::vector<double> as_passes(passes);
    for (double& each : as_passes) each = any();
    return median_interval(as_passes).middle * (stalled_ ? 2.1 : 1);
  }

  RunRow row(const nlohmann::ordered_json& key, double seconds) {
    RunRow row;
    row.key = key;
    for (int i = 0; i < passes; ++i) row.seconds.push_back(seconds * any());
    return row;
  }

  std::mt19937 engine_;
  bool stalls_, stalled_ = false;
};

struct Sides {
  Processes first, second;
};

/// So many processes of each side, in turns: A B, B A, ...
template <class First, class Second>
Sides in_turns(std::size_t count, First&& first, Second&& second) {
  Sides sides;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 2 == 0) sides.first.push_back(first());
    sides.second.push_back(second());
    if (i % 2 == 1) sides.first.push_back(first());
  }
  return sides;
}

Sides networks(Machine& machine, std::size_t count, double resnet18 = 1) {
  return in_turns(
      count, [&] { return machine.networks(); }, [&] { return machine.networks(resnet18); });
}

const ComparedRow& row_of(const Comparison& comparison, const std::string& name) {
  for (const ComparedRow& row : comparison.rows)
    if (row.name == name) return row;
  throw std::runtime_error("no row " + name);
}

Comparison compare(const Sides& sides, const CompareRules& rules = {}) {
  return bench::compare(sides.first, sides.second, rules);
}

/// The processes that the tool asks for: first of one process each, then of as many. Of more than 1000 it says that the
/// machine cannot.
std::size_t asked(const std::function<Sides(std::size_t)>& run, const CompareRules& rules = {}) {
  const std::size_t few = compare(run(1), rules).processes_wanted();
  std::size_t most = few;
  for (const ComparedRow& row : compare(run(few), rules).rows) most = std::max(most, row.processes_wanted);
  return std::min<std::size_t>(most, 1000);
}

constexpr int comparisons = 100;

}  // namespace

TEST_CASE("of 100 comparisons of the program with itself at least 95 find no row slower or faster") {
  const bool stalls = GENERATE(false, true);
  const std::size_t count = GENERATE(8, 30);
  CAPTURE(stalls, count);
  Machine machine(211, stalls);
  int quiet = 0, beyond = 0;
  for (int i = 0; i < comparisons; ++i) {
    const Comparison found = compare(networks(machine, count));
    quiet += found.count(Verdict::slower) + found.count(Verdict::faster) == 0 ? 1 : 0;
    beyond += found.failed(0.03).empty() ? 0 : 1;
  }
  CHECK(quiet >= 95);
  CHECK(beyond == 0);
}

TEST_CASE("a slowdown of 2 % in one network is found in 95 of 100, at the processes that the tool asks for") {
  const bool stalls = GENERATE(false, true);
  CAPTURE(stalls);
  Machine machine(212, stalls);
  int found = 0;
  for (int i = 0; i < comparisons; ++i) {
    const auto run = [&](std::size_t count) { return networks(machine, count, 1.02); };
    found += row_of(compare(run(asked(run))), "net/resnet18").verdict == Verdict::slower ? 1 : 0;
  }
  CHECK(found >= 95);
}

TEST_CASE("a slowdown of 5 % in one layer is named in 95 of 100, in its row and in the whole pass") {
  Machine machine(213);
  const CompareRules rules{.smallest = 0.05};
  const auto ledgers = [&](std::size_t count, double slow) {
    return in_turns(
        count, [&] { return machine.ledger(); }, [&] { return machine.ledger(slow); });
  };
  int found = 0, others = 0;
  for (int i = 0; i < comparisons; ++i) {
    const auto run = [&](std::size_t count) { return ledgers(count, 1.05); };
    const Comparison all = compare(run(asked(run, rules)), rules);
    const int slow = row_of(all, "ledger/conv3/forward").verdict == Verdict::slower ? 1 : 0;
    found += slow;
    others += static_cast<int>(all.count(Verdict::slower) + all.count(Verdict::faster)) - slow;
  }
  CHECK(found >= 95);
  CHECK(others <= 5);
  const Comparison far = compare(ledgers(20, 3));
  CHECK(row_of(far, "ledger//forward").verdict == Verdict::slower);
  CHECK_THAT(row_of(far, "ledger//forward").reason, ContainsSubstring("conv3 forward"));
  CHECK_THAT(row_of(far, "ledger//forward").reason, !ContainsSubstring("conv2"));
}

TEST_CASE("one process of each side decides nothing, however far apart they are, and the number needed is named") {
  Machine machine(214);
  Sides sides = networks(machine, 1, 3);
  const Comparison one = compare(sides);
  CHECK(one.count(Verdict::undecided) == 4);
  CHECK(one.failed(0.03).empty());
  const std::size_t wanted = one.processes_wanted();
  CHECK(wanted >= 6);
  CHECK_THAT(one.rows[0].reason, ContainsSubstring(std::to_string(wanted - 1) + " more needed"));
  sides = networks(machine, wanted, 3);
  CHECK(row_of(compare(sides), "net/resnet18").verdict == Verdict::slower);
  CHECK(compare(sides).failed(0.03).size() == 1);
  sides.second.pop_back();
  CHECK(row_of(compare(sides), "net/resnet18").verdict == Verdict::undecided);
}

TEST_CASE("processes with the same times are equal, and processor time can take the place of duration") {
  const auto file = [](double seconds, double cpu_seconds) {
    RunFile one{"a.json", {}, {}};
    RunRow& row = one.rows["net/a"];
    row.key = {{"what", "net"}, {"network", "a"}};
    row.seconds = {seconds, seconds};
    if (cpu_seconds > 0) row.cpu_seconds = {cpu_seconds, cpu_seconds};
    return one;
  };
  Sides sides;
  for (int i = 0; i < 10; ++i) {
    sides.first.push_back(file(1 + 1e-3 * i, 2 + 1e-3 * i));
    sides.second.push_back(file(1 + 1e-3 * i, 3 + 1e-3 * i));
  }
  CHECK(compare(sides).rows[0].verdict == Verdict::equal);
  CHECK(compare(sides, {.cpu_time = true}).rows[0].verdict == Verdict::slower);
  sides.second[3] = file(1, 0);
  CHECK_THROWS_AS(compare(sides, {.cpu_time = true}), UsageError);
}

TEST_CASE("a process that other programs disturbed does not count unless that is asked for") {
  Machine machine(216);
  Sides sides = networks(machine, 20, 3);
  CHECK(row_of(compare(sides), "net/resnet18").verdict == Verdict::slower);
  for (int i = 0; i < 15; ++i) sides.second[static_cast<std::size_t>(i)].rows["net/resnet18"].others_share = 0.3;
  const ComparedRow row = row_of(compare(sides), "net/resnet18");
  CHECK(row.verdict == Verdict::undecided);
  CHECK(row.processes == 5);
  CHECK_THAT(row.reason, ContainsSubstring("30 %"));
  CHECK(row_of(compare(sides, {.any_load = true}), "net/resnet18").verdict == Verdict::slower);
}

TEST_CASE("rows that fail or are missing in the second side fail a gate, and those of the first alone do not") {
  Machine machine(215);
  Sides sides = networks(machine, 1);
  RunFile& second = sides.second[0];
  second.rows["net/alexnet"].seconds.clear();
  second.rows["net/alexnet"].failure = "OutOfMemory: too much";
  second.rows.erase("net/vgg16");
  second.rows["net/new"] = second.rows["net/resnet50"];
  const Comparison found = compare(sides);
  CHECK(row_of(found, "net/alexnet").verdict == Verdict::fails);
  CHECK_THAT(row_of(found, "net/alexnet").reason, ContainsSubstring("OutOfMemory"));
  CHECK(row_of(found, "net/vgg16").verdict == Verdict::missing);
  CHECK(row_of(found, "net/new").verdict == Verdict::missing);
  CHECK(found.failed(0.03).size() == 2);
}

TEST_CASE("files without a common row, of another machine, of a newer format, damaged or foreign are refused by name") {
  const Folder folder;
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder.file(name)) << text;
    return folder.file(name);
  };
  const json row = {{"name", "net/a"},  {"run_type", "iteration"}, {"repetition_index", 0},
                    {"real_time", 1.0}, {"time_unit", "ms"},       {"key", {{"what", "net"}}}};
  json good = {{"context", {{"lamina_format", 1}, {"processor", "X"}}}, {"benchmarks", {row}}};
  const std::string a = write("a.json", good.dump());
  const auto refused = [&](const std::string& other, int status, const std::string& why) {
    const test::Ended ended = test::run_bench("compare " + a + " " + other);
    CAPTURE(other, ended.said);
    CHECK(ended.status == status);
    CHECK_THAT(ended.said, ContainsSubstring(why));
  };
  refused(folder.file("none.json"), 1, "none.json");
  refused(write("damaged.json", good.dump().substr(0, 50)), 1, "damaged.json is damaged");
  refused(write("foreign.json", R"({"results": []})"), 1, "foreign.json holds no rows");
  refused(write("list.json", "[1, 2]"), 1, "list.json holds no rows");
  json other = good;
  other["context"]["lamina_format"] = 2;
  refused(write("newer.json", other.dump()), 1, "newer.json has format 2");
  other = good;
  other["benchmarks"][0].erase("real_time");
  refused(write("untimed.json", other.dump()), 1, "real_time");
  other = good;
  other["benchmarks"] = json::array();
  refused(write("empty.json", other.dump()), 1, "holds no row");
  other = good;
  other["context"]["processor"] = "Y";
  const std::string elsewhere = write("elsewhere.json", other.dump());
  refused(elsewhere, 2, "processor: X and Y");
  other = good;
  other["benchmarks"][0]["name"] = "net/b";
  refused(write("others.json", other.dump()), 2, "no row in common");
  CHECK(test::run_bench("compare " + a + " " + elsewhere + " --other_machine").status == 0);
  CHECK(test::run_bench("compare " + a + " " + a + " --fail-if-slower=3").status == 2);
}

TEST_CASE("the program compares folders of files that it wrote, and its gate has a status of its own") {
  const Folder folder;
  const std::string one = folder.file("one.json"), before = folder.file("before"), after = folder.file("after"),
                    out = folder.file("compared.json");
  REQUIRE(
      test::run_bench("--backend=eigen --batch=2 --passes=9 --benchmark_filter=net/mnist_mlp/ --benchmark_out=" + one)
          .status == 0);
  const json measured = test::read(one);
  const auto write = [&](const std::string& side, const std::string& name, double factor) {
    std::filesystem::create_directories(side);
    json process = measured;
    for (json& entry : process["benchmarks"]) entry["real_time"] = factor * entry["real_time"].get<double>();
    std::ofstream(side + "/" + name) << process;
  };
  for (int i = 0; i < 12; ++i) {
    write(before, std::to_string(i) + ".json", 1 + 1e-3 * i);
    write(after, std::to_string(i) + ".json", 2 + 1e-3 * i);
  }
  write(after, "notes.txt", 1);  // no file of results
  const std::string gated = " --any_load --fail-if-slower=3%";
  const test::Ended gate = test::run_bench("compare " + before + " " + after + gated + " --benchmark_out=" + out);
  CAPTURE(gate.said);
  CHECK(gate.status == slower_status);
  CHECK(test::run_bench("compare " + before + " " + before + gated).status == 0);
  CHECK(test::run_bench("compare " + before + " " + after + " --any_load").status == 0);
  const test::Ended single = test::run_bench("compare " + one + " " + after + "/3.json" + gated);
  CHECK(single.status == 0);
  CHECK_THAT(single.said, ContainsSubstring("more needed"));
  const json written = test::read(out);
  CHECK(written["comparisons"].size() == 4);
  for (const json& row : written["comparisons"]) {
    CHECK(row["key"]["network"] == "mnist_mlp");
    CHECK(row["low"] <= row["ratio"]);
    CHECK(row["ratio"] <= row["high"]);
    CHECK(row["first_processes"] == 12);
    CHECK(row["processes"] == 12);
  }

  json other = measured;
  other["context"]["commit"] = "another";
  std::ofstream(after + "/12.json") << other;
  const test::Ended mixed = test::run_bench("compare " + before + " " + after);
  CHECK(mixed.status == 2);
  CHECK_THAT(mixed.said, ContainsSubstring("12.json") && ContainsSubstring("another"));
  std::ofstream(after + "/12.json") << measured.dump().substr(0, 100);
  const test::Ended damaged = test::run_bench("compare " + before + " " + after);
  CHECK(damaged.status == 1);
  CHECK_THAT(damaged.said, ContainsSubstring("12.json is damaged"));
  std::filesystem::create_directories(folder.file("empty"));
  CHECK(test::run_bench("compare " + before + " " + folder.file("empty")).status == 1);
}

TEST_CASE("ledgers are compared call by call") {
  const Folder folder;
  const std::string a = folder.file("a.json");
  REQUIRE(test::run_bench("ledger mnist_mlp --backend=eigen --batch=2 --passes=5 --benchmark_out=" + a).status == 0);
  const RunFile file = read_run_file(a);
  const json written = test::read(a)["ledgers"][0];
  CHECK(file.rows.size() == written["calls"].size() + 2);
  for (const auto& [name, row] : file.rows) CHECK(row.seconds.size() == 5);
  CHECK(file.rows.contains("ledger/mnist_mlp/forward/eigen/f32/nchw/batch:2"));
  CHECK(test::run_bench("compare " + a + " " + a).status == 0);
}
