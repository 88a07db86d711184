#pragma once
// The zoo: classic networks by name, each exactly as its source defines it.

#include <string_view>
#include <vector>

#include "lamina/api.h"
#include "lamina/graph.h"

namespace lamina::nets {

struct Options {
  int batch = 16;
  int image = 0;          ///< rows and columns of the input; 0: the network's own
  int classes = 0;        ///< channels of the output; 0: the network's own
  int width_divisor = 1;  ///< divides every hidden width (rounded up): narrow versions for tests
  bool dropout = true;    ///< whether to include the dropout of the source
  bool softmax = true;    ///< whether to include the softmax of the source, if it has one
};

/// How the network was timed for the published tables.
struct Protocol {
  bool softmax = false;         ///< whether the timed net ends in a softmax
  bool input_gradient = false;  ///< whether the gradient with respect to the image is computed
  bool accumulate = true;       ///< whether parameter gradients are added to the old gradients
};

/// What is known of a network before it is built.
struct Info {
  std::string_view name;
  std::string_view source;  ///< one line of provenance
  int image;                ///< rows and columns of its original input
  int smallest_image;       ///< least rows and columns; below it, build throws ShapeError
  int channels;             ///< channels of the image
  int classes;              ///< channels of the output, which may be an image
  Protocol protocol;
};

LAMINA_API const std::vector<Info>& list();          ///< in the order of the published tables
LAMINA_API const Info& info(std::string_view name);  ///< throws UsageError with near names

/// Throws UsageError (unknown name, options out of range), ShapeError (an image below the smallest; both are named).
LAMINA_API Graph build(std::string_view name, const Options& = {});

}  // namespace lamina::nets
