#pragma once
// When every value and gradient is written and read, and which values are dropped and recomputed.

#include <limits>
#include <vector>

#include "units.h"

namespace lamina::planner {

/// A step after all others: a tensor that is read then lives as long as the plan.
constexpr Step forever{std::numeric_limits<int>::max()};

/// The steps at which one value or gradient is written and read. Without writes it does not exist.
struct Accesses {
  std::vector<Step> writes, reads;
  Step first() const;  ///< step of the first write; forever if there is none
  Step last() const;   ///< step of the last write or read; none if there is neither
};

struct Lifetimes {
  EachNode<Accesses> value;  ///< accesses; of a dropped value those up to its last forward reader
  EachNode<Accesses> gradient;
  EachNode<Accesses> recomputed;  ///< the second life of a dropped value; without writes it is not dropped
  bool dropped(NodeId node) const { return !recomputed[node].writes.empty(); }
};

/// The flag of operand i in one of Lowered's vectors; false beyond its end.
bool flag(const std::vector<bool>& flags, std::size_t i);

}  // namespace lamina::planner
