#pragma once
// What is the same for all points of a question that a sweep asks.

#include <string>
#include <vector>

#include "answers.h"
#include "bench/measure/config.h"

namespace lamina::bench {

struct Series {
  std::string network, backend;
  DType dtype;
  Layout layout;
  int image;
  std::string algorithm;

  Config config(int batch) const { return {network, backend, dtype, layout, batch}; }
};

/// "resnet18 on eigen, f32 nchw, image 64".
std::string to_string(const Series&);

/// A point with the series that it belongs to.
struct SweptPoint {
  Series series;
  SweepPoint point;
};

/// The points as a table.
std::string points_text(const std::vector<SweptPoint>&);

}  // namespace lamina::bench
