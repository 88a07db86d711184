#pragma once
// When every value and gradient is written and read, and which values are dropped and made again. One clock ticks over
// both passes: unit i of N runs forward at step i and backward at step 2N - 1 - i.

#include <limits>
#include <vector>

#include "units.h"

namespace lamina::planner {

/// A step that never comes: what is read then lives as long as the plan.
constexpr int forever = std::numeric_limits<int>::max();

/// The steps at which one value or gradient is written and read. No writes: it does not exist.
struct Accesses {
  std::vector<int> writes, reads;
  int first() const;  ///< first write; forever if there is none
  int last() const;   ///< last write or read
};

struct Lifetimes {
  std::vector<Accesses> value;     ///< by node; of a dropped value: until the last forward reader
  std::vector<Accesses> gradient;  ///< by node
  std::vector<Accesses> remade;    ///< by node: the second life of a dropped value; no writes: it is not dropped
  bool dropped(int node) const { return !remade[static_cast<std::size_t>(node)].writes.empty(); }
};

Lifetimes make_lifetimes(const Units&, const std::vector<Node>& nodes, const Options&);

/// What a backend says of operand i in one of Lowered's vectors: no, where the vector does not reach it.
bool flag(const std::vector<bool>& flags, std::size_t i);

/// The first step of a unit that covers `pass`; null if there is none.
const Lowered::Step* find_step(const Unit&, Pass pass);

}  // namespace lamina::planner
