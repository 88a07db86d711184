#pragma once
// The instruction sets that this processor runs.

#include <vector>

#include "backends/eigen/micro_kernels.h"

namespace lamina::test {

inline std::vector<const eigen::InstructionSet*> sets_here() {
  std::vector<const eigen::InstructionSet*> sets = {&eigen::instruction_set_generic};
#if defined(__x86_64__)
  for (const eigen::InstructionSet* set : {&eigen::instruction_set_v3, &eigen::instruction_set_v4})
    if (eigen::runs_here(*set)) sets.push_back(set);
#endif
  return sets;
}

}  // namespace lamina::test
