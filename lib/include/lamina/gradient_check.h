#pragma once
// The gradient test as a public function, for use on your own net: REQUIRE(check_gradients(...).passed()).

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lamina/api.h"
#include "lamina/plan.h"

namespace lamina {

struct GradientCheck {
  int coordinates = 64;  ///< an f64 tensor of at most this many elements is checked element by element; every other
                         ///< tensor is checked along directions
  int directions = 4;    ///< directions per tensor: the direction of its gradient, then random ones
  double step = 0;       ///< step of the differences; halved near a kink (ReLU, max pooling). 0: the fourth root of the
                         ///< type's unit roundoff, which is 1e-4 in f64 and 1.6e-2 in f32
  std::uint64_t seed = 1;
  std::function<void(Plan&)> start{};  ///< sets parameters; without it they keep the values that a plan draws
  std::function<void(const std::string&)> progress{};  ///< called with what is done next: "[3/62] conv1.weight"
};

/// The element or direction of a tensor with the largest error.
struct LAMINA_API GradientError {
  std::string tensor;                   ///< "conv1.weight", or the name of an input
  std::string place{};                  ///< element: "[3,0,1,2]"; empty: a direction
  double gradient = 0, difference = 0;  ///< derivative at that place, from the gradient and from differences
  double tolerance = 0;                 ///< bound on the error of the differences
  double step = 0;                      ///< step of the differences
  int probes = 0;     ///< coordinates or directions that were compared; 0: every probe has a kink at every step
  int skipped = 0;    ///< coordinates or directions left out, because they have a kink at every step
  bool seen = false;  ///< whether some derivative is above its tolerance; if none is, a gradient of 0 would pass, too

  double times() const;  ///< error in multiples of the tolerance; infinite for a NaN, and without a probe
  bool passed() const { return times() <= 1; }
};

struct LAMINA_API GradientReport {
  std::vector<GradientError> tensors{};

  bool passed() const;  ///< whether all tensors passed; false without a tensor, or with one that has a kink everywhere
  const GradientError& worst() const;  ///< needs at least one tensor
};

/// A line for each tensor that fails, with its worst place, and the verdict.
LAMINA_API std::string to_string(const GradientReport&);

/// Compares the gradients of L = <output, r>, for a random r, with central differences of fourth order
/// (L(-2h) - 8 L(-h) + 8 L(h) - L(2h)) / 12h, for every parameter and every input except labels and ids, which are
/// drawn once. In f64 it detects relative errors of a millionth, or of a ten-thousandth along directions in which L is
/// strongly curved. In f32 roundoff hides errors below a few hundredths of a tensor's gradient.
/// The tolerance of each difference is the sum of two bounds:
/// - curvature: the distance to (L(h) - L(-h)) / 2h, a formula with a greater error;
/// - roundoff: 6 e / h, where e is the error of L. 6 is the sum of the formula's absolute weights, 1.5, times a margin
/// of 4. e is the largest of eight fourth differences of L with 1/64 of the step, divided by sqrt(70), the norm of
/// their weights. The smooth part of L adds nothing to them. e is at least the roundoff of the output alone.
/// Points are rounded to the type, and both sides of the comparison use the rounded points.
/// Inputs are redrawn a few times to avoid kinks, parameter vectors are moved off 0 and 1, and parameter gradients are
/// filled beforehand: with NaN where a pass overwrites them, with random numbers where it adds to them. Kinks are found
/// in an unfused twin of the plan. The check compares the sides of borders (ReLU, PRelu, Pointwise), the winners of
/// maxima and minima (max pooling, Reduce, Binary), and the largest logits and clipped numbers of cross entropies. The
/// step is halved up to ten times until there is no kink; if a kink is left, the place is skipped and counted. Running
/// statistics and dropout steps are restored before each run. Throws what Plan throws, and UsageError in inference mode
/// and in half precision.
LAMINA_API GradientReport check_gradients(const Graph&, Backend&, const Options&, const GradientCheck& = {});

}  // namespace lamina
