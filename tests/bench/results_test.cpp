// Files of results: they are replaced as a whole, and have the entries of ledger, frontier and memory. Traces of
// ledgers.

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/compare/run_file.h"
#include "bench/context/trace_file.h"
#include "bench/io/result_file.h"
#include "bench/tasks/ledger.h"
#include "ended.h"
#include "lamina/lamina.h"
#include "tests/support/backend.h"
#include "tests/support/csv.h"

using namespace lamina;
using namespace lamina::test;
using nlohmann::json;

namespace {

constexpr const char* narrow = " --backend=eigen --batch=2 --width_divisor=8 ";

void check_context(const json& result) {
  for (const char* key : {"processor", "commit", "backend_eigen", "load_average_start", "load_average_end",
                          "clock_MHz_start", "temperature_C_end", "date", "num_cpus", "threads", "time_end"}) {
    CAPTURE(key);
    CHECK(result["context"].contains(key));
  }
  CHECK(result["context"]["lamina_format"] == 2);
  CHECK(result["context"]["interrupted"] == false);
  CHECK(result["context"]["command"].get<std::string>().starts_with("lamina_bench "));
  CHECK(result["context"]["command"].get<std::string>().find("--width_divisor=8") != std::string::npos);
}

double sum_of(const json& list, const char* field) {
  double sum = 0;
  for (const json& each : list) sum += each[field].get<double>();
  return sum;
}

}  // namespace

TEST_CASE("a file of results has a line for each entry of each list") {
  const auto document =
      nlohmann::ordered_json::parse(R"({"context":{"b":1,"a":[1,2]},"none":[],"rows":[{"x":"l\n\"2\""},3],"y":0.5})");
  const std::string text = bench::file_text(document);
  CHECK(text ==
        "{\"context\": {\n\"b\": 1,\n\"a\": [1,2]\n},\n\"none\": [],\n"
        "\"rows\": [\n{\"x\":\"l\\n\\\"2\\\"\"},\n3\n],\n\"y\": 0.5}\n");
  CHECK(nlohmann::ordered_json::parse(text) == document);
}

TEST_CASE("a file of results is replaced, and no other file remains in its folder") {
  const Folder folder;
  const auto path = folder / "replaced.json";
  bench::replace_file(path, "old");
  bench::replace_file(path, "new");
  bench::check_writable(path);
  CHECK(contents(path) == "new");
  CHECK_THROWS_AS(bench::replace_file(folder.path(), "a folder"), FileError);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a ledger's file has every sample of every call in running order, and table and trace have the same sums") {
  const Folder folder;
  const std::string out = folder.file("ledger.json"), trace = folder.file("trace.json");
  const std::string said = said_by(std::string("ledger cifar10_cnn,mnist_mlp --passes=3 --unfused --format=csv") +
                                       narrow + "--benchmark_out=" + out + " --trace=" + trace,
                                   0, "", Outputs::standard);
  const json result = read(out);
  check_context(result);
  REQUIRE(result["ledgers"].size() == 2);
  std::map<std::string, double> sums;
  for (const json& ledger : result["ledgers"]) {
    CHECK(ledger["key"]["what"] == "ledger");
    CHECK(ledger["key"]["differs"]["width_divisor"] == "8");
    CHECK(ledger["passes"] == 3);
    CHECK(ledger["forward_samples"].size() == 3);
    REQUIRE(ledger["peak_samples"].size() == 3);
    CHECK(ledger["core_mhz_samples"].size() == 3);
    std::size_t next = 0;
    for (const json& call : ledger["calls"]) {
      CHECK(call["call"] == next++);
      CHECK(call["samples"].size() == 3);
      CHECK(call["seconds"] > 0);
      CHECK(call["predicted_seconds"] > 0);
      std::vector<double> shares;  // each pass's rate as a share of the peak measured beside the pass
      for (std::size_t pass = 0; pass < 3 && call["flops"] > 0; ++pass)
        shares.push_back(call["flops"].get<double>() / call["samples"][pass].get<double>() /
                         ledger["peak_samples"][pass].get<double>());
      std::sort(shares.begin(), shares.end());
      if (!shares.empty()) CHECK(call["share_of_peak"].get<double>() == Approx(shares[1]));
      CHECK(call["layers"].get<std::string>().starts_with(call["node"].get<std::string>()));
      CHECK(std::string("forward backward_data backward_params").find(call["pass"]) != std::string::npos);
    }
    CHECK(ledger["calls"].front()["pass"] == "forward");
    sums[ledger["key"]["network"]] = sum_of(ledger["calls"], "seconds");
  }

  std::map<std::string, double> printed;  // time by network, in ms
  double memory = 0;
  int forward = 0;
  for (const CsvRow& row : csv_rows(said)) {
    const std::string network = row.at("network");
    const double ms = std::stod(row.at("ms"));
    if (row.at("layer") == "sum") CHECK(printed[network] == Approx(ms).margin(0.025));
    if (row.at("pass").empty()) continue;
    printed[network] += ms;
    memory += std::stod(row.at("% of memory"));
    forward += network == "cifar10_cnn" && row.at("pass") == "forward" ? 1 : 0;
  }
  for (const auto& [network, seconds] : sums) CHECK(printed[network] == Approx(1e3 * seconds).margin(0.025));
  CHECK(forward == 17);
  CHECK(memory > 0);

  const json traced = read(trace);
  CHECK(traced["displayTimeUnit"] == "ms");
  CHECK(traced["otherData"].contains("processor"));
  std::map<int, std::string> processes;
  std::map<int, std::map<std::string, int>> lanes;
  std::map<int, double> measured;
  std::map<std::pair<int, int>, long long> ends;  // end of the last call in ns, by process and lane
  std::map<int, std::vector<double>> live;
  for (const json& event : traced["traceEvents"]) {
    const int process = event["pid"];
    if (event["name"] == "process_name") processes[process] = event["args"]["name"];
    if (event["name"] == "thread_name") lanes[process][event["args"]["name"]] = event["tid"];
  }
  REQUIRE(processes.size() == 2);
  for (const json& event : traced["traceEvents"]) {
    const int process = event["pid"];
    CHECK(processes.contains(process));
    const std::string kind = event["ph"];
    CHECK((kind == "X" || kind == "C" || kind == "M"));
    if (kind != "M") CHECK(event["ts"] >= 0);
    if (kind == "C") live[process].push_back(event["args"]["bytes"]);
    if (kind == "X") {
      // Times are whole nanoseconds, because programs that read traces round to nanoseconds. A call begins at the end
      // of the previous call of its lane.
      const auto ns = [&](const char* name) { return 1e3 * event[name].get<double>(); };
      for (const char* name : {"ts", "dur"}) CHECK(ns(name) == Approx(std::round(ns(name))).margin(1e-3));
      const auto end = ends.try_emplace({process, event["tid"].get<int>()}, 0).first;
      CHECK(std::llround(ns("ts")) == end->second);
      end->second += std::llround(ns("dur"));
    }
    if (kind != "X" || event["tid"] != lanes[process]["measured"]) continue;
    measured[process] += event["dur"].get<double>();
    CHECK(event["args"].contains("algorithm"));
  }
  for (const auto& [process, name] : processes) {
    CAPTURE(name);
    const std::string network = name.substr(7, name.find('/', 7) - 7);
    CHECK(1e-6 * measured[process] == Approx(sums.at(network)));
    CHECK(lanes[process].size() == 2);
    CHECK(live[process].back() == 0);
    CHECK(*std::max_element(live[process].begin(), live[process].end()) > 0);
  }

  const bench::RunFile file = bench::read_run_file(out);
  CHECK(file.rows.size() == result["ledgers"][0]["calls"].size() + result["ledgers"][1]["calls"].size() + 4);
  for (const auto& [name, row] : file.rows) CHECK(row.seconds.size() == 3);
  CHECK(file.rows.contains("ledger/mnist_mlp/forward/eigen/f32/nchw/batch:2/width_divisor:8/unfused"));
  said_by("compare " + out + " " + out);
}

TEST_CASE("a trace without known rates has no lane of predicted times") {
  bench::Ledger ledger;
  bench::LedgerEntry& entry = ledger.entries.emplace_back();
  entry.layers = "a";
  entry.seconds = 1e-3;
  bench::TraceFile trace;
  bench::add_ledger(trace, "net", ledger, {});
  for (const auto& event : trace.events()) CHECK(event.value("tid", 1) == 1);
}

TEST_CASE("a frontier's file has every algorithm that was tried, with samples or a reason for refusal") {
  const json result = results_of(std::string("frontier cifar10_cnn --passes=2") + narrow);
  check_context(result);
  const json& frontier = result["frontiers"].at(0);
  CHECK(frontier["complete"] == true);
  CHECK(frontier["lines"].size() == frontier["lines_in_all"]);
  for (const json& line : frontier["lines"]) {
    CAPTURE(line["node"], line["pass"]);
    CHECK((line["op"] == "conv" || line["op"] == "fully_connected"));
    CHECK(line["flops"] > 0);
    int picked = 0, ran = 0;
    for (const json& one : line["algorithms"]) {
      if (one.contains("failure")) {
        CHECK(one["failure"] != "");
        CHECK_FALSE(one.contains("seconds"));
        continue;
      }
      ++ran;
      CHECK_FALSE(one["samples"].empty());
      CHECK(one["low"] <= one["seconds"]);
      CHECK(one["seconds"] <= one["high"]);
      CHECK(one["error"] >= 0);
      picked += one["picked"] == true ? 1 : 0;
    }
    CHECK(ran > 0);
    CHECK(picked == 1);
  }
  CHECK(frontier["fastest"]["forward_seconds"] > 0);
}

TEST_CASE("a memory file has the printed numbers, and the arena's bytes at each step of the plan") {
  const json result = results_of(std::string("memory cifar10_cnn --memory_limit=100MiB") + narrow);
  check_context(result);
  REQUIRE(result["memories"].size() == 2);
  for (const json& one : result["memories"]) {
    CAPTURE(one["mode"]);
    CHECK(one["key"]["part"] == one["mode"]);
    CHECK(one["total"].get<std::size_t>() ==
          one["parameters"].get<std::size_t>() + one["state"].get<std::size_t>() + one["optimiser"].get<std::size_t>() +
              one["inputs"].get<std::size_t>() + one["arena"].get<std::size_t>() + one["prepared"].get<std::size_t>());
    CHECK(one["limit_bytes"] == 100 * 1024 * 1024);
    CHECK(one["largest_batch"] > 2);
    CHECK(one["largest_batch_bytes"] <= 100 * 1024 * 1024);
    std::size_t most = 0;
    for (const json& step : one["steps"]) {
      std::size_t sum = 0;
      for (const auto& [kind, bytes] : step["by_kind"].items()) sum += bytes.get<std::size_t>();
      CHECK(step["live_bytes"] == sum);
      most = std::max(most, sum);
    }
    CHECK(most > 0);
    CHECK(most <= one["arena"]);
    CHECK(one["steps"].back()["pass"] == (one["mode"] == "training" ? "backward" : "forward"));
  }
}
