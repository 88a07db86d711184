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
  /// The extent of the batch axis of every input that has a batch axis. 0: as in the file, and 1 if the file leaves it
  /// open. The operators determine the batch axis: as a rule the first axis, or the second if an LSTM or a GRU reads
  /// the first as time.
  int batch = 0;
  /// By the name of an input: its batch axis, in place of the axis that the operators determine.
  std::map<std::string, int> batch_axes{};
  /// Extents that the file leaves open, by the names that onnx_open_extents lists. The extent of the batch, and extents
  /// of inputs that the output does not need, can be left out.
  std::map<std::string, std::int64_t> extents{};
  /// The output of the file that becomes the output of the graph. Empty: the only output. A file with several outputs
  /// needs a name.
  std::string output{};
  /// Inputs of the file that become constants, with their numbers: weights that the file leaves to its caller.
  TensorFile constants{};
  /// Limit on the number of values that reading computes beyond those in the file (ConstantOfShape, Expand, weights
  /// with two readers).
  std::int64_t most_computed_numbers = std::int64_t{1} << 28;
  /// Also reads a BatchNormalization that always normalises by the batch, and a Dropout that always drops. Models that
  /// were exported for training have such nodes. They become BatchNorm and Dropout, which do neither in inference.
  bool training = false;
  /// Whether initializers are trained, by their names in the file or by the ends of names ("*.scale"). Other
  /// initializers follow docs/onnx.md.
  std::map<std::string, bool> trains{};
  /// Whether the error that refuses a file has a line for each node instead of one for each kind of node.
  bool all_refusals = false;
};

/// An axis in the file may hold several axes of the graph's value, or parts of them. This is one of these factors:
/// `extent` steps, each `stride` elements apart in the dense value in n, c, h, w order.
struct OnnxFactor {
  std::int64_t extent;
  std::int64_t stride;
  bool operator==(const OnnxFactor&) const = default;
};

/// An input or output, in the file's form and in the graph's form.
struct OnnxValue {
  std::string name;                           ///< name in the file
  std::vector<std::int64_t> extents;          ///< extents in the file, outermost first
  std::string node;                           ///< the node of the graph whose value it is
  std::vector<std::vector<OnnxFactor>> axes;  ///< factors of each axis in the file, outermost first
};

/// A network that was read.
struct OnnxModel {
  Graph graph;
  TensorFile weights;  ///< weights by the graph's names, for load_weights
  std::vector<OnnxValue> inputs;
  OnnxValue output;
  std::int64_t opset = 0;
  std::int64_t replaced_batch = 0;  ///< batch of the file if the options have another; 0: none
  /// Notes for the owner of the file before training or timing it. Each is a sentence without a full stop, for example
  /// about batch norms that the exporter folded, a batch that is not the first axis, or parameters that are trained
  /// although the file does not say so.
  std::vector<std::string> notes{};
};

/// Reads a model of opset 6 to 27 as a graph of the nodes that its output needs. docs/onnx.md lists the operators.
///
/// Names: a node of the graph has the name of the file's node or, if that has none, of its first output. Inputs keep
/// their names. Shapes and functions of constants are computed while reading. Nodes that only rename or regroup axes
/// (Reshape, Flatten, Squeeze, Transpose, Identity, ...) are left out of the graph: OnnxValue says where numbers are.
///
/// Throws FileError for an invalid file: wrong lengths, nodes that read a value that no earlier node makes, extents
/// that do not match, external data outside the file's folder. Memory is in proportion to the file and its external
/// data, and to `most_computed_numbers`. Throws Unsupported for a valid file that the ops of this library do not
/// express. Its message has up to ten lines. A line is for one kind of node: the number of nodes, the name of the
/// first, and the reason; from the seventh kind on, one line lists all. Throws UsageError for options that do not fit
/// the file.
LAMINA_API OnnxModel read_onnx(const std::filesystem::path&, const OnnxOptions& = {});

/// An extent of an input that a file leaves open.
struct OnnxOpenExtent {
  std::string name;    ///< name of the extent in the file
  bool batch = false;  ///< whether only batch axes have it: OnnxOptions::batch sets it
};

/// The names that OnnxOptions::extents may have for a file, each once, in the file's order. Throws FileError for an
/// invalid file.
LAMINA_API std::vector<OnnxOpenExtent> onnx_open_extents(const std::filesystem::path&);

/// Writes a graph and its weights (by its names, as save_weights gives them) as a model of opset 21 with an open batch.
/// read_onnx with the graph's batch reads back an equal graph and the same weights, all numbers as f32. The file
/// appears whole or not at all.
///
/// Throws Unsupported, naming every such node, for ops that are not written (losses, Embedding, Recurrent of ids or
/// with hard gates, an even Lrn, a Resize whose steps do not give its size), and for an LSTM and a GRU that share a
/// parameter. Throws UsageError for weights that are missing or of another size, FileError for a number beyond f32, a
/// model beyond 2 GB, a full disk.
LAMINA_API void write_onnx(const std::filesystem::path&, const Graph&, const TensorFile& weights);

/// to_graph gives numbers in the file's order as dense n, c, h, w, for `upload`. from_graph gives the numbers of
/// `download` in the file's order. Both throw UsageError unless the number of values matches the extents.
LAMINA_API std::vector<double> to_graph(const OnnxValue&, std::span<const double>);
LAMINA_API std::vector<double> from_graph(const OnnxValue&, std::span<const double>);

}  // namespace lamina
