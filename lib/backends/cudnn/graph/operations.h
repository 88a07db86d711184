#pragma once
// Makes cuDNN's operation graph of a unit's pass, as data. This needs no library.

#include <cstdint>

#include "descriptor.h"
#include "lamina/backend.h"

namespace lamina::cudnn::graph {

/// The tensors that a graph names, by cuDNN's unique id. The backward graphs of a convolution or a fully connected
/// layer have dx, dw and dy at the ids of x, w and y; only a masked dx has id_dx. Other gradients have separate ids.
/// Tensors between two operations are not stored, and have ids from `first_virtual` on.
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

/// The graph of a unit's pass. The gradients of a convolution or fully connected op, and of a batch norm without
/// masks_norm(), read a dy that the tail's ReLU has already masked. Throws UsageError for a pass that is not of
/// cudnn_graphs(), Unsupported for a unit without a graph.
PartRef operation_graph_of(const Spec&, Pass);

/// Whether the graph of a batch norm's gradients applies the mask of the tail's ReLU: engines do so in nhwc only.
bool masks_norm(const Spec&);
/// Whether the gradient of a batch norm's addend is wanted. It is the masked dy.
bool wants_addend_gradient(const Spec&);

/// Whether `next` may follow the op of a unit and the first `count` ops of its tail.
bool joins_graph(const Spec&, std::size_t count, const Op& next);

/// Whether the graph of the data gradient of `reader`, which reads the unit's y, may apply the mask of the ReLU that
/// ends the unit. cuDNN has engines for this in nhwc and, for a fully connected reader, also in nchw.
bool joins_gradient(const Spec&, const Spec& reader);

/// A fully connected unit as a convolution of images of one pixel. Both have the same graph.
Spec as_convolution(const Spec&);

}  // namespace lamina::cudnn::graph
