#pragma once
// Networks from ONNX files, as graphs with weights, and back.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lamina/api.h"
#include "lamina/graph.h"
#include "lamina/weights.h"

namespace lamina {

struct OnnxOptions {
  /// The extent of the batch axis of every input that has one. 0: as in the file, and 1 where the file leaves it open.
  /// The operators say which axis that is, as a rule the first; of an LSTM's input with time first it is the second.
  int batch = 0;
  /// The batch axis of inputs, by their names, where it is another than the operators say.
  std::map<std::string, int> batch_axes{};
  /// Extents that the file leaves open, by the names that onnx_open_extents lists. Those of the batch, and of inputs
  /// that the output does not need, can be left out.
  std::map<std::string, std::int64_t> extents{};
  /// The output of the file that becomes the graph's; a file with several needs it. Empty: the only one.
  std::string output{};
  /// Inputs of the file that become constants, with their numbers: weights that the file leaves to its caller.
  TensorFile constants{};
  /// Limit of numbers that reading computes beyond those in the file (ConstantOfShape, Expand, weights of two readers).
  std::int64_t most_computed_numbers = std::int64_t{1} << 28;
  /// Also reads a BatchNormalization that normalises by the batch and a Dropout that drops wherever the file runs, as a
  /// model that was exported for training has them: as BatchNorm and Dropout, which do so in training alone.
  bool training = false;
  /// Whether initializers train, by their names in the file, or by how these end ("*.scale"). Those that are not here
  /// train as docs/onnx.md says.
  std::map<std::string, bool> trains{};
  /// The error that refuses a file has a line for each node, not for each kind of them.
  bool all_refusals = false;
};

/// Part of an axis in the file: `extent` steps of `stride` elements, in the n, c, h, w order of the graph's value.
struct OnnxFactor {
  std::int64_t extent;
  std::int64_t stride;
  bool operator==(const OnnxFactor&) const = default;
};

/// An input or the output, as the file has it and as the graph has it.
struct OnnxValue {
  std::string name;                           ///< in the file
  std::vector<std::int64_t> extents;          ///< in the file, outermost first
  std::string node;                           ///< the node of the graph whose value it is
  std::vector<std::vector<OnnxFactor>> axes;  ///< by axis in the file: its factors, outermost first
};

/// A network that was read.
struct OnnxModel {
  Graph graph;
  TensorFile weights;  ///< by the graph's names: what load_weights takes
  std::vector<OnnxValue> inputs;
  OnnxValue output;
  std::int64_t opset = 0;
  std::int64_t replaced_batch = 0;  ///< batch of the file, where the options have another; 0: none
  /// What the owner of the file should know before training or timing it, a sentence each, without a full stop: batch
  /// norms that the exporter folded, a batch that is not the first axis, what trains without the file saying it.
  std::vector<std::string> notes{};
};

/// Reads a model of opset 6 to 27 and makes a graph of what its output needs. docs/onnx.md lists the operators.
///
/// Names: a node of the graph has the name that the file's node has, else that of its first output; inputs have those
/// of the file. Shapes and functions of constants are computed while reading. Nodes that only rename or regroup axes
/// (Reshape, Flatten, Squeeze, Transpose, Identity, ...) are left out of the graph: OnnxValue says where numbers are.
///
/// Throws FileError for an invalid file: wrong lengths, nodes that read a value that no earlier node makes,
/// extents that do not match, external data outside the file's folder. Memory is in proportion to the file and its
/// external data, and to `most_computed_numbers`. Throws Unsupported for a valid file that the ops of this library do
/// not express. Its message names every such operator in ten lines: how many nodes, the first one's name, the reason.
/// Throws UsageError for options that do not fit the file.
LAMINA_API OnnxModel read_onnx(const std::filesystem::path&, const OnnxOptions& = {});

/// An extent of inputs that a file leaves open.
struct OnnxOpenExtent {
  std::string name;    ///< that the file has for it
  bool batch = false;  ///< only batch axes have it: OnnxOptions::batch gives it
};

/// The names that OnnxOptions::extents can have for a file: each once, in the file's order. Throws FileError for an
/// invalid file.
LAMINA_API std::vector<OnnxOpenExtent> onnx_open_extents(const std::filesystem::path&);

/// Writes a graph and its weights (by its names, as save_weights gives them) as a model of opset 19, whose batch is
/// open. read_onnx with the graph's batch reads back an equal graph and the same weights, all numbers as f32. The file
/// appears whole or not at all.
///
/// Throws Unsupported, naming every such node, for ops that are not written (losses, Embedding, Lstm, an even
/// Lrn), UsageError for weights that are missing or of another size, FileError for a number beyond f32, a
/// model beyond 2 GB, a full disk.
LAMINA_API void write_onnx(const std::filesystem::path&, const Graph&, const TensorFile& weights);

/// A tensor of the file's format alone (TensorProto), as beside test cases.
LAMINA_API HostTensor read_onnx_tensor(const std::filesystem::path&);

/// to_graph: numbers in the file's order as dense n, c, h, w, for `upload`. from_graph: those of `download` in the
/// file's order. Both throw UsageError unless the number of numbers is that of the extents.
LAMINA_API std::vector<double> to_graph(const OnnxValue&, std::span<const double>);
LAMINA_API std::vector<double> from_graph(const OnnxValue&, std::span<const double>);

}  // namespace lamina
