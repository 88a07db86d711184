// ConvTranspose, as a convolution of stride 1. With a stride of s, s neighbours in the result are channels of it: the
// view says where they are. An axis whose extent is no multiple of s is among the channels whole, and so are slices.
// Training would change copies of weights apart, and zeros between them: such weights are not trainable.

#include <algorithm>
#include <array>

#include "windows.h"

namespace lamina::onnx {
namespace {

/// The limit of weights where rows or columns are among the channels whole.
constexpr std::int64_t most_weights = std::int64_t{1} << 24;

/// Along one axis. The result at phases * m + phase takes cell m + first + cell * spacing of the input, by the element
/// of the kernel for which stride * (first + cell * spacing) + dilation * element = phase + begin.
struct Transposed {
  std::int64_t kernel = 1, stride = 1, dilation = 1, begin = 0;
  std::int64_t input = 1, output = 1;
  std::int64_t phases = 1, count = 1;  ///< neighbours that are channels, and the number of such groups
  std::int64_t first = 0, cells = 1, spacing = 1;
  bool whole = false;  ///< all of the axis is channels

  std::int64_t element(std::int64_t phase, std::int64_t cell) const;  ///< -1: none
  std::int64_t end() const { return count - 1 + first + (cells - 1) * spacing - (input - 1); }
};

std::int64_t Transposed::element(std::int64_t phase, std::int64_t cell) const {
  const std::int64_t rest = phase + begin - (first + cell * spacing) * stride;
  return rest >= 0 && rest % dilation == 0 && rest / dilation < kernel ? rest / dilation : -1;
}

/// Calls visit(phase, cell, element) for each weight along the axis.
template <class Visit>
void each(const Transposed& a, Visit visit) {
  for (std::int64_t phase = 0; phase < a.phases; ++phase) {
    for (std::int64_t cell = 0; cell < a.cells; ++cell) {
      const std::int64_t element = a.element(phase, cell);
      if (element >= 0) visit(phase, cell, element);
    }
  }
}

std::int64_t rounded_down(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// What of the axis is channels, and which cells of the input a result takes.
void lay_out(Transposed& a, bool slices) {
  const std::int64_t reach = (a.kernel - 1) * a.dilation;
  a.whole = slices || a.output % a.stride != 0;
  if (a.whole) {
    a.phases = a.output;
    a.cells = a.input;
    return;
  }
  a.phases = a.stride;
  a.count = a.output / a.stride;
  if (a.stride == 1) {
    a.first = a.begin - reach;
    a.cells = a.kernel;
    a.spacing = a.dilation;
    if (a.first <= 0 && a.end() >= 0) return;
  }
  // Where the result is cut, or kernels have holes: every cell from the first to the last, with weights of 0 between.
  a.spacing = 1;
  a.first = std::min<std::int64_t>(-rounded_down(reach - a.begin, a.stride), 0);
  const std::int64_t last = std::max(rounded_down(a.phases - 1 + a.begin, a.stride), a.input - a.count);
  a.cells = std::max<std::int64_t>(last, 0) - a.first + 1;
}

/// The axes of the node, slices first: 1 to 3 of them, after those of images and channels.
std::array<Transposed, 3> axes_of(const Call& call, const Running& x, const Extents& kernel) {
  const Attributes& node = call.attributes();
  const Windows windows = sizes_of(call, x, kernel);
  const Extents all = extents(x.view);
  const std::size_t axes = all.size() - 2, skipped = all.size() == 5 ? 0 : 1;
  const auto list = [&](const char* name) {
    std::optional<Extents> numbers = node.integers(name);
    constexpr std::int64_t most = 1 << 30;
    if (numbers && numbers->size() != axes) {
      node.invalid("has " + std::to_string(numbers->size()) + " " + name + " for " + std::to_string(axes));
    }
    for (const std::int64_t number : numbers.value_or(Extents{})) {
      if (number < 0 || number > most) node.invalid("has " + std::to_string(number) + " among its " + name);
    }
    return numbers;
  };
  const std::optional<Extents> added = list("output_padding"), wanted = list("output_shape");
  const std::string automatic = node.text("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  std::array<Transposed, 3> result;
  for (std::size_t i = 0; i < axes; ++i) {
    const Windows::Along& its = i + skipped == 0 ? windows.slices : windows[i + skipped - 1];
    Transposed& a = result[i + skipped];
    a.kernel = its.kernel, a.stride = its.stride, a.dilation = its.dilation, a.input = all[i + 2];
    const std::int64_t whole = a.stride * (a.input - 1) + its.span() + (added ? (*added)[i] : 0);
    a.begin = its.begin;
    a.output = whole - its.begin - its.end;
    if (wanted || same) {
      a.output = wanted ? (*wanted)[i] : a.input * a.stride;
      if (!wanted && whole < a.output) {
        throw Refusal{"its auto_pad asks for " + std::to_string(a.output) + " of an axis where its windows reach " +
                      std::to_string(whole) + ", in which runtimes differ: it would need pads"};
      }
      const std::int64_t cut = std::max<std::int64_t>(whole - a.output, 0);
      a.begin = automatic == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
    } else if (automatic == "VALID") {
      a.begin = 0;
      a.output = whole;
    }
    if (a.output < 1) node.invalid("leaves nothing of its input of " + text(all));
    lay_out(a, i + skipped == 0);
  }
  return result;
}

/// Weights {filters, channels, elements} as those of the convolution. `used` counts those that were placed.
std::vector<double> placed(const std::vector<double>& w, const std::array<Transposed, 3>& axes, std::int64_t groups,
                           std::int64_t channels, std::int64_t filters, std::int64_t count, std::int64_t& used) {
  const Transposed &slices = axes[0], &rows = axes[1], &columns = axes[2];
  const std::int64_t own = channels / groups, each_group = filters / groups;
  std::vector<double> all(static_cast<std::size_t>(count), 0);
  for (std::int64_t filter = 0; filter < filters; ++filter) {
    for (std::int64_t c = 0; c < own; ++c) {
      const std::int64_t from = (filter / each_group * own + c) * each_group + filter % each_group;
      each(slices, [&](std::int64_t d, std::int64_t slice, std::int64_t z) {
        each(rows, [&](std::int64_t h, std::int64_t row, std::int64_t y) {
          each(columns, [&](std::int64_t v, std::int64_t column, std::int64_t x) {
            const std::int64_t output = ((filter * slices.phases + d) * rows.phases + h) * columns.phases + v;
            const std::int64_t input = (output * own + c) * slices.cells + slice;
            const std::int64_t to = (input * rows.cells + row) * columns.cells + column;
            const std::int64_t at = ((from * slices.kernel + z) * rows.kernel + y) * columns.kernel + x;
            all[static_cast<std::size_t>(to)] = w[static_cast<std::size_t>(at)];
            ++used;
          });
        });
      });
    }
  }
  return all;
}

/// Where the axes of the result are: each has its count, then its phases among the channels.
View view_of(const Shape& y, std::int64_t filters, const std::array<Transposed, 3>& axes, std::size_t rank) {
  const Transposed &slices = axes[0], &rows = axes[1], &columns = axes[2];
  const auto joined = [](Axis outer, const Axis& inner) {
    outer.insert(outer.end(), inner.begin(), inner.end());
    return outer;
  };
  const std::int64_t plane = y.plane(), of_rows = columns.phases * plane, of_slices = rows.phases * of_rows;
  View view = {axis(y.n, y.image()), axis(filters, slices.phases * of_slices)};
  if (rank == 5) view.push_back(axis(slices.phases, of_slices));
  view.push_back(joined(axis(y.h, y.w), axis(rows.phases, of_rows)));
  if (rank > 3) view.push_back(joined(axis(y.w, 1), axis(columns.phases, plane)));
  return view;
}

}  // namespace

void import_conv_transpose(Call& call) {
  const Attributes& node = call.attributes();
  const Running& x = call.running(0);
  const Constant& w = call.constant(1, "its weights");
  const std::size_t rank = x.view.size();
  if (rank < 3 || rank != w.extents.size()) {
    node.invalid("has an input of " + text(call.extents(0)) + " and weights of " + text(w.extents));
  }
  if (rank > 5) throw Refusal{"its input has " + std::to_string(rank) + " axes: it would need an op for them"};
  Value image = as_volume(x);
  const std::int64_t groups = narrow(call, node.integer("group", 1), 1, "group"), channels = extents(x.view)[1];
  const std::optional<std::int64_t> filters = element_count({w.extents[1], groups});
  if (w.extents[0] != channels || channels % groups != 0 || w.count() == 0 || !filters) {
    node.invalid("has weights of " + text(w.extents) + ", " + std::to_string(groups) + " groups, and an input of " +
                 text(extents(x.view)));
  }
  const std::array<Transposed, 3> axes = axes_of(call, x, {w.extents.begin() + 2, w.extents.end()});
  const Transposed &slices = axes[0], &rows = axes[1], &columns = axes[2];

  const std::optional<std::int64_t> repeats = element_count({slices.phases, rows.phases, columns.phases});
  const std::optional<std::int64_t> count =
      !repeats ? repeats
               : element_count({*filters, *repeats, channels / groups, slices.cells, rows.cells, columns.cells});
  if (!count) node.invalid("has a result that no memory can hold");
  if ((rows.whole || columns.whole) && *count > most_weights) {
    throw Refusal{"its result of " + text({rows.output, columns.output}) +
                  " is no multiple of its strides, and as a convolution it would have " + std::to_string(*count) +
                  " weights, above 2^24: it would need an op for transposed convolutions"};
  }
  call.charge(*count);
  const int outputs = narrow(call, *filters * *repeats, 1, "number of channels");

  Extents result = extents(x.view);
  result[1] = *filters;
  for (std::size_t i = 2; i < rank; ++i) result[i] = axes[i - 2 + (rank == 5 ? 0 : 1)].output;
  std::vector<double> bias;
  if (call.has(2)) {
    const Constant& b = call.constant(2, "its bias");
    if (b.count() != *filters)
      node.invalid("has a bias of " + text(b.extents) + " for " + std::to_string(*filters) + " channels");
    bias = call.numbers(b);
  } else {
    bias = call.absorb_affine(result, 1, true).shift;
  }
  std::vector<double> repeated;
  call.charge(static_cast<std::int64_t>(bias.size()) * *repeats);
  for (const double number : bias) repeated.insert(repeated.end(), static_cast<std::size_t>(*repeats), number);

  std::int64_t used = 0;
  std::vector<double> weights = placed(call.numbers(w), axes, groups, channels, *filters, *count, used);

  Windows windows;
  for (std::size_t i = 0; i < 2; ++i) {
    const Transposed& a = axes[i + 1];
    windows[i] = {.kernel = a.cells,
                  .begin = -a.first,
                  .end = a.end(),
                  .dilation = a.spacing,
                  .input = a.input,
                  .count = a.count};
    for (const std::int64_t pad : {windows[i].begin, windows[i].end}) narrow(call, pad, 0, "pad");
    narrow(call, a.cells, 1, "kernel");
  }
  if (!have_equal_pads(windows)) image = with_equal_pads(call, image, windows);
  const Value y = call.append(Conv{.channels = outputs,
                                   .kernel = windows.kernel(),
                                   .pad = windows.begin(),
                                   .dilation = windows.dilation(),
                                   .groups = static_cast<int>(groups),
                                   .bias = !bias.empty(),
                                   .trainable = *repeats == 1 && used == *count && used == w.count()},
                              {image}, call.name());
  call.weights(y, "weight", {outputs, channels / groups * slices.cells, rows.cells, columns.cells}, std::move(weights),
               w.type);
  if (!bias.empty()) call.weights(y, "bias", {outputs}, std::move(repeated), w.type);
  call.result({.value = y, .view = view_of(y.shape(), *filters, axes, rank), .type = x.type});
}

}  // namespace lamina::onnx
