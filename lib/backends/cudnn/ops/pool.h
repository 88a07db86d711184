#pragma once
// Pooling by the library: a window over the image, for maxima and means.

#include <optional>

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {

/// The window of a pooling op.
struct Window {
  Size window, stride, pad;
};

/// One pooling of one unit. The library rounds the number of windows down. If an op rounds up and gets more windows,
/// the library is called all the same, since some versions accept it. If a version refuses, x is copied to the
/// workspace and padded with rows and columns of minus infinity as far as the windows reach. From then on only the copy
/// is used. Means cannot use such a copy: for them the refusal remains.
class Pooling {
 public:
  Pooling(const Op&, const Spec&, Session&, int mode, const Window&);

  std::size_t forward_workspace_bytes() const { return padded_ ? padded_->x_bytes : 0; }
  std::size_t backward_workspace_bytes() const { return padded_ ? 2 * padded_->x_bytes : 0; }
  void forward(const Args&);

  /// Maxima need x and y (`reads_values`). Means need neither, and get dx and dy in their place.
  void backward(const Args&, bool reads_values, bool adds);

 private:
  struct Padded {
    TensorDescriptor whole, image;  // the copy, and the part of the copy that is x
    std::size_t x_bytes;
    bool in_use = false;
  };
  void copy_padded(const Args&) const;
  void forward_padded(const Args&) const;
  void backward_padded(const Args&, bool adds) const;

  Session& session_;
  const Api& api_;
  DType dtype_;
  PoolingDescriptor pooling_;
  TensorDescriptor x_, y_, dx_, dy_;
  std::optional<Padded> padded_;
};

/// The unit of a pooling op: forward, recompute, backward.
Lowered lower_pooling(const Op&, const Spec&, const Choice&, Session&, int mode, const Window&);

}  // namespace lamina::cudnn
