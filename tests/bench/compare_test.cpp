// Verdicts on two files of results: on the noise of real passes, and on files that cannot be compared.

#include "compare/comparison.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/ended.h"
#include "compare/compare.h"
#include "lamina/error.h"
#include "support/catch.h"

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

class Machine {
 public:
  explicit Machine(unsigned seed) : engine_(seed) {}

  std::vector<double> passes(double seconds, std::size_t count) {
    std::uniform_int_distribution<std::size_t> any(0, noise().size() - 1);
    std::vector<double> all(count);
    for (double& each : all) each = seconds * noise()[any(engine_)];
    return all;
  }

  /// Four networks, of which resnet18 takes so many times as long.
  RunFile networks(std::size_t passes_each, double resnet18 = 1) {
    RunFile file{"run.json", {}, {}};
    for (const char* network : {"alexnet", "resnet18", "resnet50", "vgg16"}) {
      const double seconds = std::string(network) == "resnet18" ? 0.4 * resnet18 : 0.3;
      const nlohmann::ordered_json key = {{"what", "net"},      {"network", network}, {"part", "total"},
                                          {"backend", "eigen"}, {"type", "f32"},      {"layout", "nchw"},
                                          {"batch", 16}};
      file.rows[std::string("net/") + network] = {key, passes(seconds, passes_each)};
    }
    return file;
  }

  /// A ledger of five layers with two calls each, of which one forward takes so many times as long.
  RunFile ledger(std::size_t passes_each, double slow_layer = 1) {
    RunFile file{"ledger.json", {}, {}};
    const auto add = [&](const std::string& layer, const std::string& part, double seconds) {
      nlohmann::ordered_json key = {{"what", "ledger"}, {"network", "resnet18"}, {"part", part}, {"backend", "eigen"},
                                    {"type", "f32"},    {"layout", "nchw"},      {"batch", 16}};
      if (!layer.empty()) key["layer"] = layer;
      file.rows["ledger/" + layer + "/" + part] = {key, passes(seconds, passes_each)};
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
  std::mt19937 engine_;
};

const ComparedRow& row_of(const Comparison& comparison, const std::string& name) {
  for (const ComparedRow& row : comparison.rows)
    if (row.name == name) return row;
  throw std::runtime_error("no row " + name);
}

/// The samples that a first look of nine passes asks for.
std::size_t asked(const RunFile& first, const RunFile& second, const CompareRules& rules = {}) {
  const Comparison look = compare(first, second, rules);
  std::size_t most = 0;
  for (const ComparedRow& row : look.rows) most = std::max(most, row.samples_wanted);
  return most;
}

constexpr int comparisons = 100;

}  // namespace

TEST_CASE("of 100 comparisons of the program with itself at least 95 find no row slower or faster") {
  for (const std::size_t passes : {9, 60}) {
    CAPTURE(passes);
    Machine machine(11);
    int quiet = 0, beyond = 0;
    for (int i = 0; i < comparisons; ++i) {
      const Comparison found = compare(machine.networks(passes), machine.networks(passes), {});
      quiet += found.count(Verdict::slower) + found.count(Verdict::faster) == 0 ? 1 : 0;
      beyond += found.failed(0.03).empty() ? 0 : 1;
    }
    CHECK(quiet >= 95);
    CHECK(beyond == 0);
  }
}

TEST_CASE("a slowdown of 2 % in one network is found in 95 of 100, at the passes that the tool asks for") {
  Machine machine(12);
  int found = 0;
  for (int i = 0; i < comparisons; ++i) {
    const std::size_t passes = asked(machine.networks(9), machine.networks(9, 1.02));
    const Comparison all = compare(machine.networks(passes), machine.networks(passes, 1.02), {});
    found += row_of(all, "net/resnet18").verdict == Verdict::slower ? 1 : 0;
  }
  CHECK(found >= 95);
}

TEST_CASE("a slowdown of 5 % in one layer is named in 95 of 100, in its row and in the whole pass") {
  Machine machine(13);
  int found = 0, others = 0;
  for (int i = 0; i < comparisons; ++i) {
    const CompareRules rules{.smallest = 0.05};
    const std::size_t passes = asked(machine.ledger(9), machine.ledger(9, 1.05), rules);
    const Comparison all = compare(machine.ledger(passes), machine.ledger(passes, 1.05), rules);
    found += row_of(all, "ledger/conv3/forward").verdict == Verdict::slower ? 1 : 0;
    others += static_cast<int>(all.count(Verdict::slower) + all.count(Verdict::faster)) -
              (row_of(all, "ledger/conv3/forward").verdict == Verdict::slower ? 1 : 0);
  }
  CHECK(found >= 95);
  CHECK(others <= 5);
  const Comparison far = compare(machine.ledger(60), machine.ledger(60, 3), {});
  CHECK(row_of(far, "ledger//forward").verdict == Verdict::slower);
  CHECK_THAT(row_of(far, "ledger//forward").reason, ContainsSubstring("conv3 forward"));
  CHECK_THAT(row_of(far, "ledger//forward").reason, !ContainsSubstring("conv2"));
}

TEST_CASE("equal passes with a narrow interval are equal, and too few cannot decide") {
  const auto file = [](std::vector<double> seconds) {
    RunFile one{"a.json", {}, {}};
    one.rows["net/a"] = {{{"what", "net"}, {"network", "a"}}, std::move(seconds)};
    return one;
  };
  const std::vector<double> nine = {1.000, 1.001, 1.002, 1.003, 1.004, 1.002, 1.003, 1.001, 1.000};
  CHECK(compare(file(nine), file(nine), {}).rows[0].verdict == Verdict::equal);
  const Comparison few = compare(file({1, 1, 1}), file({2, 2, 2}), {});
  CHECK(few.rows[0].verdict == Verdict::undecided);
  CHECK_THAT(few.rows[0].reason, ContainsSubstring("3 and 3 samples"));
  CHECK(few.samples_wanted() >= 4);
}

TEST_CASE("a row that other programs disturbed decides nothing unless that is asked for") {
  Machine machine(16);
  RunFile first = machine.networks(60), second = machine.networks(60, 3);
  CHECK(row_of(compare(first, second, {}), "net/resnet18").verdict == Verdict::slower);
  second.rows["net/resnet18"].others_share = 0.3;
  const ComparedRow row = row_of(compare(first, second, {}), "net/resnet18");
  CHECK(row.verdict == Verdict::undecided);
  CHECK_THAT(row.reason, ContainsSubstring("30 %"));
  CHECK(row_of(compare(first, second, {.any_load = true}), "net/resnet18").verdict == Verdict::slower);
}

TEST_CASE("a run whose second half is slower than its first decides nothing, and is named") {
  Machine machine(14);
  RunFile first = machine.networks(60), second = machine.networks(60, 1.5);
  std::vector<double>& seconds = second.rows["net/resnet18"].seconds;
  for (std::size_t i = 30; i < 60; ++i) seconds[i] *= 1.4;
  const Comparison found = compare(first, second, {});
  CHECK(row_of(found, "net/resnet18").verdict == Verdict::undecided);
  CHECK_THAT(row_of(found, "net/resnet18").reason, ContainsSubstring("second run drifts"));
}

TEST_CASE("rows that fail or are missing in the second file fail a gate, and those of the first alone do not") {
  Machine machine(15);
  RunFile first = machine.networks(9), second = machine.networks(9);
  second.rows["net/alexnet"].seconds.clear();
  second.rows["net/alexnet"].failure = "OutOfMemory: too much";
  second.rows.erase("net/vgg16");
  second.rows["net/new"] = second.rows["net/resnet50"];
  const Comparison found = compare(first, second, {});
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

TEST_CASE("the program compares the files that it wrote, and its gate has a status of its own") {
  const Folder folder;
  const std::string a = folder.file("a.json"), b = folder.file("b.json"), slow = folder.file("slow.json");
  REQUIRE(test::run_bench("--backend=eigen --batch=2 --passes=9 --benchmark_filter=net/mnist_mlp/ --benchmark_out=" + a)
              .status == 0);
  json twice = test::read(a);
  for (json& entry : twice["benchmarks"]) entry["real_time"] = 40 * entry["real_time"].get<double>();
  std::ofstream(slow) << twice;
  const test::Ended same = test::run_bench("compare " + a + " " + a + " --fail-if-slower=3%");
  CAPTURE(same.said);
  CHECK(same.status == 0);
  CHECK_THAT(same.said, !ContainsSubstring(" slower  "));
  const std::string compare_slow = "compare " + a + " " + slow + " --any_load --fail-if-slower=3%";
  const test::Ended gate = test::run_bench(compare_slow + " --benchmark_out=" + b);
  CAPTURE(gate.said);
  CHECK(gate.status == slower_status);
  CHECK(test::run_bench("compare " + a + " " + slow).status == 0);
  const json written = test::read(b);
  CHECK(written["comparisons"].size() == 4);
  for (const json& row : written["comparisons"]) {
    CHECK(row["key"]["network"] == "mnist_mlp");
    CHECK(row["low"] <= row["ratio"]);
    CHECK(row["ratio"] <= row["high"]);
    CHECK(row["first_samples"] == 9);
  }
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
