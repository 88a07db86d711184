#pragma once
// What a row or a result is of, as fields: all that its time depends on but the machine, the versions and the number of
// threads.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config.h"

namespace lamina::bench {

/// A row's name is printed from this, and it is in the JSON beside the name, so that nothing needs to read a name.
struct RowKey {
  std::string what;     ///< "net", "layer", "train"; of other results "ledger", "frontier", "memory"
  std::string network;  ///< of "train": the workload
  std::string layer{};  ///< of "layer": the node
  std::string part;     ///< the pass, or "epoch"
  std::string backend;
  std::string algorithm{};  ///< of "layer", as asked for: a name, or "default"
  std::string type, layout;
  int batch = 0;
  std::vector<std::pair<std::string, std::string>> differs{};  ///< from the defaults: {"image", "64"}, {"graph", ""}
};

/// What is the same for every result of a config: `differs` has sizes, how a file is read, and the instruction set.
RowKey key_of(const char* what, const Config&, std::string_view part, const PlanningSettings&);
/// What differs from the default in how a whole network is planned.
void add_variants(RowKey&, const PlanningSettings&);
/// What differs from the default in which algorithms may be taken.
void add_limits(RowKey&, const Choice&);
/// The key of a planned network: key_of() with add_variants().
RowKey plan_key(const char* what, const Config&, std::string_view part, const PlanningSettings&);

/// "net/resnet50/total/eigen/f32/nchw/batch:16"
std::string to_string(const RowKey&);
nlohmann::ordered_json fields_of(const RowKey&);

}  // namespace lamina::bench
