// Sweeps: the answers for known times, and the program's own file, whole and gone on with.

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/sweep/answers.h"
#include "bench/sweep/time_left.h"
#include "tests/bench/ended.h"
#include "tests/support/catch.h"

using namespace lamina::bench;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

/// Nine samples within 1 % of so many seconds.
SweepPoint point(int batch, double seconds, int threads = 0) {
  SweepPoint made{batch, threads};
  for (int i = 0; i < 9; ++i) made.seconds.push_back(seconds * (1 + 0.001 * ((i * 4) % 9)));
  return made;
}

std::string sweep_of(const std::string& out, const std::string& more = "") {
  return "sweep mnist_mlp --backend=eigen --passes=2 --memory_limit=24MiB --thread_counts=1,2 --benchmark_out=" + out +
         " " + more;
}

}  // namespace

TEST_CASE("the batch from which a doubling gains less than 5 % per image is the first after which none gains more") {
  // Per image 10, 8, 7, 6.9, 6.8 ms.
  const Answer found =
      *batch_flat({point(1, 0.01), point(2, 0.016), point(4, 0.028), point(8, 0.0552), point(16, 0.1088)});
  CHECK(found.what == "batch_flat");
  CHECK(found.value == 4);
  CHECK_THAT(found.text, ContainsSubstring("from 4 to 8"));
  const Answer never = *batch_flat({point(1, 0.01), point(2, 0.016), point(4, 0.026)});
  CHECK_FALSE(never.value);
  CHECK_THAT(never.text, ContainsSubstring("Up to batch 4"));
  SweepPoint failed{8};
  failed.failure = "OutOfMemory: ";
  CHECK(batch_flat({point(1, 0.01), point(2, 0.02), failed})->value == 1);
  CHECK_FALSE(batch_flat({point(1, 0.01), failed}));
}

TEST_CASE("the best number of threads is the fastest, with those that are as good within noise") {
  const Answer found = *best_threads({point(16, 1.0, 1), point(16, 0.55, 2), point(16, 0.551, 4)});
  CHECK(found.value == 2);
  CHECK_THAT(found.text, ContainsSubstring("as good within noise: 4"));
  CHECK_THAT(found.text, ContainsSubstring("with 1 a pass takes 1.81"));
  const Answer one = *best_threads({point(16, 1.0, 1), point(16, 1.5, 2)});
  CHECK(one.value == 1);
  CHECK_THAT(one.text, ContainsSubstring("1 thread is the fastest: with 2 a pass takes 1.50"));
  CHECK_FALSE(best_threads({point(16, 1, 1)}));
}

TEST_CASE("odd batches pay where an image is cheaper beside an even batch, and do not where it is dearer") {
  CHECK_THAT(odd_batches({point(15, 15), point(16, 20), point(17, 17)}, 16)->text,
             ContainsSubstring("Odd batches pay"));
  CHECK_THAT(odd_batches({point(15, 17), point(16, 16), point(17, 19)}, 16)->text, ContainsSubstring("do not pay"));
  CHECK_THAT(odd_batches({point(15, 15), point(16, 16), point(17, 17)}, 16)->text, ContainsSubstring("no difference"));
  CHECK_FALSE(odd_batches({point(15, 15), point(16, 16)}, 16));
}

TEST_CASE("answers from points during which other programs ran say so") {
  std::vector<SweepPoint> points = {point(1, 1), point(2, 2)};
  CHECK(load_text(points).empty());
  points[1].others_share = 0.1;
  CHECK(load_text(points).empty());
  points[1].others_share = 0.42;
  CHECK_THAT(load_text(points), ContainsSubstring("42 %"));
}

TEST_CASE("the largest batch says whether it was predicted, ran, and was the last one that could") {
  LargestRun run{
      .predicted = 40, .at_least = false, .ran = true, .next_refused = true, .not_run = {}, .limit = "1 GiB"};
  CHECK_THAT(largest_batch(run).text, ContainsSubstring("it ran, and 41 was out of memory"));
  CHECK(largest_batch(run).value == 40);
  run.not_run = "a pass takes too long";
  CHECK_THAT(largest_batch(run).text, ContainsSubstring("not run: a pass takes too long"));
  run.predicted = 0;
  CHECK_FALSE(largest_batch(run).value);
}

TEST_CASE("a sweep finds the largest batch by prediction and proves it by running, and goes on where it stopped") {
  const Folder folder;
  const std::string out = folder.file("sweep.json");
  const Ended ended = run_bench(sweep_of(out));
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
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
    if (row.contains("error_occurred")) CHECK(row["failure"] == "out_of_memory");
  }
  CHECK(threads == std::set<std::string>{"1", "2"});
  std::map<std::string, json> answers;
  for (const json& answer : whole["answers"]) answers[answer["what"]] = answer;
  CHECK(answers.size() == 4);
  const int largest = answers.at("largest_batch")["value"];
  CHECK(*batches.rbegin() == largest);
  CHECK(refused == std::set<int>{largest + 1});
  for (const int batch : {1, 2, 4, 8, 15, 16, 17}) CHECK(batches.contains(batch));
  CHECK_THAT(ended.said, ContainsSubstring(std::to_string(largest + 1) + " was out of memory"));

  // As an interrupt leaves it: without the rows of the last points.
  json part = whole;
  part.erase("answers");
  const std::size_t kept = whole["benchmarks"].size() / 2 / 6 * 6;  // whole points of three rows and two passes
  part["benchmarks"].erase(part["benchmarks"].begin() + static_cast<std::ptrdiff_t>(kept), part["benchmarks"].end());
  std::ofstream(out) << part;
  REQUIRE(run_bench(sweep_of(out)).status == 0);
  const json again = read(out);
  REQUIRE(again["benchmarks"].size() == whole["benchmarks"].size());
  for (std::size_t i = 0; i < kept; ++i) CHECK(again["benchmarks"][i] == whole["benchmarks"][i]);
  std::set<std::string> names_again;
  for (const json& row : again["benchmarks"]) names_again.insert(row["name"]);
  CHECK(names_again == names);
  CHECK(again["answers"].size() == 4);

  const Ended other = run_bench(sweep_of(out, "--inference"));
  CHECK(other.status == 2);
  CHECK_THAT(other.said, ContainsSubstring("another sweep"));
  CHECK(run_bench("compare " + out + " " + out).status == 0);
}

TEST_CASE("the time left of a sweep is that of the points that are left, at the rate of those that were measured") {
  TimeLeft left;
  left.plan("batch 1", 10, 2);
  left.plan("batch 2", 20, 2);
  left.plan("batch 4", 40, 2);
  CHECK(left.seconds(20) == 0);  // nothing was measured
  left.done("batch 1", 5);
  CHECK(left.seconds(20) == Approx(30));
  CHECK(left.seconds(8) == Approx(10));  // a pass of batch 4 takes 10 s: it will be left out
  left.done("batch 1", 1000);            // known already
  left.drop("batch 2");
  CHECK(left.points_left() == 1);
  left.done("batch 4", 40);  // 45 s for 50 operations, and nothing is left
  CHECK(left.seconds(20) == 0);
}

TEST_CASE("a sweep with energy has joules of each point, or says why not") {
  const Folder folder;
  const std::string out = folder.file("sweep.json");
  const Ended ended = run_bench(
      "sweep mnist_mlp --backend=eigen --passes=2 --width_divisor=8 --batch=2,4 --thread_counts=1 --energy "
      "--benchmark_out=" +
      out);
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  CHECK_THAT(ended.said, ContainsSubstring("left"));
  const json result = read(out);
  CHECK(result["context"].contains("energy_eigen"));
  CHECK(result["context"].contains("idle_power_w_eigen"));
  int totals = 0;
  for (const json& row : result["benchmarks"]) {
    if (row["key"]["part"] != "total") continue;
    ++totals;
    CAPTURE(row.dump());
    CHECK((row.contains("joules") || row.dump().find("joules not available") != std::string::npos));
  }
  CHECK(totals == 6);
}

TEST_CASE("a sweep takes named batches, sizes and algorithms, and refuses an algorithm that no layer has") {
  const Folder folder;
  const std::string out = folder.file("sweep.json");
  const std::string flags =
      "sweep cifar10_cnn --backend=eigen --passes=1 --width_divisor=8 --batch=2,4 --thread_counts=1 ";
  const Ended ended = run_bench(flags + "--images=32 --algorithms=im2col_gemm --inference --benchmark_out=" + out);
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  std::set<std::string> names;
  const json result = read(out);
  for (const json& row : result["benchmarks"]) names.insert(row["name"]);
  const std::string net = "net/cifar10_cnn/inference/eigen/f32/nchw/batch:";
  const std::string end = "/width_divisor:8/algorithm:im2col_gemm";
  CHECK(names == std::set<std::string>{net + "2" + end, net + "4" + end, net + "2" + end + "/threads:1"});
  const Ended none = run_bench(flags + "--algorithms=nonsense --benchmark_out=" + folder.file("none.json"));
  CHECK(none.status == 2);
  CHECK_THAT(none.said, ContainsSubstring("nonsense"));
}
