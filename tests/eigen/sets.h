#pragma once
// The instruction sets that this processor runs, widest first.

#include <vector>

#include "lamina/error.h"
#include "lib/backends/eigen/runtime/instruction_set.h"

namespace lamina::test {

inline std::vector<const eigen::InstructionSet*> sets_here() {
  std::vector<const eigen::InstructionSet*> sets;
  for (const eigen::InstructionSet* set : eigen::instruction_sets())
    if (eigen::runs_here(*set)) sets.push_back(set);
  return sets;
}

/// Those with products of pairs that run here: the one with the instruction, and its twin.
inline std::vector<const eigen::InstructionSet*> pair_sets_here() {
  std::vector<const eigen::InstructionSet*> sets;
  for (const char* name : {"x86-64-v4-bf16", "x86-64-v4-bf16-twin"}) {
    try {
      sets.push_back(&eigen::instruction_set(name));
    } catch (const Unsupported&) {  // this processor
    } catch (const UsageError&) {   // this build
    }
  }
  return sets;
}

}  // namespace lamina::test
