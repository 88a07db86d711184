// What the program keeps when it is interrupted: rows, ledgers, frontiers and their choices.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/ended.h"
#include "lamina/choice_cache.h"
#include "support/catch.h"

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using namespace lamina::test;

namespace {

/// Runs lamina_bench and sends it the signal half a second after a line with `sign`.
Ended run_interrupted(std::vector<std::string> arguments, const std::string& sign, int signal) {
  int said[2];
  REQUIRE(::pipe(said) == 0);
  arguments.insert(arguments.begin(), LAMINA_BENCH);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(said[1], STDERR_FILENO);
    ::dup2(said[1], STDOUT_FILENO);
    ::close(said[0]);
    ::close(said[1]);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(said[1]);
  FILE* const lines = ::fdopen(said[0], "r");
  std::array<char, 4096> line;
  std::string all;
  bool running = false;
  while (std::fgets(line.data(), line.size(), lines) != nullptr) {
    all += line.data();
    if (running || all.find(sign) == std::string::npos) continue;
    running = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ::kill(child, signal);
  }
  std::fclose(lines);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CAPTURE(all);
  REQUIRE(running);
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), all};
}

}  // namespace

TEST_CASE("an interrupted run keeps its rows in a file that is whole") {
  const Folder folder;
  const std::string out = folder.file("rows.json");
  const Ended ended = run_interrupted({"--benchmark_filter=net/(mnist_mlp|mnist_cnn)/inference", "--batch=2",
                                       "--passes=1000000", "--benchmark_out=" + out},
                                      "warming up", SIGINT);
  REQUIRE(ended.status == 130);
  const json result = read(out);
  REQUIRE(result["context"]["interrupted"] == true);
  for (const json& run : result["benchmarks"]) {
    REQUIRE(run["run_type"] == "iteration");
    REQUIRE(run["real_time"] > 0);
  }
  REQUIRE_FALSE(result["benchmarks"].empty());
}

TEST_CASE("an interrupted ledger is that of the passes there are, and says which networks it lacks") {
  const Ended ended = run_interrupted(
      {"--ledger=mnist_mlp,mnist_cnn", "--backend=eigen", "--batch=2", "--passes=1000000"}, "[1/2] mnist_mlp", SIGTERM);
  CAPTURE(ended.said);
  CHECK(ended.status == 143);
  CHECK_THAT(ended.said, ContainsSubstring(" passes: interrupted before 1000000\n") &&
                             ContainsSubstring("The whole, timed without stamps: forward") &&
                             ContainsSubstring("Interrupted: mnist_mlp on eigen, batch 2 is of ") &&
                             ContainsSubstring("Interrupted: mnist_cnn on eigen, batch 2 is not measured\n"));
}

TEST_CASE("an interrupted frontier prints the lines that are measured, and its choices are of whole layers") {
  const Folder folder;
  const std::string file = folder.file("choices.json");
  const std::string format = GENERATE("text", "csv");
  const Ended ended =
      run_interrupted({"--frontier=resnet50,alexnet", "--backend=eigen", "--batch=1", "--image=64", "--width_divisor=8",
                       "--passes=500", "--format=" + format, "--choices_out=" + file},
                      "[6/", SIGINT);
  CAPTURE(ended.said);
  CHECK(ended.status == 130);
  CHECK_THAT(ended.said, ContainsSubstring("Interrupted at ") && ContainsSubstring(" lines are measured") &&
                             ContainsSubstring("fastest") &&
                             ContainsSubstring(" of resnet50 on eigen, batch 1 added") &&
                             ContainsSubstring("Interrupted: alexnet on eigen, batch 1 is not measured\n") &&
                             !ContainsSubstring("Fastest within"));
  const lamina::ChoiceCache kept(file);
  REQUIRE_FALSE(kept.entries().empty());
  // Of the first layer the image's gradient is not wanted; of all others every pass is.
  int without_data = 0;
  for (const auto& [key, entry] : kept.entries()) {
    CHECK_FALSE(entry.algorithms[0].empty());
    CHECK_FALSE(entry.algorithms[1].empty());
    without_data += entry.algorithms[2].empty() ? 1 : 0;
  }
  CHECK(without_data == 1);
}
