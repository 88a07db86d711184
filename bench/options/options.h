#pragma once
// What the user asked of lamina_bench: a struct for each subcommand.

#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "io/grid.h"
#include "lamina/plan.h"

namespace lamina::bench {

/// Which backends, which networks at which size, and how their plans are made. A subcommand has flags for some of it;
/// the rest keeps its default.
struct Settings {
  std::vector<std::string> backends{};  ///< empty: every one that can run here, cuda-host apart
  std::string cudnn{};                  ///< directory of the one to load; empty: the system's
  int threads = 0;
  std::string instruction_set{};
  std::size_t memory_limit = std::numeric_limits<std::size_t>::max();
  std::filesystem::path choice_cache{};  ///< file of measured choices; empty: none

  std::vector<int> batches = {16};
  std::vector<DType> dtypes = {DType::f32};
  std::vector<Layout> layouts = {Layout::nchw};
  int image = 0;  ///< 0: the network's own
  int width_divisor = 1;
  std::optional<bool> softmax{}, input_gradient{}, accumulate{};  ///< unset: as the published tables did

  Keep keep = Keep::all;
  bool fuse = true;
  Choice choice{};                  ///< math and limits of the algorithms, and whether to measure; names none
  std::filesystem::path choices{};  ///< file of choices to take; empty: none
  std::filesystem::path weights{};  ///< empty: random ones
  bool cuda_graph = false;          ///< a network's passes recorded once and launched whole
  int passes = 0;                   ///< 0: 10 on a GPU, 3 on a processor
};

enum class Screen { console, json };  ///< what goes to standard output while rows run

struct RunOptions : Settings {
  bool list = false;  ///< print the names of the rows only
  std::optional<std::string> filter{};
  std::filesystem::path out{};  ///< of the rows as JSON; empty: none
  Screen screen = Screen::console;
  std::map<std::string, std::string> context{};
  bool table = false;  ///< the table of the published form, and its files in `results`
  std::filesystem::path results = "results";
  bool quick = false, full = false, published = false;
  bool long_run = false;  ///< begin even where cuda-host will take hours
};

struct LedgerOptions : Settings {
  std::vector<std::string> networks{};
  Format format = Format::text;
};

struct FrontierOptions : Settings {
  std::vector<std::string> networks{};
  Format format = Format::text;
  std::filesystem::path choices_out{};  ///< of the picks; empty: none
};

struct MemoryOptions : Settings {
  std::vector<std::string> networks{};
  Format format = Format::text;
};

struct DescribeOptions : Settings {
  std::vector<std::string> networks{};
  Format format = Format::text;
};

struct NetworksOptions {
  Format format = Format::text;
};

struct DevicesOptions : Settings {
  Format format = Format::text;
};

/// Of cuDNN's engines.
struct EnginesOptions : Settings {
  std::vector<std::string> networks{};
  Format format = Format::text;
  std::string device{};  ///< a known set of properties, or a file
  std::filesystem::path out{};
  Screen screen = Screen::console;
};

/// Of Lamina's side of a race between processes.
struct ServeOptions {
  std::string config{};  ///< as race/serve/serve.h has it
};

using Command = std::variant<RunOptions, LedgerOptions, FrontierOptions, MemoryOptions, DescribeOptions,
                             NetworksOptions, DevicesOptions, EnginesOptions, ServeOptions>;

/// Either a command, or an exit status because all is said (help was printed, or the error).
struct Parsed {
  Command command{};
  std::optional<int> exit_status{};
};

/// Reads the command line; without a subcommand it is `run`. Help goes to standard output, an error (unknown flags with
/// near ones, bad values) to standard error with exit status 2.
Parsed parse_options(int argc, const char* const* argv);

}  // namespace lamina::bench
