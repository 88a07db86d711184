// The same rows by several programs in turns: how the children are called, what is read from them, what is joined.

#include "race/variants.h"

#include <csignal>
#include <cstdlib>
#include <set>
#include <thread>

#include "bench/ended.h"
#include "lamina/error.h"

using namespace lamina;
using namespace lamina::bench;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

using Words = std::vector<std::string>;

/// A program of the shell that finds in $out the file it is to leave.
std::string program(const Folder& folder, const char* name, const std::string& body) {
  const std::string path = folder.file(name);
  std::ofstream(path) << "#!/bin/bash\nfor flag; do case $flag in --benchmark_out=*) out=${flag#*=} ;; esac; done\n"
                      << body << '\n';
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

std::string run_text(const std::string& name, double milliseconds, const std::string& more = {}, int repetition = 0) {
  return R"({"name": ")" + name + R"(", "run_name": ")" + name +
         R"(", "run_type": "iteration", "repetitions": 1, "repetition_index": )" + std::to_string(repetition) +
         R"(, "iterations": 1, "real_time": )" + std::to_string(milliseconds) +
         R"(, "cpu_time": 1, "time_unit": "ms")" + more + "}";
}

std::string leaves(const Words& runs) {
  std::string text = R"(cat > "$out" << 'END')"
                     "\n"
                     R"({"context": {"backend_cudnn": "cuDNN 1"}, "benchmarks": [)";
  for (std::size_t i = 0; i < runs.size(); ++i) text += (i == 0 ? "" : ",\n") + runs[i];
  return text + "]}\nEND";
}

Ended compare_programs(const std::string& a, const std::string& b, const std::string& more = {}) {
  return run_bench("--programs=" + a + "," + b + " --rounds=3 " + more);
}

std::map<std::string, json> comparisons(const json& result) {
  std::map<std::string, json> found;
  for (const json& each : result.at("comparisons")) found[each["name"]] = each;
  return found;
}

}  // namespace

TEST_CASE("children are given our flags, without those that only the parent has") {
  CHECK(child_arguments({"--cudnn=a,b", "--rounds", "5", "--batch=2", "--benchmark_out=x.json"}) == Words{"--batch=2"});
  CHECK(child_arguments({"--programs", "a,b", "--benchmark_filter", "net/", "--benchmark_format=json"}) ==
        Words{"--benchmark_filter", "net/"});
  CHECK(child_arguments({"--benchmark_out", "x", "--benchmark_out_format=json", "--quick"}) == Words{"--quick"});
  CHECK(child_arguments({}).empty());
}

TEST_CASE("variants are labelled by what tells them apart, one against itself by number") {
  BenchOptions options;
  CHECK(variants_of(options).empty());
  options.cudnn = {"/one"};
  CHECK(variants_of(options).empty());
  options.cudnn = {"/one", "/two"};
  const auto two = variants_of(options);
  REQUIRE(two.size() == 2);
  CHECK(two[1].label == "/two");
  CHECK(two[1].flags == Words{"--cudnn=/two", "--backend=cudnn"});
  options.backends = {"cudnn", "eigen"};
  CHECK(variants_of(options)[1].flags == Words{"--cudnn=/two"});
  options = {};
  options.programs = {"a", "a", "b"};
  const auto three = variants_of(options);
  REQUIRE(three.size() == 3);
  CHECK(three[0].label == "a");
  CHECK(three[1].label == "a (2)");
  CHECK(three[2].label == "b");
}

TEST_CASE("the library path of cuDNN 8, which opens its parts by bare names, leads to its folder") {
  const Folder folder;
  std::ofstream(folder.file("libcudnn.so.8")) << "";
  BenchOptions options;
  options.cudnn = {folder.path().string(), "/nothing/here"};
  const auto variants = variants_of(options);
  CHECK_THAT(variants[0].environment.at("LD_LIBRARY_PATH"), Catch::Matchers::StartsWith(folder.path().string()));
  CHECK(variants[1].environment.empty());
}

TEST_CASE("a round's time of a row is the least of its passes, in seconds whatever the unit") {
  const json result = json::parse(R"({"context": {}, "benchmarks": [
    {"name": "a", "run_type": "iteration", "real_time": 7.5, "time_unit": "ms", "plan_MiB": 3.5},
    {"name": "a", "run_type": "iteration", "real_time": 2.5, "time_unit": "ms", "plan_MiB": 3.5},
    {"name": "a_mean", "run_name": "a", "run_type": "aggregate", "real_time": 1, "time_unit": "ms"},
    {"name": "b", "run_type": "iteration", "real_time": 40, "time_unit": "us", "algorithm": "gemm"},
    {"name": "c", "run_type": "iteration", "real_time": 3, "time_unit": "s"},
    {"name": "d", "run_type": "iteration", "real_time": 50, "time_unit": "ns"}]})");
  const auto seen = observations(result);
  REQUIRE(seen.size() == 4);
  CHECK(seen.at("a").seconds == Approx(2.5e-3));
  CHECK(seen.at("a").memory_MiB == 3.5);
  CHECK(seen.at("b").seconds == Approx(40e-6));
  CHECK(seen.at("b").algorithm == "gemm");
  CHECK(seen.at("c").seconds == Approx(3));
  CHECK(seen.at("d").seconds == Approx(50e-9));
  CHECK(seen.at("d").failure.empty());
}

TEST_CASE("a round's time of a first call is that of its first repetition, and of no other") {
  const auto seen = observations(json::parse(R"({"benchmarks": [
    {"name": "setup/a", "run_type": "iteration", "repetition_index": 0, "real_time": 90, "time_unit": "ms"},
    {"name": "setup/a", "run_type": "iteration", "repetition_index": 1, "real_time": 2, "time_unit": "ms"},
    {"name": "net/a", "run_type": "iteration", "repetition_index": 0, "real_time": 90, "time_unit": "ms"},
    {"name": "net/a", "run_type": "iteration", "repetition_index": 1, "real_time": 2, "time_unit": "ms"}]})"));
  CHECK(seen.at("setup/a").seconds == Approx(90e-3));
  CHECK(seen.at("net/a").seconds == Approx(2e-3));
}

TEST_CASE("rows without a time are read as Google Benchmark 1.7 and 1.8 spell them") {
  const auto seen = observations(json::parse(R"({"benchmarks": [
    {"name": "error", "run_type": "iteration", "error_occurred": true, "error_message": "DeviceError: x"},
    {"name": "refused_1.7", "run_type": "iteration", "error_occurred": true, "error_message": "Unsupported: y"},
    {"name": "refused_1.8", "run_type": "iteration", "skipped": true, "skip_message": "Unsupported: y"},
    {"name": "silent", "run_type": "iteration", "skipped": true}]})"));
  CHECK(seen.at("error").failure == "DeviceError: x");
  CHECK(seen.at("refused_1.7").failure == "Unsupported: y");
  CHECK(seen.at("refused_1.8").failure == "Unsupported: y");
  CHECK(seen.at("silent").failure == "failed");
  CHECK(seen.at("error").seconds == 0);
}

TEST_CASE("the program against itself: rows of both in ABBA order, their contexts, and one comparison per row") {
  const Folder folder;
  const std::string out = folder.file("rows.json");
  const Ended ended = compare_programs(
      LAMINA_BENCH, LAMINA_BENCH,
      "--backend=eigen '--benchmark_filter=/mnist_mlp/(total|dense_1/forward|plan)/' --batch=2 --passes=2 "
      "--benchmark_out=" +
          out);
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  const json result = read(out);
  std::vector<std::pair<int, std::string>> order;
  for (const json& run : result.at("benchmarks")) {
    const std::pair<int, std::string> turn{run.at("round"), run.at("variant")};
    if (order.empty() || order.back() != turn) order.push_back(turn);
  }
  const std::string a = LAMINA_BENCH, b = a + " (2)";
  CHECK(order == decltype(order){{0, a}, {0, b}, {1, b}, {1, a}, {2, a}, {2, b}});
  REQUIRE(result["context"]["variants"].size() == 2);
  for (const json& variant : result["context"]["variants"]) {
    CHECK(variant["context"].contains("backend_eigen"));
    CHECK(variant["crashes"].empty());
  }
  CHECK(result["context"]["interrupted"] == false);
  const auto compared = comparisons(result);
  const json& total = compared.at("net/mnist_mlp/total/eigen/f32/nchw/batch:2");
  CHECK(total["seconds"] > 0);
  CHECK(total["low"] <= total["ratio"]);
  CHECK(total["memory_MiB"] == total["first_memory_MiB"]);
  const json& layer = compared.at("layer/mnist_mlp/dense_1/forward/eigen/gemm/f32/nchw/batch:2");
  CHECK(layer["algorithm"] == "gemm");
  CHECK_THAT(ended.said, ContainsSubstring("verdict") && ContainsSubstring("rows: "));
}

TEST_CASE("a slowdown, a pick and a first call are found and named in what is printed and in the file") {
  const Folder folder;
  const std::string layer = "layer/n/conv1/forward/cudnn/", net = "net/n/total/cudnn", setup = "setup/n/plan/cudnn";
  const auto pick = [](const char* name) { return R"(, "algorithm": ")" + std::string(name) + R"(")"; };
  const std::string a = program(folder, "a",
                                leaves({run_text(net, 10), run_text(setup, 5), run_text(layer + "gemm", 2),
                                        run_text(layer + "fft", 1), run_text(layer + "default", 1, pick("fft"))}));
  const std::string b = program(folder, "b",
                                leaves({run_text(net, 11), run_text(setup, 6), run_text(layer + "gemm", 2),
                                        run_text(layer + "fft", 1), run_text(layer + "default", 2, pick("gemm"))}));
  const std::string out = folder.file("rows.json");
  const Ended ended = compare_programs(a, b, "--benchmark_out=" + out);
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  const auto compared = comparisons(read(out));
  CHECK(compared.at(layer + "default")["regression"] == "pick");
  CHECK(compared.at(layer + "fft")["verdict"] == "equal");
  CHECK(compared.at(net)["regression"] == "layers");
  CHECK(compared.at(net)["ratio"].get<double>() == Approx(1.1));
  CHECK(compared.at(setup)["regression"] == "first call");
  CHECK_THAT(ended.said, ContainsSubstring("picked gemm instead of fft") && ContainsSubstring("2 equal, 3 slower"));
}

TEST_CASE("a program whose first call alone got slower is found, by that and by nothing else") {
  const Folder folder;
  const std::string setup = "setup/n/first_pass/cudnn";
  const auto passes = [&](double first) { return leaves({run_text(setup, first), run_text(setup, 1, {}, 1)}); };
  const std::string out = folder.file("rows.json");
  const Ended ended =
      compare_programs(program(folder, "a", passes(5)), program(folder, "b", passes(8)), "--benchmark_out=" + out);
  CAPTURE(ended.said);
  REQUIRE(ended.status == 0);
  const auto compared = comparisons(read(out));
  CHECK(compared.at(setup)["regression"] == "first call");
  CHECK(compared.at(setup)["ratio"].get<double>() == Approx(1.6));
}

TEST_CASE("a program that crashes is recorded by name, the others' rows are kept, and the status is 1") {
  const Folder folder;
  const std::string good = program(folder, "good", leaves({run_text("net/n", 1)}));
  const std::string out = folder.file("rows.json");
  SECTION("before it has rows") {
    const Ended ended = compare_programs(good, program(folder, "bad", "kill -SEGV $$"), "--benchmark_out=" + out);
    CAPTURE(ended.said);
    CHECK(ended.status == 1);
    CHECK_THAT(ended.said, ContainsSubstring("/bad: round 1: no rows; signal 11"));
    const json result = read(out);
    CHECK(result["benchmarks"].size() == 3);
    CHECK(result["context"]["variants"][0]["crashes"].empty());
    CHECK(result["context"]["variants"][1]["crashes"].size() == 3);
  }
  SECTION("after some rows") {
    const std::string bad = program(folder, "bad", leaves({run_text("net/n", 1)}) + "\nkill -SEGV $$");
    const Ended ended = compare_programs(good, bad, "--benchmark_out=" + out);
    CHECK(ended.status == 1);
    const json result = read(out);
    CHECK(result["benchmarks"].size() == 6);
    CHECK_THAT(result["context"]["variants"][1]["crashes"][2].get<std::string>(),
               ContainsSubstring("round 3: not all rows; signal 11"));
    CHECK(comparisons(result).at("net/n")["verdict"] == "equal");
  }
}

TEST_CASE("where nothing has a time the status is 1") {
  const Folder folder;
  const std::string refusal = R"({"name": "net/n", "run_type": "iteration", "skipped": true, "skip_message": "why"})";
  const std::string refuses = program(folder, "refuses", leaves({refusal}) + "\nexit 1");
  const Ended ended = compare_programs(refuses, refuses);
  CHECK(ended.status == 1);
  CHECK_THAT(ended.said, ContainsSubstring("1 fails in both") && ContainsSubstring("why"));
}

namespace {

/// A comparison in a process group of its own, once its program `b` has started.
class Comparison {
 public:
  Comparison(const Folder& folder, const std::string& a, const std::string& b) : out_(folder.file("rows.json")) {
    child_ = ::fork();
    if (child_ == 0) {
      ::setpgid(0, 0);
      ::execl(LAMINA_BENCH, LAMINA_BENCH, ("--programs=" + a + "," + b).c_str(), ("--benchmark_out=" + out_).c_str(),
              "--backend=eigen", "--benchmark_filter=net/mnist_cnn/inference", "--batch=16", "--passes=100000",
              nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 1000 && !std::filesystem::exists(folder.file("started")); ++i) pause(10);
  }
  static void pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }
  void interrupt() const { ::kill(child_, SIGINT); }
  void interrupt_group() const { ::kill(-child_, SIGINT); }  // as a terminal does

  /// Waits. What it left, which nobody but the user cut short.
  json result() const {
    int status = 0;
    REQUIRE(::waitpid(child_, &status, 0) == child_);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 130);
    json result = read(out_);
    CHECK(result["context"]["interrupted"] == true);
    for (const json& variant : result["context"]["variants"]) CHECK(variant["crashes"].empty());
    return result;
  }

 private:
  std::string out_;
  pid_t child_ = 0;
};

}  // namespace

TEST_CASE("an interrupted comparison keeps the rounds there are") {
  const Folder folder;
  const Comparison comparison(folder, program(folder, "quick", leaves({run_text("net/n", 1)})),
                              program(folder, "stuck", "touch \"$(dirname \"$0\")/started\"; exec sleep 100"));
  comparison.interrupt();
  CHECK(comparison.result()["benchmarks"].size() == 1);
}

TEST_CASE("an interrupt from a terminal reaches the program that runs once, and its rows are kept") {
  const Folder folder;
  const Comparison comparison(folder, program(folder, "quick", leaves({run_text("net/n", 1)})),
                              program(folder, "real", R"(here=$(dirname "$0")
exec 2> "$here/said"
(until grep -q 'warming up' "$here/said"; do sleep 0.05; done; sleep 0.5; touch "$here/started") &
exec )" LAMINA_BENCH R"( "$@")"));
  comparison.interrupt_group();
  const json result = comparison.result();
  REQUIRE(result["benchmarks"].size() > 1);
  CHECK(result["benchmarks"][1]["name"] == "net/mnist_cnn/inference/eigen/f32/nchw/batch:16");
}

TEST_CASE("a second interrupt ends the program that runs, and keeps the rounds before it") {
  const Folder folder;
  const Comparison comparison(folder, program(folder, "quick", leaves({run_text("net/n", 1)})),
                              program(folder, "stubborn", R"(exec 3<> <(:)
trap 'trap - INT' INT
touch "$(dirname "$0")/started"
for ((i = 0; i < 1000; ++i)); do read -r -t 0.02 -u 3; done)"));
  comparison.interrupt_group();
  Comparison::pause(300);
  comparison.interrupt_group();
  CHECK(comparison.result()["benchmarks"].size() == 1);
}

TEST_CASE("wrong use of a comparison ends with status 2 before anything runs") {
  const Folder folder;
  const std::string good = program(folder, "good", "touch \"$(dirname \"$0\")/ran\"; exit 3");
  const auto wrong = [&](const std::string& flags, const char* near) {
    const Ended ended = run_bench(flags);
    CAPTURE(flags, ended.said);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, ContainsSubstring(near));
  };
  wrong("--programs=" + good, "at least two");
  wrong("--programs=" + good + ",/nothing/here", "cannot run /nothing/here");
  wrong("--programs=" + good + "," + good + " --rounds=2", "--rounds");
  wrong("--rounds=5", "--rounds belongs to");
  wrong("--programs=" + good + "," + good + " --cudnn=/a,/b", "two comparisons");
  wrong("--programs=" + good + "," + good + " --table", "--table");
  wrong("--programs=" + good + "," + good + " --memory=vgg16", "--memory");
  const Ended unwritable = compare_programs(good, good, "--benchmark_out=/proc/none/rows.json");
  CHECK(unwritable.status == 1);
  CHECK_THAT(unwritable.said, ContainsSubstring("/proc/none"));
  CHECK_FALSE(std::filesystem::exists(folder.file("ran")));
}

TEST_CASE("flags that the other program does not take are named with the program") {
  const Folder folder;
  const std::string old = program(folder, "old", "exit 2");
  const Ended ended = compare_programs(old, old, "--batch=2");
  CHECK(ended.status == 2);
  CHECK_THAT(ended.said, ContainsSubstring("/old does not take these flags: --batch=2"));
}

TEST_CASE("a program that ends with status 2 once there are rows is a crash, and the rows are kept") {
  const Folder folder;
  const std::string good = program(folder, "good", leaves({run_text("net/n", 1)}));
  const std::string late = program(folder, "late", "echo 'late: no room' >&2; exit 2");
  const std::string out = folder.file("rows.json");
  const Ended ended = compare_programs(good, late, "--benchmark_out=" + out);
  CAPTURE(ended.said);
  CHECK(ended.status == 1);
  const json result = read(out);
  CHECK(result["benchmarks"].size() == 3);
  CHECK(result["context"]["variants"][1]["crashes"].size() == 3);
  CHECK_THAT(ended.said,
             ContainsSubstring("late: no room") && ContainsSubstring("/late: round 1: no rows; exit status 2"));
}
