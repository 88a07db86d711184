// Which instruction set's micro-kernels are taken.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lamina/error.h"
#include "micro_kernels.h"

namespace lamina::eigen {
namespace {

constexpr double worth_narrowing = 1.1;

// Widest first.
const InstructionSet* const sets[] = {
#if defined(__x86_64__)
    &instruction_set_v4,
    &instruction_set_v3,
#endif
    &instruction_set_generic,
};

/// Of one register tile over a panel that stays in the first-level cache, the best of several runs.
double multiply_adds_per_second(const InstructionSet& set) {
  constexpr std::int64_t depth = 128;
  constexpr int runs = 7, calls = 50;
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
                         .scale = nullptr,
                         .bias = nullptr,
                         .add = false,
                         .relu = false};
  double best = 0;
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) kernels.tile[0][kernels.vectors - 1](tile);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(calls * depth * kernels.rows * kernels.width()) / seconds.count());
  }
  return best;
}

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

const InstructionSet& instruction_set(const std::string& name) {
  std::string known;
  for (const InstructionSet* set : sets) {
    if (name == set->name) {
      if (!runs_here(*set)) throw Unsupported("eigen: this processor lacks the instruction set " + name);
      return *set;
    }
    known += std::string(known.empty() ? "" : ", ") + set->name;
  }
  throw UsageError("eigen: unknown instruction set '" + name + "'; there are " + known);
}

const InstructionSet& fastest_instruction_set() {
  static const InstructionSet& fastest = [&]() -> const InstructionSet& {
    const InstructionSet* best = nullptr;
    double best_rate = 0;
    for (const InstructionSet* set : sets) {
      if (!runs_here(*set)) continue;
      if (set == &instruction_set_generic && best != nullptr) break;  // never the faster one
      const double rate = multiply_adds_per_second(*set);
      if (best == nullptr || rate > worth_narrowing * best_rate) {
        best = set;
        best_rate = rate;
      }
    }
    return best == nullptr ? instruction_set_generic : *best;
  }();
  return fastest;
}

}  // namespace lamina::eigen
