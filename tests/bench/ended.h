#pragma once
// lamina_bench, or another program, run to its end, and what it left.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.h"

namespace lamina::test {

struct Ended {
  int status;
  std::string said;
};

enum class Outputs { both, standard };  ///< what of a program is kept: with standard error, or without

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

#ifdef LAMINA_BENCH
inline Ended run_bench(const std::string& arguments, Outputs kept = Outputs::both) {
  return run_program(LAMINA_BENCH, arguments, kept);
}
#endif

/// A folder that goes with the test.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("lamina_bench_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline nlohmann::json read(const std::string& file) {
  std::ifstream stream(file);
  return nlohmann::json::parse(stream);
}

}  // namespace lamina::test
