#pragma once
// The table of the published form: one line per network and backend, means over the passes.

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "bench/rows/rows.h"

namespace lamina::bench {

struct TableLine {
  std::string network;
  std::string backend;  ///< of a published line: device and library
  double forward_ms = 0, backward_ms = 0, total_ms = 0, deviation_ms = 0;
  double images_per_second = 0;
  double peak_MiB = 0;  ///< what the plan holds; 0: not known
  int passes = 0;
  std::string note;    ///< why there are no times
  std::string source;  ///< empty: measured now
};

class Table {
 public:
  std::string header() const;

  /// Takes the rows as they finish; gives the line of the network when its total (or its failure) is known, else
  /// nothing.
  std::string take(const Row&, const Outcome&);

  /// The published times of the networks that are in the table.
  void add_published();

  bool empty() const { return lines_.empty(); }
  std::string text() const;
  std::string markdown() const;
  nlohmann::ordered_json json() const;

 private:
  std::vector<TableLine> lines_;
  std::set<const Group*> taken_;
};

}  // namespace lamina::bench
