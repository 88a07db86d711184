// The choice among the instruction sets that the ops were compiled for.

#include "instruction_set.h"

#include <algorithm>
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "lamina/error.h"

namespace lamina::eigen {

// The symbols of the sets, and of the products of pairs.
extern const InstructionSet instruction_set_generic, instruction_set_x86_64_v3, instruction_set_x86_64_v4;
extern const PairKernels pair_kernels_avx512_bf16, pair_kernels_avx512_bf16_twin, pair_kernels_amx,
    pair_kernels_amx_twin;

namespace {

#if defined(__x86_64__)
// The compiler's checks, which include whether the system saves the wide registers. Clang's checks know features, not
// levels: a processor with these features has all of x86-64-v3.
[[maybe_unused]] bool runs_v3() {  // unused, like the next three, if only generic is built
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

/// Asks Linux, once for the process, for the registers of AMX. The process's signal frames then grow by 8 KiB.
[[maybe_unused]] bool runs_amx() {
#if defined(__linux__)
  constexpr int request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  constexpr unsigned amx_bf16 = 1U << 22, amx_tile = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  static const bool runs = runs_bf16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & amx_bf16) != 0 &&
                           (d & amx_tile) != 0 && syscall(SYS_arch_prctl, request, tile_data) == 0;
  return runs;
#else
  return false;
#endif
}
#endif

#if defined(LAMINA_WITH_X86_64_V4)
/// The set x86-64-v4 with products of bf16 pairs.
struct PairSet {
  PairSet(const char* name, const PairKernels& pairs, bool (*check)()) : runs(check) {
    for (int half = 0; half < 2; ++half) {
      std::ranges::copy(pairs.tile[half], products.tile[half]);
      std::ranges::copy(pairs.non_temporal_tile[half], products.non_temporal_tile[half]);
      std::ranges::fill(products.tile_of_columns[half], nullptr);
    }
    products.rows = pairs.rows;
    products.vectors = pairs.vectors;
    products.enter = pairs.enter;
    products.leave = pairs.leave;
    products.few_columns = nullptr;
    set.name = name;
    set.pairs = &pairs;
    set.f32_pairs = &products;
  }
  PairSet(const PairSet&) = delete;

  bool (*runs)();  ///< whether this processor can run the set
  MicroKernels<float> products = instruction_set_x86_64_v4.f32.kernels;
  InstructionSet set = instruction_set_x86_64_v4;
};

/// The sets with products of bf16 pairs: by AMX and by vdpbf16ps, and the twins of both.
std::span<const PairSet> pair_sets() {
  static const PairSet sets[] = {{"x86-64-v4-amx", pair_kernels_amx, runs_amx},
                                 {"x86-64-v4-bf16", pair_kernels_avx512_bf16, runs_bf16},
                                 {"x86-64-v4-amx-twin", pair_kernels_amx_twin, runs_v4},
                                 {"x86-64-v4-bf16-twin", pair_kernels_avx512_bf16_twin, runs_v4}};
  return sets;
}
#endif

}  // namespace

std::span<const InstructionSet* const> instruction_sets() {
  static const InstructionSet* const sets[] = {
#if defined(LAMINA_WITH_X86_64_V4)
    &pair_sets()[0].set,
    &pair_sets()[1].set,
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
  for (const PairSet& pairs : pair_sets())
    if (&set == &pairs.set) return pairs.runs();
  if (&set == &instruction_set_x86_64_v4) return runs_v4();
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
  for (const PairSet& pairs : pair_sets())
    if (name == pairs.set.name && name.ends_with("-twin")) sets.push_back(&pairs.set);
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
