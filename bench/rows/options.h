#pragma once
// What the user asked of `run`.

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "bench/options/settings.h"

namespace lamina::bench {

struct RunOptions : PlanningSettings {
  int passes = 0;     ///< 0: 10 on a GPU, 3 on a processor
  bool list = false;  ///< print the names of the rows only
  std::optional<std::string> filter{};
  std::filesystem::path out{};  ///< of the rows as JSON; empty: none
  Screen screen = Screen::console;
  std::map<std::string, std::string> context{};
  std::filesystem::path weights{};     ///< of networks; empty: random ones
  std::filesystem::path train_data{};  ///< folder of real files for rows train/...; empty: synthetic sets
  double train_share = 0.1;            ///< of a synthetic set's samples
  bool energy = false;                 ///< joules of the passes of whole networks
  bool cuda_graph = false;             ///< a network's passes recorded once and launched whole
  bool table = false;                  ///< print the table of the published form
  bool quick = false;                  ///< only three networks
};

}  // namespace lamina::bench
