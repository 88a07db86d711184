#pragma once
// The instruction sets that this processor runs, widest first.

#include <vector>

#include "lib/backends/eigen/runtime/instruction_set.h"

namespace lamina::test {

inline std::vector<const eigen::InstructionSet*> sets_here() {
  std::vector<const eigen::InstructionSet*> sets;
  for (const eigen::InstructionSet* set : eigen::instruction_sets())
    if (eigen::runs_here(*set)) sets.push_back(set);
  return sets;
}

}  // namespace lamina::test
