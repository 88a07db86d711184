#pragma once
// The ops compiled for one instruction set. Other code uses only one of their symbols, the set. All sets come from the
// same sources; one of them is chosen at run time.

#include <span>
#include <string>
#include <tuple>

#include "lamina/backend.h"
#include "lib/backends/common/algorithms.h"
#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "lib/backends/eigen/micro_kernels/pairs.h"
#include "lib/backends/eigen/micro_kernels/register_sums.h"

namespace lamina::eigen {

struct Context;
class ThreadPool;

/// The kernels of a set for one element type.
template <class T>
struct KernelsOf {
  const MicroKernels<T>& kernels;
  const MicroKernels<T>& kernels_6x2;  ///< for products whose blocks are packed for the L2 cache
  const RegisterSums<T>& sums;
};

/// The functions of a set. They run only on processors that have the set.
struct InstructionSet {
  const char* name;  ///< "generic", "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16", "x86-64-v4-amx"
  KernelsOf<float> f32;
  KernelsOf<double> f64;
  /// Lowers an op without a table of algorithms.
  Lowered (*lower)(const Spec&, const Choice&, const Context&);
  // The tables of the ops with several algorithms.
  const AlgorithmTable<const Context>&conv, &connected;
  // The work of Backend::update() and Backend::check_overflow().
  void (*update)(const Update&, ThreadPool&);
  void (*check_overflow)(const UpdateTensors&, ThreadPool&);
  void (*convert)(const Tensor& to, const Tensor& from, ThreadPool&);  ///< as MixedPrecisionLowering::convert
  const PairKernels* pairs = nullptr;              ///< kernels of bf16 pairs; null: no instruction for them
  const MicroKernels<float>* f32_pairs = nullptr;  ///< f32 kernels with tiles of pairs, if there are pairs

  template <class T>
  const KernelsOf<T>& of() const {
    return std::get<const KernelsOf<T>&>(std::tie(f32, f64));
  }
};

/// The sets of this build, widest first. The last is "generic", if it is built: the compiler's default for every
/// processor of its target.
std::span<const InstructionSet* const> instruction_sets();

/// Whether this processor can run the set.
bool runs_here(const InstructionSet&);

/// The set of this name. Tests may name x86-64-v4-bf16-twin and x86-64-v4-amx-twin, which emulate the instructions.
/// Throws UsageError for a set that this build lacks, Unsupported for a set that does not run here.
const InstructionSet& instruction_set(const std::string& name);

/// The widest set that this processor runs. Throws Unsupported if it runs no set of this build.
const InstructionSet& widest_instruction_set();

}  // namespace lamina::eigen
