// Convolution as a plain matrix product by cuBLAS: the columns of a few images are written to the workspace first.
//
// For image n and group g, where the matrix `columns` has C/groups R S rows and P Q columns:
//
//   forward           y[n,g]  = w[g] columns[n,g]            a batch of images per call
//   data gradient     columns = w[g]^T dy[n,g], then col2im  a batch of images per call
//   weight gradient   dw[g]  += dy[n,g] columns[n,g]^T       image by image, in order, all groups per call
//
// A 1x1 kernel with stride 1 and no padding needs no columns: x, or dx, takes their place.

#include <algorithm>
#include <limits>

#include "conv.h"
#include "kernels/bias.h"
#include "kernels/conv/im2col.h"
#include "kernels/pointwise.h"
#include "lib/core/device/blas/blas.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// A pass without its addresses and pitches.
struct Problem : ConvUnit {
  ConvGeometry g;
  int images_at_once = 1;

  explicit Problem(const ConvUnit& c) : ConvUnit(c), g(geometry_of(c.op)) {}

  bool plain() const { return op.kernel == Size(1) && op.stride == Size(1) && op.pad == Size(0); }
  int rows() const { return x.c * g.kernel_h * g.kernel_w; }  ///< rows of the columns of all groups
  int group_rows() const { return rows() / g.groups; }
  std::int64_t columns_per_image() const { return plain() ? 0 : rows() * y.plane(); }
  std::int64_t masked_per_image(Pass pass) const { return relu && pass != Pass::forward ? y.image() : 0; }
  template <class T>
  std::size_t bytes(Pass pass, std::int64_t images) const {
    return std::max(aligned(static_cast<std::size_t>(images * columns_per_image()) * sizeof(T)) +
                        aligned(static_cast<std::size_t>(images * masked_per_image(pass)) * sizeof(T)) +
                        Machine::blas_workspace_bytes(),
                    pass == Pass::backward_params ? backward_bias_bytes(*this) : 0);
  }
};

/// The images [first, first + count) of a tensor.
template <class T>
View<T> images_of(const Tensor& tensor, int first, int count) {
  View<T> all = view<T>(tensor);
  all.data += first * all.pitch;
  all.n = count;
  return all;
}

/// One pass over a few images at a time.
template <class T>
class Run {
 public:
  Run(const Problem& problem, Pass pass, Machine& machine, Stream stream, const Args& args)
      : c_(problem), stream_(stream), args_(&args) {
    char* at = static_cast<char*>(args.workspace);
    columns_ = reinterpret_cast<T*>(at);
    at += aligned(static_cast<std::size_t>(c_.images_at_once * c_.columns_per_image()) * sizeof(T));
    masked_ = reinterpret_cast<T*>(at);
    at += aligned(static_cast<std::size_t>(c_.images_at_once * c_.masked_per_image(pass)) * sizeof(T));
    blas_ = &machine.blas(at);
  }

  void forward() {
    const ForwardInputs<T> in = begin_forward<T>(stream_, c_, *args_);
    for_each_chunk([&](int first, int count) {
      const View<const T> columns = columns_of(first, count);
      const View<T> y = images_of<T>(args_->y, first, count);
      for (int group = 0; group < c_.g.groups; ++group) {
        multiply(c_.group_filters(), plane(), c_.group_rows(), count, {in.w + group * weights(), c_.group_rows(), 0},
                 {columns.at(0, group * c_.group_rows()), plane(), columns.pitch},
                 {y.at(0, group * c_.group_filters()), plane(), y.pitch}, in.end.adds);
      }
    });
    if (in.end.bias != nullptr || in.end.relu) add_bias(stream_, in.end.bias, view<T>(args_->y), in.end.relu);
    apply(stream_, c_.activation, args_->y);
  }

  void backward_data() {
    for_each_chunk([&](int first, int count) {
      const View<const T> dy = dy_of(first, count);
      const View<T> dx = images_of<T>(args_->dx[0], first, count);
      const View<T> columns = c_.plain() ? dx : own_columns(count);
      for (int group = 0; group < c_.g.groups; ++group) {
        multiply(c_.group_rows(), plane(), c_.group_filters(), count,
                 {args_->w[0].as<const T>() + group * weights(), c_.group_rows(), 0, true},
                 {dy.at(0, group * c_.group_filters()), plane(), dy.pitch},
                 {columns.at(0, group * c_.group_rows()), plane(), columns.pitch}, c_.plain() && c_.add_dx);
      }
      if (!c_.plain()) col2im(stream_, c_.g, View<const T>(columns), dx, c_.add_dx);
    });
  }

  void backward_params() {
    const bool wants_dw = !args_->dw.empty() && args_->dw[0];
    backward_bias(stream_, c_, *args_, masked_dy<T>(c_, *args_));
    if (!wants_dw) return;
    for_each_chunk([&](int first, int count) {
      const View<const T> dy = dy_of(first, count), columns = columns_of(first, count);
      for (int n = 0; n < count; ++n) {
        multiply(c_.group_filters(), c_.group_rows(), plane(), c_.g.groups,
                 {dy.at(n, 0), plane(), std::int64_t{c_.group_filters()} * plane()},
                 {columns.at(n, 0), plane(), std::int64_t{c_.group_rows()} * plane(), true},
                 {args_->dw[0].as<T>(), c_.group_rows(), weights()}, first + n > 0 || c_.add_dw);
      }
    });
  }

 private:
  int plane() const { return static_cast<int>(c_.y.plane()); }
  std::int64_t weights() const { return std::int64_t{c_.group_filters()} * c_.group_rows(); }

  /// A row-major matrix of a product.
  template <class Element>
  struct Matrix {
    Element* data;
    int leading;
    std::int64_t stride;  ///< elements to the matrix of the next image or group
    bool transposed = false;
  };

  /// c = a b, or c += a b, for each of `batch` matrices. a is m x k, b is k x n.
  void multiply(int m, int n, int k, int batch, const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c,
                bool adds) const {
    blas_->gemm(Gemm<T>{.transpose_a = a.transposed,
                        .transpose_b = b.transposed,
                        .m = m,
                        .n = n,
                        .k = k,
                        .a = a.data,
                        .lda = a.leading,
                        .b = b.data,
                        .ldb = b.leading,
                        .beta = adds ? T(1) : T(0),
                        .c = c.data,
                        .ldc = c.leading,
                        .batch = batch,
                        .stride_a = a.stride,
                        .stride_b = b.stride,
                        .stride_c = c.stride});
  }

  template <class Body>
  void for_each_chunk(Body body) const {
    for (int first = 0; first < c_.x.n; first += c_.images_at_once)
      body(first, std::min(c_.images_at_once, c_.x.n - first));
  }

  View<T> own_columns(int count) const {
    return {columns_, count, c_.rows(), c_.y.h, c_.y.w, c_.rows() * c_.y.plane()};
  }
  View<const T> columns_of(int first, int count) const {
    const View<const T> x = images_of<const T>(args_->x[0], first, count);
    if (c_.plain()) return x;
    const View<T> columns = own_columns(count);
    im2col(stream_, c_.g, x, columns);
    return columns;
  }
  /// dy, masked.
  View<const T> dy_of(int first, int count) const {
    const View<const T> dy = images_of<const T>(args_->dy, first, count);
    if (!c_.relu) return dy;
    pointwise_backward(stream_, {PointwiseFunction::relu}, images_of<const T>(args_->y, first, count), dy,
                       View<T>{masked_, count, dy.c, dy.h, dy.w, dy.image()}, false);
    return {masked_, count, dy.c, dy.h, dy.w, dy.image()};
  }

  const Problem c_;
  Blas* blas_;
  Stream stream_;
  const Args* args_;
  T *columns_, *masked_;
};

}  // namespace

std::string im2col_gemm_refusal(const ConvUnit& c, Pass, Machine&) {
  const std::int64_t columns = Problem(c).columns_per_image();
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (columns <= most) return {};
  return "im2col_gemm takes images of up to " + std::to_string(most) + " elements of columns, not " +
         std::to_string(columns);
}

Lowered::Step im2col_gemm_step(const ConvUnit& c, Pass pass, const Choice& choice, Machine& machine) {
  Problem problem(c);
  return with_type(machine.backend, c.dtype, [&]<class T>() {
    // Finds the largest number of images whose workspace fits the limit, by halving: bytes grow with images.
    for (int above = c.x.n; problem.images_at_once < above;) {
      const int middle = above - (above - problem.images_at_once) / 2;
      if (problem.bytes<T>(pass, middle) <= choice.workspace_limit)
        problem.images_at_once = middle;
      else
        above = middle - 1;
    }
    return launches(
        machine, {pass}, im2col_gemm_name,
        [=, &machine](Stream stream, const Args& args) {
          if (pass == Pass::backward_data && !wanted(args, 0)) return;
          Run<T> run(problem, pass, machine, stream, args);
          switch (pass) {
            case Pass::forward: return run.forward();
            case Pass::backward_data: return run.backward_data();
            default: return run.backward_params();
          }
        },
        problem.bytes<T>(pass, problem.images_at_once));
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
