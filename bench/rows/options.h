#pragma once
// What the user asked of `run`.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/options/settings.h"

namespace lamina::bench {

struct RunOptions : PlanningSettings {
  std::vector<std::string> networks{};  ///< empty: all that a filter names, or the ten of the published tables
  int passes = 0;                       ///< 0: 10 on a GPU, 3 on a processor
  double noise = 0;                     ///< half of the median's interval, of the median, until which to go on; 0: none
  double min_time = 0;                  ///< seconds of a run, or with `noise` the most of a measurement; 0: not given
  bool list = false;                    ///< print the names of the rows only
  std::optional<std::string> filter{};
  std::filesystem::path out{};    ///< of the rows as JSON; empty: none
  std::filesystem::path trace{};  ///< of the passes in time; empty: none
  Screen out_format = Screen::json, screen = Screen::console;
  std::string time_unit{};  ///< of all rows; empty: by the kind of the row
  bool cuda_graph = false;  ///< a network's passes recorded once and launched whole
  bool cold = false;        ///< layers begin with empty caches
  bool table = false;       ///< print the table of the published form
  bool quick = false;       ///< only three networks
};

}  // namespace lamina::bench
