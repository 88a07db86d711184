#pragma once
// From a unit's pass to an operation graph of cuDNN: first as data, which needs no library, then as descriptors.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "descriptor.h"
#include "lamina/backend.h"

namespace lamina::cudnn::graph {

/// The tensors that a graph names, by cuDNN's unique id. The backward graphs of a convolution or a fully connected
/// layer have dx, dw and dy at the ids of x, w and y; only a masked dx has id_dx. Other gradients have ids of their
/// own. Tensors between two operations are not stored, and have ids from `first_virtual` on.
enum TensorId : std::int64_t {
  not_stored = 0,
  id_x = 1,
  id_w,
  id_y,
  id_bias,
  id_addend,
  id_dy,
  id_dx,
  id_dw,
  id_dbias,
  id_mean,
  id_inverse_deviation,
  id_old_mean,
  id_old_variance,
  id_new_mean,
  id_new_variance,
  id_epsilon,
  id_momentum,
  id_index,
  id_zero,
  id_masked,
  first_virtual = 100
};

struct Part;
using PartRef = std::shared_ptr<const Part>;

/// A descriptor before it is made: its attributes, in the order in which they are set. Parts may share parts.
struct Part {
  /// Numbers of a type, or other parts. Fractions are whole numbers here.
  struct Value {
    Value(Type of, std::int64_t number) : type(of), numbers{number} {}
    Value(std::int64_t number) : type(type_int64), numbers{number} {}                    // NOLINT: as they are
    Value(std::vector<std::int64_t> all) : type(type_int64), numbers(std::move(all)) {}  // NOLINT
    Value(Type of, std::vector<std::int64_t> all) : type(of), numbers(std::move(all)) {}
    Value(PartRef part) : type(type_descriptor), parts{std::move(part)} {}  // NOLINT: an attribute is often a part
    Value(std::vector<PartRef> all) : type(type_descriptor), parts(std::move(all)) {}  // NOLINT
    Type type;
    std::vector<std::int64_t> numbers{};
    std::vector<PartRef> parts{};
  };
  Kind kind;
  std::vector<std::pair<int, Value>> attributes;
};

/// The passes of a unit that have graphs of their own, in the order in which they run. One backward pass of a batch
/// norm gives all gradients: it is backward_params.
std::vector<Pass> graph_passes(const Spec&);

/// The graph of a unit's pass. The gradients of a product, and those of a batch norm without masks_norm(), read a dy
/// that the mask of the tail's ReLU was applied to. Throws UsageError for a pass that is not of
/// graph_passes(), and Unsupported for a unit that cuDNN has no graph for.
PartRef operation_graph_of(const Spec&, Pass);

/// The graph in one line. Two graphs have the same line exactly if they are equal.
std::string to_string(const Part&);

/// Makes and finalizes the descriptor, and those that it is made of. With a handle the graph is of that device.
Descriptor make(const Api&, const Part&, HandleObject* = nullptr);

/// The ids of the tensors that a graph reads and writes, each once.
std::vector<std::int64_t> stored_tensors(const Part&);

/// Whether the graph of a batch norm's gradients has the mask of the ReLU behind it: engines take it in nhwc only.
bool masks_norm(const Spec&);
/// Whether the gradient of a batch norm's addend is wanted, which is the masked dy.
bool wants_addend_gradient(const Spec&);

/// Whether values and gradients are without gaps, as graphs and most calls of the library need them.
bool is_dense(const Spec&);

/// Whether `next` may follow the op of a unit and the first `count` ops of its tail.
bool joins_graph(const Spec&, std::size_t count, const Op& next);

/// Whether the mask of the ReLU that ends a unit may follow the data gradient of the product that reads its y. cuDNN
/// has engines for that in nhwc only.
bool joins_gradient(const Spec&, const Spec& reader);

/// A fully connected unit as the convolution of images of one pixel, whose graph is the same.
Spec as_convolution(const Spec&);

}  // namespace lamina::cudnn::graph
