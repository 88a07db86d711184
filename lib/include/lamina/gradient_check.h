#pragma once
// The gradient test as a public function, for use on your own net.

#include <cstdint>
#include <string>
#include <vector>

#include "lamina/api.h"
#include "lamina/plan.h"

namespace lamina {

struct GradientCheck {
  int coordinates = 64;  ///< tensors of at most so many elements are checked one by one, larger ones along directions
  int directions = 4;    ///< random directions per larger tensor
  double step = 1e-4;    ///< of the differences; halved near a kink (ReLU, max pooling)
  std::uint64_t seed = 1;
};

struct GradientError {
  std::string tensor;         ///< "conv1.weight", or the name of an input
  double relative_error = 0;  ///< largest |difference - gradient| over the tensor's largest |difference|, or
                              ///< over 1e-7 |y r| / step if that is larger (rounding hides less); infinite for a NaN
  double step = 0;            ///< smallest step that was used
};

/// Compares the gradients of L = <output, r>, for a random r, with central differences of fourth order
/// (L(-2h) - 8 L(-h) + 8 L(h) - L(2h)) / 12h, for every parameter and every input but labels and ids, which are drawn
/// once. Intended for f64.
/// Inputs are redrawn a few times to avoid kinks, parameter vectors are moved off 0 and 1, and parameter
/// gradients are filled beforehand: with NaN where overwritten, with random numbers where added to.
/// A kink is found by comparing the signs before every ReLU, the winners of every max pooling and, of every cross
/// entropy, the largest logits and what is clipped, in an unfused twin of the plan. The step is halved until there is
/// none. Running statistics and dropout steps are restored before each run. Throws what Plan throws, and UsageError in
/// inference mode.
LAMINA_API std::vector<GradientError> check_gradients(const Graph&, Backend&, const Options&,
                                                      const GradientCheck& = {});

/// The largest of them; 0 if empty.
LAMINA_API double worst(const std::vector<GradientError>&);

}  // namespace lamina
