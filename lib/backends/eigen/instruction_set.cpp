// Which instruction set's micro-kernels this process takes.

#include <string>
#include <string_view>

#include "lamina/error.h"
#include "micro_kernels.h"

namespace lamina::eigen {
namespace {

const InstructionSet* forced = nullptr;

// Widest first.
const InstructionSet* const sets[] = {
#if defined(__x86_64__)
    &instruction_set_v4,
    &instruction_set_v3,
#endif
    &instruction_set_generic,
};

}  // namespace

bool runs_here(const InstructionSet& set) {
#if defined(__x86_64__)
  if (&set == &instruction_set_v4) {
    return runs_here(instruction_set_v3) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  }
  if (&set == &instruction_set_v3) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
  }
#endif
  return &set == &instruction_set_generic;
}

const InstructionSet& instruction_set() {
  if (forced != nullptr) return *forced;
  for (const InstructionSet* set : sets) {
    if (runs_here(*set)) return *set;
  }
  return instruction_set_generic;
}

void force_instruction_set(const char* name) {
  const std::string_view wanted = name;
  if (wanted.empty()) {
    forced = nullptr;
    return;
  }
  std::string known;
  for (const InstructionSet* set : sets) {
    if (wanted == set->name) {
      if (!runs_here(*set)) throw Unsupported("eigen: this processor lacks the instruction set " + std::string(wanted));
      forced = set;
      return;
    }
    known += std::string(known.empty() ? "" : ", ") + set->name;
  }
  throw UsageError("eigen: unknown instruction set '" + std::string(wanted) + "'; there are " + known);
}

}  // namespace lamina::eigen
