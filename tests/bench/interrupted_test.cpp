// An interrupted lamina_bench keeps what it has measured: rows, ledgers, frontiers, points of a sweep.

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <thread>

#include "ended.h"

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using namespace lamina::test;

namespace {

/// The output of an interrupted program. `said` is its standard error.
struct Interrupted : Ended {
  std::string printed;   ///< standard output
  double seconds_after;  ///< processor time of the program after the signal
};

/// The processor time that a child has used, in seconds.
double used_seconds(pid_t child) {
  std::ifstream file("/proc/" + std::to_string(child) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// Seconds of processor time: enough for many passes of a small network.
constexpr double some_passes = 2;

/// Runs lamina_bench and waits for a line with `sign` on standard error. Sends the signal after `seconds` of further
/// processor time. Checks that the exit status names the signal.
Interrupted run_interrupted(const std::string& arguments, const std::string& sign, double seconds, int signal) {
  const Folder folder;
  const std::string printed = folder.file("printed");
  double used = -seconds_of_ended();
  FILE* const lines = ::popen(("echo $$; exec " LAMINA_BENCH " " + arguments + " 2>&1 >" + printed).c_str(), "r");
  REQUIRE(lines != nullptr);
  std::array<char, 4096> line;
  REQUIRE(std::fgets(line.data(), line.size(), lines) != nullptr);
  const pid_t child = std::stoi(line.data());
  std::string all;
  bool running = false;
  while (std::fgets(line.data(), line.size(), lines) != nullptr) {
    all += line.data();
    if (running || all.find(sign) == std::string::npos) continue;
    running = true;
    const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    const double before = used_seconds(child);
    while (used_seconds(child) < before + seconds && std::chrono::steady_clock::now() < latest)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    used -= used_seconds(child);
    ::kill(child, signal);
  }
  const int status = ::pclose(lines);
  used += seconds_of_ended();
  CAPTURE(all);
  REQUIRE(running);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + signal);
  std::ostringstream table;
  table << std::ifstream(printed).rdbuf();
  return {{WEXITSTATUS(status), all}, table.str(), used};
}

}  // namespace

TEST_CASE("an interrupted run writes a complete file with the rows that ran") {
  const Folder folder;
  const std::string out = folder.file("rows.json");
  const Interrupted ended =
      run_interrupted("--benchmark_filter=net/mnist_cnn/inference --batch=64 --passes=100000 --benchmark_out=" + out,
                      "warming up", some_passes, SIGINT);
  const json result = read(out);
  REQUIRE(result["context"]["interrupted"] == true);
  for (const json& run : result["benchmarks"]) {
    REQUIRE(run["run_type"] == "iteration");
    REQUIRE(run["real_time"] > 0);
  }
  REQUIRE_FALSE(result["benchmarks"].empty());
}

TEST_CASE("an interrupted ledger has the passes that ran, and names the networks that did not run") {
  const Interrupted ended = run_interrupted("ledger mnist_mlp,mnist_cnn --backend=eigen --batch=2 --passes=100000",
                                            "[1/2] mnist_mlp", some_passes, SIGTERM);
  CHECK(ended.seconds_after < 1);
  CHECK_THAT(ended.printed, ContainsSubstring(" passes: interrupted before 100000\n") &&
                                ContainsSubstring("The whole, timed without stamps: forward"));
  CHECK_THAT(ended.said, ContainsSubstring("Interrupted: mnist_mlp on eigen, batch 2 is of ") &&
                             ContainsSubstring("Interrupted: mnist_cnn on eigen, batch 2 is not measured\n"));
}

TEST_CASE("a ledger that is interrupted while it measures peaks ends within a second, however busy the machine is") {
  const Interrupted ended = run_interrupted("ledger mnist_mlp --backend=eigen --passes=100", "Measuring", 0, SIGINT);
  CHECK(ended.seconds_after < 1);
  CHECK_THAT(ended.said, ContainsSubstring("mnist_mlp on eigen, batch 16 is not measured\n"));
}

TEST_CASE("a signal while a plan is made or measured ends the run within a second") {
  const Folder folder;
  const std::string out = folder.file("rows.json"), of_vgg = " vgg16 --backend=eigen --threads=1 --batch=1";
  for (const std::string measure : {"", " --measure"}) {
    const Interrupted run = run_interrupted(
        "run" + of_vgg + measure + " --benchmark_filter=inference --benchmark_out=" + out, "warming up", 0.5, SIGTERM);
    CAPTURE(run.said, measure);
    CHECK(run.seconds_after < 1);
    CHECK(read(out)["context"]["interrupted"] == true);
  }
  const Interrupted ledger = run_interrupted("ledger" + of_vgg, "[1/1]", 0.5, SIGINT);
  CHECK(ledger.seconds_after < 1);
  CHECK_THAT(ledger.said, ContainsSubstring("vgg16 on eigen, batch 1 is not measured\n"));
}

TEST_CASE("a signal before the first row, ledger or frontier has the effect of a later signal") {
  const Folder folder;
  const std::string out = folder.file("rows.json");
  const std::string program = std::string("TERMINATED_AT_PEAK=1 ") + LAMINA_QUEUED_BENCH;
  const Ended run =
      run_program(program, "--backend=eigen --benchmark_filter=net/mnist_mlp/total --benchmark_out=" + out);
  CAPTURE(run.said);
  CHECK(run.status == 143);
  REQUIRE(std::filesystem::exists(out));
  CHECK(read(out)["context"]["interrupted"] == true);
  CHECK(read(out)["benchmarks"].empty());
  for (const char* subcommand : {"ledger", "frontier"}) {
    const Ended ended = run_program(program, std::string(subcommand) + " mnist_mlp --backend=eigen");
    CAPTURE(ended.said);
    CHECK(ended.status == 143);
    CHECK_THAT(ended.said, ContainsSubstring("mnist_mlp on eigen, batch 16 is not measured\n"));
  }
}

TEST_CASE("an interrupted frontier prints the lines that are already measured") {
  const std::string format = GENERATE("text", "csv");
  const Interrupted ended = run_interrupted(
      "frontier resnet50,alexnet --backend=eigen --batch=1 --image=64 --width_divisor=8 --passes=500 --format=" +
          format,
      "[6/", 0, SIGINT);  // at the sixth line
  CHECK_THAT(format == "text" ? ended.printed : ended.said,
             ContainsSubstring("Interrupted at ") && ContainsSubstring(" lines are measured"));
  CHECK_THAT(ended.said, ContainsSubstring("Interrupted: alexnet on eigen, batch 1 is not measured\n"));
  CHECK_THAT(ended.printed, !ContainsSubstring("Fastest within"));
  const std::regex row(format == "text" ? "(^|\n)conv1 +1 +forward +[a-z0-9_]+ .*picked"
                                        : "\nresnet50,eigen,1,conv1,1,forward,[a-z0-9_]+,.*picked");
  CHECK(std::regex_search(ended.printed, row));
}

TEST_CASE("a layer that is interrupted before its first line has no table, and standard error says so") {
  const Interrupted ended = run_interrupted(
      "conv --input=64x64x56x56 --channels=64 --kernel=3 --backend=eigen --passes=500", "[1/3]", 0, SIGINT);
  CHECK(ended.printed.empty());
  CHECK_THAT(ended.said, ContainsSubstring("\nInterrupted: conv(64, 3x3) of 64x64x56x56 on eigen, batch 64 is not"));
}

TEST_CASE("an interrupted sweep keeps its whole points, and the same command measures the missing points") {
  const Folder folder;
  const std::string out = folder.file("sweep.json");
  const std::string sweep =
      "sweep mnist_mlp --backend=eigen --batch=2,4 --thread_counts=1 --passes=500 --benchmark_out=" + out;
  const Interrupted ended = run_interrupted(sweep, "[2/", 0, SIGINT);  // at the second point
  CHECK(ended.seconds_after < 1);
  CHECK_THAT(ended.said, ContainsSubstring("interrupted; rerun the command to resume\n"));
  const json part = read(out)["benchmarks"];
  REQUIRE(part.size() == 3);
  for (const json& row : part) {
    CHECK(row["key"]["batch"] == 2);
    CHECK(row["real_times"].size() == 500);
  }
  CHECK_THAT(said_by(sweep, 0, "resuming after 3 rows"), !ContainsSubstring("[3/"));
  const json whole = read(out)["benchmarks"];
  REQUIRE(whole.size() == 9);
  for (std::size_t i = 0; i < part.size(); ++i) CHECK(whole[i] == part[i]);
}
