#pragma once
// The table of the library's algorithms of a convolution, and the choice of one.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/backends/common/algorithms.h"
#include "lib/backends/cudnn/graph/unit_engines.h"
#include "lib/backends/cudnn/library/common.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::cudnn {

/// A row: an algorithm of the library.
struct Row {
  const char* name;
  int number;
  bool deterministic;  ///< whether the manual calls it deterministic; a query may deny it for a shape
  bool adds = true;    ///< whether it supports beta 1 for every shape; else it may refuse beta 1 when it runs
};

/// The rows of a pass, by number.
std::span<const Row> conv_algorithms(Pass);

/// Whether the unit has a fused call: it is of f32, has a bias or a folded batch norm, ends in a ReLU, and its addend,
/// if any, has the pitch of y. Only running the call shows whether the library supports it.
bool has_fused_call(const Spec&);

/// The names of all rows, and of their fused calls.
std::vector<std::string> conv_algorithm_names(const Spec&, Pass);

/// The descriptors of one pass of one convolution, and the library's queries about it.
class ConvProblem {
 public:
  /// `image` is x or dx, `result` y or dy.
  ConvProblem(const Conv&, const Spec&, Pass, TensorDescriptor image, TensorDescriptor result, Session&);

  const Api& api() const { return api_; }
  Pass pass() const { return pass_; }
  TensorObject* image() const { return image_.get(); }
  TensorObject* result() const { return result_.get(); }
  FilterObject* filter() const { return filter_.get(); }
  ConvolutionObject* convolution() const { return convolution_.get(); }

  void set_math(int math);
  std::vector<AlgorithmResult> ask() const;  ///< in the library's order, best first; `status` shows a refusal
  Status workspace(int algorithm, std::size_t& bytes) const;

 private:
  template <class Ask>
  auto with_questions(const Ask&) const;

  Session& session_;
  const Api& api_;
  Pass pass_;
  TensorDescriptor image_, result_;
  FilterDescriptor filter_;
  ConvolutionDescriptor convolution_;
};

/// An engine or a row as a step runs it. A row has no plan. A row's name is "heuristic" if the query had no device and
/// no algorithm was named. A row is deterministic if the manual and the library call it so; "heuristic" is
/// deterministic if the choice demands that.
struct Taken : graph::TakenEngine {
  int number = 0;
  bool fused = false;               ///< row: whether it is a fused call; engine: whether it masks dx by x
  std::size_t workspace_bytes = 0;  ///< the library's part; without a device the limit less our own part
  bool exact = true;                ///< whether workspace_bytes is the exact need
};

/// The step of one pass. pick() tries the engines, if the session has them, and then the rows in the library's order.
/// `make` makes the step of the taken engine or row. Before that, if there is a device, the problem's descriptor gets
/// the row's math type. Three kinds of rows are taken only by name: if the pass `adds`, rows that may refuse to add;
/// rows without an answer; fused calls. `own_bytes` of the workspace are ours.
Lowered::Step pick_conv(const std::string& unit, const Spec&, ConvProblem&, const Choice&, bool adds,
                        std::size_t own_bytes, Session&, const std::function<Lowered::Step(const Taken&)>& make);

/// A workspace: the library's bytes, then ours.
inline std::size_t with_own(std::size_t bytes, std::size_t own_bytes) {
  return own_bytes == 0 ? bytes : aligned(bytes) + own_bytes;
}

}  // namespace lamina::cudnn
