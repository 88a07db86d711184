#pragma once
// The instruction sets that this processor runs, widest first.

#include <string>
#include <vector>

#include "lib/backends/eigen/runtime/instruction_set.h"
#include "tests/support/catch.h"

namespace lamina::test {

inline std::vector<const eigen::InstructionSet*> sets_here() {
  std::vector<const eigen::InstructionSet*> sets;
  for (const eigen::InstructionSet* set : eigen::instruction_sets())
    if (eigen::runs_here(*set)) sets.push_back(set);
  return sets;
}

/// The sets with products of pairs that run here: the set with the instruction, and its twin.
inline std::vector<const eigen::InstructionSet*> pair_sets_here() {
  std::vector<const eigen::InstructionSet*> sets;
  for (const eigen::InstructionSet* set : sets_here()) {
    if (set->pairs != nullptr) sets.push_back(set);
    if (std::string(set->name) == "x86-64-v4") sets.push_back(&eigen::instruction_set("x86-64-v4-bf16-twin"));
  }
  if (sets.empty()) WARN("not tested: products of pairs need x86-64-v4, of the build and of the processor");
  return sets;
}

}  // namespace lamina::test
