#pragma once
// The instruction sets that this processor runs, widest first.

#include "lib/backends/eigen/runtime/instruction_set.h"
#include "tests/support/catch.h"

namespace lamina::test {

inline std::vector<const eigen::InstructionSet*> sets_here() {
  std::vector<const eigen::InstructionSet*> sets;
  for (const eigen::InstructionSet* set : eigen::instruction_sets())
    if (eigen::runs_here(*set)) sets.push_back(set);
  return sets;
}

/// The instruction sets with dot products of bf16 pairs that run here: sets with the instructions, and their emulations
/// (twins).
inline std::vector<const eigen::InstructionSet*> pair_sets_here() {
  std::vector<const eigen::InstructionSet*> sets;
  for (const eigen::InstructionSet* set : sets_here()) {
    if (set->pairs != nullptr) sets.push_back(set);
    if (std::string(set->name) == "x86-64-v4")
      for (const char* twin : {"x86-64-v4-bf16-twin", "x86-64-v4-amx-twin"})
        sets.push_back(&eigen::instruction_set(twin));
  }
  if (sets.empty()) WARN("not tested: bf16 pairs need x86-64-v4 in the build and in the processor");
  return sets;
}

/// Calls `check` with the micro-kernels of each set, for both types and both tile sizes.
template <class Check>
void check_micro_kernels(const Check& check) {
  for (const eigen::InstructionSet* set : sets_here()) {
    INFO(set->name);
    check(set->of<float>().kernels);
    check(set->of<double>().kernels);
    check(set->of<float>().kernels_6x2);
    check(set->of<double>().kernels_6x2);
  }
}

/// Small integers of both signs, so that every sum is exact in every order.
template <class T>
std::vector<T> small_integers(std::int64_t count, int seed) {
  std::vector<T> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<T>((static_cast<int>(i) * 7 + seed) % 19 - 9);
  return all;
}

}  // namespace lamina::test
