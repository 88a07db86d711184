// Convolution by Winograd's F(4x4, 3x3): y from x, dx from dy with the filters flipped and transposed, and dw.

#include "conv.h"

#include <cstdint>
#include <limits>

#include "kernels/conv/conv_implicit_gemm.h"
#include "kernels/winograd/conv_winograd_4x4.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The filters of forward or, if `transposed`, of the data gradient.
WinogradFilters filters_of(int groups, int channels_of_y, int channels_of_x, bool transposed = false) {
  const int k = channels_of_y / groups, c = channels_of_x / groups;
  return transposed ? WinogradFilters{groups, c, k, true} : WinogradFilters{groups, k, c, false};
}

template <class T>
std::size_t bytes_of(const WinogradFilters& filters) {
  return static_cast<std::size_t>(winograd_4x4_filter_count<T>(filters)) * sizeof(T);
}

template <class T>
WinogradWeights<T> weights_of(const ConvGeometry& g, const View<const T>& x, const Masked<T>& dy) {
  return {g.groups, x, dy, g.pad_h, g.pad_w};
}

/// The launchers that conv_step() calls. In inference prepare has transformed the filters.
struct ConvWinograd4x4 {
  static constexpr const char* name = winograd_4x4_name;
  static constexpr bool takes_prepared = true;

  template <class T>
  static std::size_t forward_bytes(const ConvGeometry& g, const View<const T>& x, const View<T>& y) {
    return bytes_of<T>(filters_of(g.groups, y.c, x.c));
  }
  /// If `workspace` is null, `w` has transformed filters.
  template <class T>
  static void forward(Stream stream, const ConvGeometry& g, View<const T> x, const T* w, View<T> y,
                      const ConvEnd<T>& end, T* workspace) {
    WinogradConv<T> conv;
    conv.filters = filters_of(g.groups, y.c, x.c);
    if (workspace != nullptr) winograd_4x4_filters(stream, conv.filters, w, workspace);
    conv.transformed = workspace != nullptr ? workspace : w;
    conv.x = x;
    conv.y = y;
    conv.bias = end.bias;
    conv.pad_h = g.pad_h;
    conv.pad_w = g.pad_w;
    conv.adds = end.adds;
    conv.relu = end.relu;
    winograd_4x4(stream, conv);
  }

  template <class T>
  static std::size_t backward_data_bytes(const ConvGeometry& g, const View<const T>& dy, const View<T>& dx) {
    return bytes_of<T>(filters_of(g.groups, dy.c, dx.c, true));
  }
  template <class T>
  static void backward_data(Stream stream, const ConvGeometry& g, const T* w, const Masked<T>& dy, View<T> dx,
                            bool adds, T* workspace) {
    WinogradConv<T> conv;
    conv.filters = filters_of(g.groups, dy.dy.c, dx.c, true);
    winograd_4x4_filters(stream, conv.filters, w, workspace);
    conv.transformed = workspace;
    conv.x = dy.dy;
    conv.mask = dy.mask;
    conv.y = dx;
    conv.pad_h = 2 - g.pad_h;
    conv.pad_w = 2 - g.pad_w;
    conv.adds = adds;
    winograd_4x4(stream, conv);
  }

  template <class T>
  static std::size_t backward_weights_bytes(const ConvGeometry& g, const View<const T>& x, const View<const T>& dy) {
    return winograd_4x4_weights_bytes(weights_of<T>(g, x, {dy, {}}));
  }
  template <class T>
  static void backward_weights(Stream stream, const ConvGeometry& g, View<const T> x, const Masked<T>& dy, T* dw,
                               T* workspace, bool adds) {
    WinogradWeights<T> conv = weights_of(g, x, dy);
    conv.dw = dw;
    conv.adds = adds;
    winograd_4x4_weights(stream, conv, workspace);
  }
};

}  // namespace

std::string winograd_4x4_refusal(const ConvUnit& c, Pass, Machine&) {
  constexpr int most_groups = 65535;                                       // limit of a grid along y
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();  // limit of a grid along x, and of an int
  const std::string self = winograd_4x4_name;
  if (const std::string refused = winograd_refusal(c.op, 4); !refused.empty()) return self + " " + refused;
  if (c.op.groups > most_groups) return limit(self, "groups", most_groups, c.op.groups);
  const std::int64_t weights = c.group_filters() * c.filter_weights();
  if (weights > most) return limit(self, "weights of a group", most, weights);
  for (const Shape& shape : {c.x, c.y})
    if (shape.count() / 16 > most)  // more than a grid has blocks; a block computes 16 results or more
      return limit(self, "elements of a tensor", 16 * most, shape.count());
  return {};
}

bool winograd_4x4_pays(const ConvUnit& c, Pass pass, Machine& machine) {
  if (c.dtype != DType::f32) return false;
  if (pass == Pass::backward_params) {
    const ConvGeometry g = geometry_of(c.op);
    const auto x = empty_view<const float>(c.x), dy = empty_view<const float>(c.y);
    return winograd_4x4_weights_ranges(weights_of<float>(g, x, {dy, {}})).cycles <
           conv_implicit_gemm_weights_cycles(g, x, dy);
  }
  if (!implicit_gemm_refusal(c, pass, machine).empty()) return true;
  const bool data = pass == Pass::backward_data;
  const WinogradFilters filters = filters_of(c.op.groups, c.y.c, c.x.c, data);
  const Shape& made = data ? c.x : c.y;
  const std::int64_t transform = c.inference ? 0 : winograd_4x4_filter_cycles(filters);
  return transform + winograd_4x4_cycles(filters, made.n, made.h, made.w) < implicit_gemm_cycles(c, pass);
}

Lowered::Step winograd_4x4_step(const ConvUnit& c, Pass pass, const Choice& choice, Machine& machine) {
  return conv_step<ConvWinograd4x4>(c, pass, choice, machine);
}

Prepared winograd_4x4_filters(const ConvUnit& c, Machine& machine) {
  const WinogradFilters filters = filters_of(c.op.groups, c.y.c, c.x.c);
  return with_type(machine.backend, c.dtype, [&]<class T>() -> Prepared {
    const auto prepare = [c, filters](Stream stream, const Args& args) {
      T* const to = prepared_filters<T>(c, args);
      if (!c.folded) return winograd_4x4_filters(stream, filters, args.w[0].as<const T>(), to);
      const ConvFold<T> fold = fold_of<T>(c, args);
      winograd_4x4_filters(stream, filters, fold.w, to, fold.norm);
      conv_fold<T>(stream, fold, nullptr, static_cast<T*>(args.prepared));
    };
    return {folded_bias_bytes<T>(c) + bytes_of<T>(filters),
            launches(machine, {Pass::prepare}, winograd_4x4_name, prepare)};
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
