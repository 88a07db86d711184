#pragma once
// Runs lamina_bench or another program to its end, and keeps its output and its file of results.

#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/io/files.h"
#include "tests/support/catch.h"

namespace lamina::test {

struct Ended {
  int status;
  std::string said;
};

enum class Outputs { both, standard };  ///< which output is kept: with standard error or without

inline Ended run_program(const std::string& program, const std::string& arguments, Outputs kept = Outputs::both) {
  const char* errors = kept == Outputs::both ? " 2>&1" : " 2>/dev/null";
  FILE* pipe = ::popen((program + " " + arguments + errors).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string said;
  std::array<char, 4096> block;
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe)) said.append(block.data(), n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), said};
}

/// The processor time of the child programs that have ended, in seconds.
inline double seconds_of_ended() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

inline nlohmann::json read(const std::string& file) {
  std::ifstream stream(file);
  return nlohmann::json::parse(stream);
}

#ifdef LAMINA_BENCH
inline Ended run_bench(const std::string& arguments, Outputs kept = Outputs::both) {
  return run_program(LAMINA_BENCH, arguments, kept);
}

/// Runs lamina_bench. Checks that it ends with this status and prints `why`.
inline std::string said_by(const std::string& arguments, int status = 0, const std::string& why = {},
                           Outputs kept = Outputs::both) {
  const Ended ended = run_bench(arguments, kept);
  CAPTURE(arguments, ended.said);
  CHECK(ended.status == status);
  CHECK_THAT(ended.said, Catch::Matchers::ContainsSubstring(why));
  return ended.said;
}

/// The file of results of a run of lamina_bench. The run must end with status 0.
inline nlohmann::json results_of(const std::string& arguments) {
  const Folder folder;
  const std::string out = folder.file("results.json");
  said_by(arguments + " --benchmark_out=" + out);
  return read(out);
}
#endif

}  // namespace lamina::test
