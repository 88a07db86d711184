#pragma once
// Runs one unit of work on a backend without a plan, in guarded memory, and checks what the backend declared.

#include <optional>
#include <string>
#include <vector>

#include "lamina/backend.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// A further op of a chain. Its operand number `operand` is the value so far.
struct Link {
  Op op;
  int operand = 0;
};

/// A computation: an op, its input shapes, and the ops fused into it.
struct Case {
  std::string name;
  Op op;
  std::vector<Shape> x;
  std::vector<Link> tail{};
  Mode mode = Mode::training;
};

std::string to_string(const Case&);

/// The conditions of a computation.
struct Conditions {
  DType dtype = DType::f64;
  Layout layout = Layout::nchw;
  bool pitched = false;       ///< gaps between images, in values and (different ones) in gradients
  bool adds = false;          ///< beta 1 for every gradient
  std::vector<bool> wants{};  ///< per x: whether dx is wanted; empty: all are; never the dx of labels and ids
};

std::string to_string(const Conditions&);

/// The spec of a case under conditions; empty if the backend refuses to fuse its tail.
std::optional<Spec> make_spec(const Backend&, const Case&, const Conditions&);

/// The input of a run, dense, in the order of the spec. `dx` and `dw` are old contents, which are used if the spec
/// adds.
struct Feed {
  std::vector<Values> x, w{}, state{};
  Values dy{};
  std::vector<Values> dx{}, dw{};
};

/// The results. `dx[i]` is empty if not wanted; in inference mode there are no gradients.
struct Result {
  Values y{};
  std::vector<Values> dx{}, dw{}, state{};
  bool operator==(const Result&) const = default;
};

/// Sharing of tensors, as a plan might arrange it.
struct Sharing {
  int y_in_x = -1;    ///< forward writes y at the address of this x, if declared
  int dx_in_dy = -1;  ///< backward writes this dx at the address of dy, if declared
};

/// Lowers the spec and runs all its steps in the order of the contract. Every tensor and block lies between walls.
/// Targets, saved, scratch, prepared and workspace start as NaN. Between the passes, x and y that backward does not
/// read (as declared) are filled with NaN. Fails the running test if a wall was written to, if an input
/// was changed, if a dx with `dx_is_dy` is not dy, or if `recompute` does not make y again.
Result run_unit(Backend&, const Spec&, const Choice&, const Feed&, const Sharing& = {});

}  // namespace lamina::test
