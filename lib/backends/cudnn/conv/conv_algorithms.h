#pragma once
// The library's algorithms of a convolution: their names, and which one a Choice takes.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/backends/cudnn/library/common.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::cudnn {

struct Algorithm {
  const char* name;
  int number;
  bool deterministic;  ///< by the manual; a query may deny it for a shape
  bool adds = true;    ///< whether it supports beta 1 for every shape; else it may refuse that when it runs
};

/// By number.
std::span<const Algorithm> conv_algorithms(Pass);

/// Follows the name of a forward algorithm: convolution, bias and ReLU in one call of the library.
constexpr std::string_view fused_suffix = "+fused";

/// Whether there is such a call for the unit: f32, with a bias, its own or from a folded batch norm, and a ReLU as
/// the last op. Only running it shows whether the library supports it.
bool has_fused_call(const Spec&);

/// The names that take() accepts.
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
  std::vector<AlgorithmResult> ask() const;  ///< the library's order, best first; a refused one has a status
  Status workspace(int algorithm, std::size_t& bytes) const;

 private:
  Session& session_;
  const Api& api_;
  Pass pass_;
  TensorDescriptor image_, result_;
  FilterDescriptor filter_;
  ConvolutionDescriptor convolution_;
};

/// The result of a Choice for one pass.
struct Taken {
  std::string name;  ///< empty if no device was available for the query
  int number = 0;
  bool fused = false;           ///< by the call of has_fused_call()
  std::size_t workspace_bytes;  ///< the limit if no device was available for the query
  bool exact = true;            ///< whether that is the exact need
  bool deterministic = false;   ///< by the manual and by the library's answer; without a device, as demanded
  Math math = Math::strict;     ///< of the descriptor that runs
};

/// The algorithm of the name, or the first in the library's order, that respects the choice's limit, determinism and
/// math, and that supports beta 1 if the pass `adds`. It sets the math type of the problem's descriptor. A fused
/// call is taken by name only, never by rule. `own_bytes` of the workspace are ours. Throws Unsupported with every
/// reason, UsageError for an unknown name.
Taken take(const std::string& unit, const Spec&, ConvProblem&, const Choice&, bool adds, std::size_t own_bytes,
           Session&);

/// A workspace: the library's bytes, then ours.
inline std::size_t with_own(std::size_t bytes, std::size_t own_bytes) {
  return own_bytes == 0 ? bytes : aligned(bytes) + own_bytes;
}

}  // namespace lamina::cudnn
