#pragma once
// What the user asked of lamina_bench.

#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/grid.h"
#include "lamina/plan.h"

namespace lamina::bench {

enum class Task { run, list, networks, describe, memory, ledger, frontier, devices, engines };
enum class Screen { console, json };  ///< what goes to standard output while rows run

struct BenchOptions {
  Task task = Task::run;
  std::vector<std::string> networks{};  ///< of describe, memory, ledger, frontier, engines
  Format format = Format::text;         ///< of their tables

  std::optional<std::string> filter{};
  std::filesystem::path out{};  ///< of the rows as JSON; empty: none
  Screen screen = Screen::console;
  std::map<std::string, std::string> context{};

  bool table = false;  ///< the table of the published form, and its files in `results`
  std::filesystem::path results = "results";
  bool quick = false, full = false, published = false;

  std::vector<std::string> cudnn{};  ///< directory of the one to load; none: the system's

  std::vector<std::string> backends{};  ///< empty: every one that can run here, cuda-host apart
  std::vector<int> batches = {16};
  int image = 0;  ///< 0: the network's own
  int width_divisor = 1;
  int passes = 0;  ///< 0: 10 on a GPU, 3 on a processor
  int threads = 0;
  std::string instruction_set{};
  std::vector<DType> dtypes = {DType::f32};
  std::vector<Layout> layouts = {Layout::nchw};
  Keep keep = Keep::all;
  bool fuse = true;
  bool long_run = false;    ///< of cuda-host: hours are meant
  bool cuda_graph = false;  ///< a network's passes recorded once and launched whole
  std::optional<bool> softmax{}, input_gradient{}, accumulate{};  ///< unset: as the published tables did
  std::size_t memory_limit = std::numeric_limits<std::size_t>::max();
  Choice choice{};                       ///< math and limits of the algorithms, and whether to measure; names none
  std::filesystem::path choice_cache{};  ///< file of measured choices; empty: none
  std::filesystem::path choices{};       ///< file of choices to take; empty: none
  std::filesystem::path choices_out{};   ///< of the frontier's picks; empty: none
  std::string device{};                  ///< of engines: a known set of properties, or a file
  std::filesystem::path weights{};       ///< empty: random ones

  bool lists_all() const { return task == Task::list && !filter; }
};

/// Either options, or an exit status because all is said (help was printed, or the error).
struct Parsed {
  BenchOptions options{};
  std::optional<int> exit_status{};
};

/// Reads the command line. Help goes to standard output, an error (unknown flags with near ones, bad values) to
/// standard error with exit status 2.
Parsed parse_options(int argc, const char* const* argv);

}  // namespace lamina::bench
