#pragma once
// The suite that every backend runs: an op's case by hand, against the oracle, in whole numbers, and by differences.

#include <cstdint>
#include <functional>
#include <string>

#include "lamina/gradient_check.h"
#include "tests/support/backend.h"
#include "tests/support/numbers/bounds.h"

namespace lamina::test {

enum class Fill : std::uint8_t { normal, integers };

/// Suitable numbers for the case: a permutation for max pooling, distance from 0 for ReLU (also inside a chain),
/// positive variances, valid labels (some of them -1) and ids, and random upstream gradients, never ones.
/// Numbers that a unit of type `dtype` has in 16 bits are rounded to 16 bits.
Feed make_feed(const Case&, std::uint64_t key, Fill = Fill::normal, DType dtype = DType::f32);

/// As make_feed(), but numbers before a ReLU inside a chain may lie near its kink: no draw of very many numbers keeps
/// clear of it. The operand of an Add has the shape of x.
Feed make_large_feed(const Case&, std::uint64_t key);

/// The oracle's result: every op of the chain on its own, in f64.
Result reference(const Case&, const Feed&);

/// Bounds of a whole chain whose first op uses these algorithms. The tail may have ReLU, Add and a global average pool,
/// other functions behind an Add alone, and in inference a batch norm and other functions behind any op.
Bounds chain_bounds(const Case&, const Feed&, const Algorithms& = {});

/// Fails the running test with the first element that is NaN or too far from the oracle's. A 16-bit element may differ
/// by its own rounding as well: by u times its value, and in f16 also by half the spacing of subnormal numbers (2^-25).
void check_close(const std::string& what, const Values& got, const Values& want, const Bound&, double epsilon,
                 const Values& old = {}, DType dtype = DType::f32);

double epsilon(DType);

/// The algorithms that a choice selects.
Algorithms algorithms_of(Backend&, const Spec&, const Choice&);

/// The backend's own pick, and all algorithms of the passes that the unit has, as triples: the i-th of each pass.
std::vector<Choice> choices(const Spec&, const std::function<std::vector<std::string>(Pass)>& algorithms);

/// Checks every element type, algorithm, beta and pitch, shared memory and unwanted gradients on the backend under
/// test. Returns false if the backend does not fuse the tail.
bool check_against_oracle(const Case&, std::uint64_t key = 1);

/// The same for all cases. The backend must take each of them.
void check_all_against_oracle(const std::vector<Case>&);

/// Checks whole numbers through every algorithm that only adds and multiplies: every bit must equal the oracle's.
void check_integers(const Case&, std::uint64_t key = 1);
void check_all_integers(const std::vector<Case>&);

/// Runs the case on the backend under test in every element type and by every algorithm and compares every tensor of
/// `want` that is not empty. The tolerance is 16 epsilon of the largest number in the tensor: examples have short sums.
/// Old gradients are not added to; dy may be omitted if no gradient is wanted.
void check_example(const Case&, const Feed&, const Result& want);

/// As run_unit(), for a case that the backend under test takes, by the algorithms that it picks.
Result run_case(const Case&, const Feed&, const Conditions& = {});

/// Checks that every half is widened exactly, and that numbers of f32 are rounded once: in several images, with gaps
/// between them if `pitched`. One image is whole packs.
void check_conversions(Backend&, DType half, int images = 1, bool pitched = false);

/// Cases that are small, and odd at every edge; larger cases only if a kernel needs them. By every algorithm, in both
/// types, they launch every kernel except tiles that are too large for them (tests/kernels). To reach a new kernel, add
/// the smallest case that runs it.
std::vector<Case> kernel_cases();

/// A graph of the case: inputs x0, x1, ..., the op as "op", its tail as "tail0", ...
Graph graph_of(const Case&);

/// Checks gradients in f64 through Plan against central differences, fused and not.
void check_differences(const Case&, const GradientCheck& = {});
void check_all_differences(const std::vector<Case>&);  ///< all cases in training mode

/// Checks y and every gradient that was wanted, against f64 and bounds. Gradients were added to those of `old`, if
/// given. y and dx are of `dtype`.
void check_result(const Result& got, const Result& want, const Bounds&, double epsilon, const Feed* old = nullptr,
                  DType dtype = DType::f32);

}  // namespace lamina::test
