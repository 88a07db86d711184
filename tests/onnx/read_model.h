// Helpers for tests: read a model through a file, and run it.

#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "lamina/backend.h"
#include "lamina/device.h"
#include "lamina/onnx.h"
#include "lamina/plan.h"
#include "tests/io/files.h"
#include "tests/support/onnx_model.h"

namespace lamina::test {

using Values = std::vector<double>;
using Names = std::vector<std::string>;

inline OnnxModel read(const Model& model, const OnnxOptions& options = {}) {
  const Folder folder;
  write(folder / "net.onnx", bytes_of(model));
  return read_onnx(folder / "net.onnx", options);
}

/// The output in the file's order of elements. The input's elements are 0, 1, 2, ...
inline std::vector<double> output_of(const OnnxModel& model, DType dtype = DType::f64) {
  const auto backend = make_backend("eigen");
  Plan plan(model.graph, *backend, {.mode = Mode::inference, .dtype = dtype});
  load_weights(plan, model.weights);
  std::vector<double> x(static_cast<std::size_t>(plan.input().shape.count()));
  std::vector<double> y(static_cast<std::size_t>(plan.output().shape.count()));
  std::iota(x.begin(), x.end(), 0.0);
  upload(backend->device(), plan.input(), to_graph(model.inputs.at(0), x));
  plan.forward();
  download(backend->device(), y, plan.output());
  return from_graph(model.output, y);
}

/// The names of tensors, each with its aliases in parentheses.
inline std::string names(const std::vector<Stored>& all) {
  std::string text;
  for (const Stored& its : all) {
    text += " " + its.name;
    for (const std::string& alias : its.aliases) text += " (" + alias + ")";
  }
  return text;
}

/// Checks that a graph with a batch of 2 is read back unchanged. Defined in write_test.cpp.
void check_written(const Graph&);

/// Numbers for every parameter and running statistic. All are different, and exact in f32.
inline TensorFile counted_weights(const Graph& graph) {
  TensorFile weights;
  double next = 1;
  for (const auto& all : {graph.parameters(), graph.states()})
    for (const Stored& its : all)
      for (std::int64_t i = 0; i < its.shape.count() && !its.name.ends_with(".step"); ++i)
        weights[its.name].values.push_back(next = next > 65536 ? 1 : next + 1);
  return weights;
}

}  // namespace lamina::test
