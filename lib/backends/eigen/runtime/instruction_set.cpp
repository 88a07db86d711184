// The choice among the instruction sets that the ops were compiled for.

#include "instruction_set.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "lamina/choice_cache.h"
#include "lamina/error.h"
#include "lib/device/host/host_device.h"
#include "lib/tune/race.h"

namespace lamina::eigen {

// Each is the one symbol of an object, or of a joined object, of ops.
extern const InstructionSet instruction_set_generic, instruction_set_x86_64_v3, instruction_set_x86_64_v4;
extern const PairKernels pair_kernels_avx512_bf16, pair_kernels_plain;

namespace {

constexpr double worth_narrowing = 1.1;
constexpr int narrowest_bytes = 16;  // of a vector

// How the sets were compiled, as far as it affects their speeds.
#if defined(__clang__)
#define LAMINA_COMPILER __VERSION__
#elif defined(__GNUC__)
#define LAMINA_COMPILER "g++ " __VERSION__
#else
#define LAMINA_COMPILER "another compiler"
#endif
#if defined(__OPTIMIZE__)
constexpr const char* build = "lamina " LAMINA_VERSION ", " LAMINA_COMPILER;
#else
constexpr const char* build = "lamina " LAMINA_VERSION ", " LAMINA_COMPILER ", not optimised";
#endif

#if defined(LAMINA_WITH_X86_64_V4)
/// The set x86-64-v4 with products of pairs.
InstructionSet with_pairs(const char* name, const PairKernels& pairs) {
  InstructionSet set = instruction_set_x86_64_v4;
  set.name = name;
  set.pairs = &pairs;
  return set;
}

const InstructionSet& bf16_set() {
  static const InstructionSet set = with_pairs("x86-64-v4-bf16", pair_kernels_avx512_bf16);
  return set;
}
const InstructionSet& twin_of_bf16_set() {
  static const InstructionSet set = with_pairs("x86-64-v4-bf16-twin", pair_kernels_plain);
  return set;
}
#endif

#if defined(__x86_64__)
/// Whether all these bits of register c are set in the processor's answer.
bool has(unsigned leaf, unsigned bits) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(leaf, &a, &b, &c, &d) != 0 && (c & bits) == bits;
}

// The compiler's built-in checks; they include that the system saves the wide registers.
[[maybe_unused]] bool runs_v3() {  // unused where generic alone is built, as is the next
  return __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         has(1, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B | bit_F16C | bit_MOVBE) &&
         has(0x80000001, bit_LAHF_LM | bit_LZCNT);
}

[[maybe_unused]] bool runs_v4() {
  return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

[[maybe_unused]] bool runs_bf16() { return runs_v4() && __builtin_cpu_supports("avx512bf16"); }
#endif

/// The time of a multiply-add in one register tile, over a panel that stays in the first-level cache.
double seconds_per_multiply_add(const InstructionSet& set) {
  constexpr std::int64_t depth = 128;
  constexpr int calls = 50;
  const MicroKernels<float>& kernels = set.f32;
  std::vector<float> a(static_cast<std::size_t>(kernels.rows * depth), 1.0F);
  std::vector<float> b(static_cast<std::size_t>(kernels.width() * depth), 1.0F);
  std::vector<float> c(static_cast<std::size_t>(kernels.rows * kernels.width()));
  const Tile<float> tile{.depth = depth,
                         .a = a.data(),
                         .lda = depth,
                         .rows = kernels.rows,
                         .b = b.data(),
                         .ldb = kernels.width(),
                         .c = c.data(),
                         .ldc = kernels.width(),
                         .epilogue = {}};
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) kernels.tile[0][kernels.vectors - 1](tile);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return seconds.count() / static_cast<double>(calls * depth * kernels.rows * kernels.width());
}

int vector_bytes(const InstructionSet& set) { return set.f32.lanes * static_cast<int>(sizeof(float)); }

/// The sets that may be the fastest here, widest first. Those of the narrowest vectors never are if there are wider
/// ones, nor is one that has the f32 kernels of another before it.
std::vector<const InstructionSet*> may_be_fastest() {
  std::vector<const InstructionSet*> all;
  for (const InstructionSet* set : instruction_sets()) {
    const bool repeats = !all.empty() && &all.back()->f32 == &set->f32;
    if (runs_here(*set) && vector_bytes(*set) > narrowest_bytes && !repeats) all.push_back(set);
  }
  return all;
}

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
    &instruction_set_generic,
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
  return &set == &instruction_set_generic;
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

const InstructionSet& fastest_instruction_set() {
  static const InstructionSet& fastest = [&]() -> const InstructionSet& {
    const std::vector<const InstructionSet*> all = may_be_fastest();
    if (all.empty()) {  // the last of all sets runs everywhere
      const auto sets = instruction_sets();
      return **std::find_if(sets.begin(), sets.end(), [](const InstructionSet* set) { return runs_here(*set); });
    }
    if (all.size() == 1) return *all.front();
    std::vector<Rounds> rounds;
    for (Raced& one : race(all.size(), [&](std::size_t i) { return seconds_per_multiply_add(*all[i]); }))
      rounds.push_back(std::move(one.rounds));
    return *all[winner(rounds, worth_narrowing)];
  }();
  return fastest;
}

InstructionSetKey instruction_set_key() {
  InstructionSetKey key{.processor = processor_name(), .version = build, .sets = {}};
  for (const InstructionSet* set : may_be_fastest()) key.sets.emplace_back(set->name);
  return key;
}

}  // namespace lamina::eigen
