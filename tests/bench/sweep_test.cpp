// Sweeps of lamina_bench: complete files, and files that a second run completes.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "bench/compare/run_file.h"
#include "ended.h"

using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

std::string sweep_of(const std::string& out, const std::string& more = "--memory_limit=24MiB") {
  return "sweep mnist_mlp --backend=eigen --passes=2 --thread_counts=1,2 --benchmark_out=" + out + " " + more;
}

}  // namespace

TEST_CASE("a sweep predicts the largest batch and runs it, and a stopped sweep goes on where it stopped") {
  const Folder folder;
  const std::string out = folder.file("sweep.json");
  const std::string said = said_by(sweep_of(out));
  const json whole = read(out);
  std::set<int> batches, refused;
  std::set<std::string> threads, names;
  for (const json& row : whole["benchmarks"]) {
    CHECK(row["key"]["what"] == "net");
    names.insert(row["name"]);
    if (row["key"].contains("differs") && row["key"]["differs"].contains("threads"))
      threads.insert(row["key"]["differs"]["threads"]);
    else
      (row.contains("error_occurred") ? refused : batches).insert(row["key"]["batch"].get<int>());
    if (row.contains("error_occurred")) {
      CHECK(row["failure"] == "out_of_memory");
      continue;
    }
    CHECK(row["real_times"].size() == 2);
    CHECK(row["cpu_times"].size() == 2);
    const auto times = row["real_times"].get<std::vector<double>>();
    const double own = row["real_time"];  // the pass whose rates are in the entry
    CHECK(std::min(std::abs(times[0] - own), std::abs(times[1] - own)) <= 1e-6);
    CHECK(row["images_per_second"].get<double>() == Approx(1e3 * row["key"]["batch"].get<int>() / own));
  }
  CHECK(threads == std::set<std::string>{"1", "2"});
  std::map<std::string, json> answers;
  for (const json& answer : whole["answers"]) answers[answer["what"]] = answer;
  CHECK(answers.size() == 4);
  const int largest = answers.at("largest_batch")["value"];
  CHECK(*batches.rbegin() == largest);
  CHECK(refused == std::set<int>{largest + 1});
  for (const int batch : {1, 2, 4, 8, 15, 16, 17}) CHECK(batches.contains(batch));
  CHECK_THAT(said, ContainsSubstring(std::to_string(largest + 1) + " was out of memory"));

  // The file after an interrupt: the rows of the last points are missing.
  json part = whole;
  part.erase("answers");
  const std::size_t kept = whole["benchmarks"].size() / 2 / 3 * 3;  // complete points, each of three rows
  part["benchmarks"].erase(part["benchmarks"].begin() + static_cast<std::ptrdiff_t>(kept), part["benchmarks"].end());
  std::ofstream(out) << part;
  said_by(sweep_of(out));
  const json again = read(out);
  REQUIRE(again["benchmarks"].size() == whole["benchmarks"].size());
  for (std::size_t i = 0; i < kept; ++i) CHECK(again["benchmarks"][i] == whole["benchmarks"][i]);
  std::set<std::string> names_again;
  for (const json& row : again["benchmarks"]) names_again.insert(row["name"]);
  CHECK(names_again == names);
  CHECK(again["answers"].size() == 4);
  const auto known = lamina::bench::read_run_file(out).rows;
  const auto passes = [&](const json& row) { return known.at(row["name"]).seconds.size(); };
  for (const json& row : again["benchmarks"]) CHECK(passes(row) == (row.contains("error_occurred") ? 0 : 2));

  const auto is_another = [&](const std::string& more, const std::string& why) {
    said_by(sweep_of(out, more), 2, "another sweep" + why);
  };
  for (const char* more : {"--memory_limit=24MiB --inference", "--memory_limit=48MiB", ""}) is_another(more, "");
  said_by("compare " + out + " " + out);

  for (const char* fact : {"build_type", "compiler_flags", "memory"}) {
    json elsewhere = whole;
    elsewhere["context"][fact] = "another";
    std::ofstream(out) << elsewhere;
    is_another("--memory_limit=24MiB", " (" + std::string(fact) + ": another");
  }
}

TEST_CASE("a sweep takes named batches and sizes") {
  std::set<std::string> names;
  const json result = results_of(
      "sweep cifar10_cnn --backend=eigen --passes=5 --width_divisor=8 --batch=2,4 "
      "--thread_counts=1 --images=32 --inference");
  for (const json& row : result["benchmarks"]) {
    names.insert(row["name"]);
    auto times = row["real_times"].get<std::vector<double>>();
    REQUIRE(times.size() == 5);
    std::sort(times.begin(), times.end());
    CHECK(row["real_time"].get<double>() == Approx(times[2]).margin(1e-6));
  }
  const std::string net = "net/cifar10_cnn/inference/eigen/f32/nchw/batch:";
  const std::string end = "/width_divisor:8";
  CHECK(names == std::set<std::string>{net + "2" + end, net + "4" + end, net + "2" + end + "/threads:1"});
}

TEST_CASE("a sweep leaves out a size that a network cannot have, says why, and ends with status 1") {
  const Folder folder;
  const std::string flags = "sweep cifar10_cnn --backend=eigen --passes=1 --width_divisor=8 --thread_counts=1 ";
  const std::string series = "cifar10_cnn on eigen, f32 nchw, image 4";
  const std::string why = "cifar10_cnn needs images of at least 10x10, not 4x4";
  for (const std::string batch : {"--batch=2 ", ""}) {
    const std::string out = folder.file("sweep" + std::to_string(batch.size()) + ".json");
    const std::string said = said_by(flags + batch + "--images=4,16 --memory_limit=2MiB --benchmark_out=" + out, 1);
    const std::size_t first = said.find(series + " cannot be planned: " + why);
    const std::size_t last = said.find(series + " was left out, as it cannot be planned: " + why);
    const std::size_t measured = said.find("[1/");
    REQUIRE(measured != std::string::npos);
    CHECK(first < measured);
    CHECK(last != std::string::npos);
    const json result = read(out);
    for (const json& row : result["benchmarks"]) CHECK(row["key"]["differs"]["image"] == "16");
    REQUIRE(result["not_planned"].size() == 1);
    json entry = result["not_planned"][0];
    CHECK_THAT(entry["reason"].get<std::string>(), ContainsSubstring(why));
    CHECK_THAT(entry["rerun"].get<std::string>(),
               ContainsSubstring("sweep cifar10_cnn ") && ContainsSubstring("--image=4 ") && ContainsSubstring(batch));
    entry.erase("reason");
    entry.erase("rerun");
    const json differs = {{"image", "4"}, {"width_divisor", "8"}};
    const json key = {{"what", "net"}, {"network", "cifar10_cnn"}, {"part", "total"},   {"backend", "eigen"},
                      {"type", "f32"}, {"layout", "nchw"},         {"differs", differs}};
    const json expected = {
        {"network", "cifar10_cnn"}, {"backend", "eigen"}, {"series", series}, {"failure", "failed"}, {"key", key}};
    CHECK(entry == expected);
  }
}
