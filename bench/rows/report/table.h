#pragma once
// The table of the published form: one line per network and backend, means over the passes.

#include <set>
#include <string>

#include "bench/rows/rows.h"

namespace lamina::bench {

class Table {
 public:
  std::string header() const;

  /// Takes the rows as they finish; gives the line of the network when its total (or its failure) is known, else
  /// nothing.
  std::string take(const Row&, const Outcome&);

 private:
  std::set<const Group*> taken_;
};

}  // namespace lamina::bench
