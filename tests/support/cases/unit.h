#pragma once
// Runs one unit of work on a backend without a plan, in guarded memory, and checks the backend's declarations.

#include <optional>
#include <string>
#include <vector>

#include "lamina/backend.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// A further op of a chain. Its input number `operand` is the value so far.
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
  bool pitched = false;       ///< whether there are gaps between images, of different sizes for values and gradients
  bool adds = false;          ///< whether every gradient is added to old contents
  std::vector<bool> wants{};  ///< whether each dx is wanted; empty: all except the dx of labels and ids
};

std::string to_string(const Conditions&);

/// The spec of a case under conditions; empty if the backend refuses to fuse its tail.
std::optional<Spec> make_spec(const Backend&, const Case&, const Conditions&);

/// The input tensors of a run, dense, in the order of the spec. `dx` and `dw` are old gradients, which are used only if
/// the spec adds to gradients.
struct Feed {
  std::vector<Values> x, w{}, state{};
  Values dy{};
  std::vector<Values> dx{}, dw{};
};

/// The results of a run. `dx[i]` is empty if it is not wanted. In inference there are no gradients.
struct Result {
  Values y{};
  std::vector<Values> dx{}, dw{}, state{};
  bool operator==(const Result&) const = default;
};

/// Sharing of memory between tensors, as in a plan.
struct Sharing {
  int y_in_x = -1;    ///< index of the x in whose memory forward writes y, if declared
  int dx_in_dy = -1;  ///< index of the dx that backward writes in dy's memory, if declared
};

/// Lowers the spec and runs all its steps in the order of the contract. Every tensor and block is between guard regions
/// (walls). Outputs, saved, scratch, prepared and workspace are NaN at first. Between the passes, an x or y that
/// backward does not read, as declared, is filled with NaN. Fails the running test if a wall or an input was changed,
/// if a dx with `dx_is_dy` is not dy, or if `recompute` does not give y again.
Result run_unit(Backend&, const Spec&, const Choice&, const Feed&, const Sharing& = {});

}  // namespace lamina::test
