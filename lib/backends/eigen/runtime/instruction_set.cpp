// The choice among the instruction sets that the ops were compiled for.

#include "instruction_set.h"

#include <algorithm>

#include "lamina/error.h"

namespace lamina::eigen {

// The symbols of the sets, and of the products of pairs.
extern const InstructionSet instruction_set_generic, instruction_set_x86_64_v3, instruction_set_x86_64_v4;
extern const PairKernels pair_kernels_avx512_bf16, pair_kernels_plain;

namespace {

#if defined(LAMINA_WITH_X86_64_V4)
/// The set x86-64-v4 with products of bf16 pairs.
struct BF16Set {
  BF16Set(const char* name, const PairKernels& pairs) {
    for (int half = 0; half < 2; ++half) {
      std::ranges::copy(pairs.tile[half], products.tile[half]);
      std::ranges::copy(pairs.non_temporal_tile[half], products.non_temporal_tile[half]);
    }
    products.few_columns = nullptr;
    set.name = name;
    set.pairs = &pairs;
    set.f32_pairs = &products;
  }
  BF16Set(const BF16Set&) = delete;

  MicroKernels<float> products = instruction_set_x86_64_v4.f32;
  InstructionSet set = instruction_set_x86_64_v4;
};

const InstructionSet& bf16_set() {
  static const BF16Set with("x86-64-v4-bf16", pair_kernels_avx512_bf16);
  return with.set;
}
const InstructionSet& twin_of_bf16_set() {
  static const BF16Set with("x86-64-v4-bf16-twin", pair_kernels_plain);
  return with.set;
}
#endif

#if defined(__x86_64__)
// The compiler's checks; they include that the system saves the wide registers. Clang's checks know features, not
// levels: a processor with these features has all of x86-64-v3.
[[maybe_unused]] bool runs_v3() {  // unused, like the next one, if only generic is built
#if defined(__clang__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
#else
  return __builtin_cpu_supports("x86-64-v3");
#endif
}

[[maybe_unused]] bool runs_v4() {
  return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

[[maybe_unused]] bool runs_bf16() { return runs_v4() && __builtin_cpu_supports("avx512bf16"); }
#endif

}  // namespace

std::span<const InstructionSet* const> instruction_sets() {
  static const InstructionSet* const sets[] = {
#if defined(LAMINA_WITH_X86_64_V4)
    &bf16_set(),
    &instruction_set_x86_64_v4,
#endif
#if defined(LAMINA_WITH_X86_64_V3)
    &instruction_set_x86_64_v3,
#endif
#if defined(LAMINA_WITH_GENERIC)
    &instruction_set_generic,
#endif
  };
  return sets;
}

bool runs_here(const InstructionSet& set) {
#if defined(LAMINA_WITH_X86_64_V4)
  if (&set == &bf16_set()) return runs_bf16();
  if (&set == &instruction_set_x86_64_v4 || &set == &twin_of_bf16_set()) return runs_v4();
#endif
#if defined(LAMINA_WITH_X86_64_V3)
  if (&set == &instruction_set_x86_64_v3) return runs_v3();
#endif
  return set.name == std::string("generic");
}

const InstructionSet& instruction_set(const std::string& name) {
  std::string known;
  std::vector<const InstructionSet*> sets(instruction_sets().begin(), instruction_sets().end());
#if defined(LAMINA_WITH_X86_64_V4)
  if (name == twin_of_bf16_set().name) sets.push_back(&twin_of_bf16_set());
#endif
  for (const InstructionSet* set : sets) {
    if (name == set->name) {
      if (!runs_here(*set)) throw Unsupported("eigen: this processor lacks the instruction set " + name);
      return *set;
    }
    known += std::string(known.empty() ? "" : ", ") + set->name;
  }
  throw UsageError("eigen: no instruction set '" + name + "' in this build; there are " + known);
}

const InstructionSet& widest_instruction_set() {
  const auto sets = instruction_sets();
  const auto widest = std::ranges::find_if(sets, [](const InstructionSet* set) { return runs_here(*set); });
  if (widest == sets.end())

    throw Unsupported("eigen: this build is for processors with " + std::string(sets.back()->name) +
                      ", which this one lacks; LAMINA_GENERIC=ON builds for all");
  return **widest;
}

}  // namespace lamina::eigen
