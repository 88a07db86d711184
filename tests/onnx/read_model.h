// A model of a test, read as a file and run.

#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lamina/backend.h"
#include "lamina/device.h"
#include "lamina/onnx.h"
#include "lamina/plan.h"
#include "model.h"
#include "tests/io/files.h"

namespace lamina::test {

inline OnnxModel read(const Model& model, const OnnxOptions& options = {}) {
  const Folder folder;
  write(folder / "net.onnx", bytes_of(model));
  return read_onnx(folder / "net.onnx", options);
}

/// The output in the file's order, for an input that counts from 0.
inline std::vector<double> output_of(const OnnxModel& model) {
  const auto backend = make_backend("eigen");
  Plan plan(model.graph, *backend, {.mode = Mode::inference, .dtype = DType::f64});
  load_weights(plan, model.weights);
  std::vector<double> x(static_cast<std::size_t>(plan.input().shape.count()));
  std::vector<double> y(static_cast<std::size_t>(plan.output().shape.count()));
  std::iota(x.begin(), x.end(), 0.0);
  upload(backend->device(), plan.input(), to_graph(model.inputs.at(0), x));
  plan.forward();
  download(backend->device(), y, plan.output());
  return from_graph(model.output, y);
}

/// One node x -> y, or several.
inline Model of_nodes(std::vector<std::string> nodes, const Extents& x, std::vector<std::string> initializers = {}) {
  return {.nodes = std::move(nodes),
          .initializers = std::move(initializers),
          .inputs = {value("x", x)},
          .outputs = {value("y", {})}};
}

}  // namespace lamina::test
