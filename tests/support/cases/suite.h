#pragma once
// The suite that every backend runs: cases of an op by hand, compared with the oracle, in whole numbers, and by
// differences.

#include <cstdint>
#include <functional>
#include <string>

#include "lamina/gradient_check.h"
#include "tests/support/backend.h"
#include "tests/support/numbers/bounds.h"

namespace lamina::test {

enum class Fill : std::uint8_t { normal, integers };

/// Suitable random numbers for the case: a permutation for max pooling, numbers away from 0 for ReLU (also inside a
/// chain), positive variances, valid labels (some are -1) and ids, and a random dy. If `dtype` has 16 bits, values of
/// this type are rounded to 16 bits.
Feed make_feed(const Case&, std::uint64_t key, Fill = Fill::normal, DType dtype = DType::f32);

/// Like make_feed(), but numbers before a ReLU inside a chain may be near its kink, which is unavoidable with very many
/// numbers. The operand of an Add has the shape of x.
Feed make_large_feed(const Case&, std::uint64_t key);

/// The oracle's result: the ops of the chain one by one, in f64.
Result reference(const Case&, const Feed&);

/// Bounds of a whole chain whose first op uses these algorithms. The tail may have ReLU, Add and a global average pool.
/// Other functions may follow only an Add, but in inference batch norm and other functions may follow any op.
Bounds chain_bounds(const Case&, const Feed&, const Algorithms& = {});

/// Fails the running test with the first element that is NaN or too far from `want`. A 16-bit element may also differ
/// by its own rounding: by u times its value, and in f16 also by half the spacing of subnormal numbers (2^-25).
void check_close(const std::string& what, const Values& got, const Values& want, const Bound&, double epsilon,
                 const Values& old = {}, DType dtype = DType::f32);

double epsilon(DType);

/// The algorithms that a choice selects for the unit.
Algorithms algorithms_of(Backend&, const Spec&, const Choice&);

/// The empty choice (the backend's own pick), and choices that name the i-th algorithm of each of the unit's passes.
std::vector<Choice> choices(const Spec&, const std::function<std::vector<std::string>(Pass)>& algorithms);

/// Checks every element type, algorithm, beta and pitch, shared memory and unwanted gradients on the backend under
/// test. Returns false if the backend does not fuse the tail.
bool check_against_oracle(const Case&, std::uint64_t key = 1);

/// check_against_oracle() for all cases. The backend must support each case.
void check_all_against_oracle(const std::vector<Case>&);

/// Runs whole numbers through every algorithm that only adds and multiplies. Every bit must equal the oracle's.
void check_integers(const Case&, std::uint64_t key = 1);
void check_all_integers(const std::vector<Case>&);

/// Runs the case on the backend under test in every element type by every algorithm, and compares the results with
/// every tensor of `want` that is not empty. The tolerance is 16 epsilon of the tensor's largest number, because
/// examples have short sums. Nothing is added to old gradients. dy may be omitted if no gradient is wanted.
void check_example(const Case&, const Feed&, const Result& want);

/// Like run_unit(), for a case that the backend under test supports, with the algorithms that the backend picks.
Result run_case(const Case&, const Feed&, const Conditions& = {});

/// Checks that every half is converted to f32 exactly, and f32 to halves with one rounding: in several images, with
/// gaps between images if `pitched`. A single image is a whole number of packs.
void check_conversions(Backend&, DType half, int images = 1, bool pitched = false);

/// Small cases with odd extents, and larger cases only if a kernel needs them. With every algorithm and both types they
/// launch every kernel, except tiles that are too large (tests/kernels). For a new kernel, add the smallest case that
/// launches it.
std::vector<Case> kernel_cases();

/// A graph of the case: inputs x0, x1, ..., the op as "op", its tail as "tail0", ...
Graph graph_of(const Case&);

/// Compares gradients of plans in f64 with central differences, fused and unfused.
void check_differences(const Case&, const GradientCheck& = {});
void check_all_differences(const std::vector<Case>&);  ///< all cases in training mode

/// Compares y and every wanted gradient with results in f64, within bounds. If `old` is given, gradients were added to
/// its gradients. y and dx have the type `dtype`.
void check_result(const Result& got, const Result& want, const Bounds&, double epsilon, const Feed* old = nullptr,
                  DType dtype = DType::f32);

}  // namespace lamina::test
