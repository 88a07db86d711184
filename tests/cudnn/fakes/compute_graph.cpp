// Computes each operation by its definition, with the dimensions and strides of the descriptors.

#include "tests/cudnn/fakes/compute_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "lib/backends/cudnn/graph/types.h"
#include "lib/core/numbers/float16.h"
#include "tests/cudnn/fakes/fake.h"

namespace lamina::test {
namespace {

using namespace cudnn::graph;
using Object = FakeGraph::Object;
using Numbers = std::vector<std::int64_t>;
using Index = std::array<std::int64_t, 4>;

/// A tensor of a graph: stored, or virtual between two operations.
struct View {
  Numbers size, strides;
  std::int64_t type = cudnn::data_type::f32;
  char* data = nullptr;

  std::int64_t offset(const Index& at) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum += (size[i] == 1 ? 0 : at[i]) * strides[i];  // broadcast
    return sum;
  }
  double read(const Index& at) const {
    if (type == data_int8 || type == data_boolean) return static_cast<double>(data[offset(at)]);
    if (type == cudnn::data_type::f32) {
      float value = 0;
      std::memcpy(&value, data + 4 * offset(at), 4);
      return static_cast<double>(value);
    }
    std::uint16_t word = 0;
    std::memcpy(&word, data + 2 * offset(at), 2);
    return widen(half(), word);
  }
  void write(const Index& at, double number) const {
    if (type == data_int8 || type == data_boolean) {
      data[offset(at)] = static_cast<char>(number);
    } else if (type == cudnn::data_type::f32) {
      const auto value = static_cast<float>(number);
      std::memcpy(data + 4 * offset(at), &value, 4);
    } else {
      const std::uint16_t word = narrow(half(), number);
      std::memcpy(data + 2 * offset(at), &word, 2);
    }
  }
  template <class Function>
  void each(const Function& function) const {
    for (std::int64_t n = 0; n < size[0]; ++n)
      for (std::int64_t c = 0; c < size[1]; ++c)
        for (std::int64_t h = 0; h < size[2]; ++h)
          for (std::int64_t w = 0; w < size[3]; ++w) function(Index{n, c, h, w});
  }

 private:
  DType half() const { return type == cudnn::data_type::f16 ? DType::f16 : DType::bf16; }
};

class Computing {
 public:
  explicit Computing(const FakeGraph::Places& places) : places_(places) {}

  void run(const Object& op) {
    switch (op.kind) {
      case operation_forward: return convolve(op, forward_alpha);
      case operation_backward_data: return convolve(op, backward_data_alpha);
      case operation_backward_filter: return convolve(op, backward_filter_alpha);
      case operation_pointwise: return point(op);
      case operation_resample_forward: return pool(op);
      case operation_resample_backward: return spread(op);
      case operation_norm_forward: return normalise(op);
      case operation_norm_backward: return normalise_backward(op);
      default: throw std::logic_error("the fake computes no such operation");
    }
  }

 private:
  View view(const Object& op, int attribute) {
    const Object& tensor = op.others.at(attribute).front();
    View view{tensor.numbers.at(tensor_dimensions), tensor.numbers.at(tensor_strides),
              tensor.numbers.at(tensor_data_type).front()};
    const std::int64_t id = tensor.numbers.at(tensor_id).front();
    if (tensor.numbers.count(tensor_is_virtual) == 0) {
      view.data = static_cast<char*>(places_.at(id));
      return view;
    }
    std::vector<char>& memory = between_[id];
    memory.resize(static_cast<std::size_t>(4 * view.size[0] * view.size[1] * view.size[2] * view.size[3]));
    view.data = memory.data();
    return view;
  }

  /// Calls `function` for every multiplication of a convolution, with the indices in image, filter and result.
  template <class Function>
  static void each_product(const Object& form, const View& x, const View& w, const View& y, const Function& function) {
    const auto number = [&](int attribute, std::size_t i) { return form.numbers.at(attribute)[i]; };
    const std::int64_t filters = w.size[0] / (x.size[1] / w.size[1]);
    y.each([&](const Index& at) {
      for (std::int64_t c = 0; c < w.size[1]; ++c)
        for (std::int64_t r = 0; r < w.size[2]; ++r)
          for (std::int64_t s = 0; s < w.size[3]; ++s) {
            const std::int64_t h = at[2] * number(convolution_strides, 0) + r * number(convolution_dilations, 0) -
                                   number(convolution_pre_paddings, 0),
                               v = at[3] * number(convolution_strides, 1) + s * number(convolution_dilations, 1) -
                                   number(convolution_pre_paddings, 1);
            if (h < 0 || v < 0 || h >= x.size[2] || v >= x.size[3]) continue;
            function(Index{at[0], at[1] / filters * w.size[1] + c, h, v}, Index{at[1], c, r, s}, at);
          }
    });
  }

  void convolve(const Object& op, int first) {
    const View x = view(op, first + image), w = view(op, first + weights), y = view(op, first + cudnn::graph::result);
    const View& target = op.kind == operation_forward ? y : op.kind == operation_backward_data ? x : w;
    const double alpha = op.scalars.at(first), old = op.scalars.at(first + beta);
    const Numbers& size = target.size;
    std::vector<double> sums(static_cast<std::size_t>(size[0] * size[1] * size[2] * size[3]));
    const auto at = [&](const Index& i) -> double& {
      return sums[static_cast<std::size_t>(((i[0] * size[1] + i[1]) * size[2] + i[2]) * size[3] + i[3])];
    };
    const Object& form = op.others.at(first + descriptor).front();
    each_product(form, x, w, y, [&](const Index& i, const Index& f, const Index& o) {
      if (op.kind == operation_forward) at(o) += x.read(i) * w.read(f);
      if (op.kind == operation_backward_data) at(i) += y.read(o) * w.read(f);
      if (op.kind == operation_backward_filter) at(f) += x.read(i) * y.read(o);
    });
    target.each([&](const Index& i) { target.write(i, alpha * at(i) + (old == 0 ? 0 : old * target.read(i))); });
  }

  void point(const Object& op) {
    const std::int64_t mode = op.others.at(operation_pointwise_form).front().numbers.at(pointwise_form).front();
    const View x = view(op, operation_pointwise_x);
    if (mode == pointwise_relu_backward) {
      const View dy = view(op, operation_pointwise_dy), dx = view(op, operation_pointwise_dx);
      return dx.each([&](const Index& i) { dx.write(i, x.read(i) > 0 ? dy.read(i) : 0); });
    }
    const View y = view(op, operation_pointwise_y);
    if (mode == pointwise_relu) return y.each([&](const Index& i) { y.write(i, std::max(x.read(i), 0.0)); });
    const View b = view(op, operation_pointwise_b);
    y.each([&](const Index& i) {
      const double left = x.read(i), right = b.read(i);
      y.write(i, mode == pointwise_multiply  ? left * right
                 : mode == pointwise_greater ? (left > right ? 1 : 0)
                                             : left + right);
    });
  }

  /// Calls `function` for every element of a window inside the image, with the element's number in the window.
  template <class Function>
  static void each_in_window(const Object& form, const View& x, const Index& at, const Function& function) {
    const auto number = [&](int attribute, std::size_t i) { return form.numbers.at(attribute)[2 * i]; };
    for (std::int64_t r = 0; r < number(resample_window, 0); ++r)
      for (std::int64_t s = 0; s < number(resample_window, 1); ++s) {
        const std::int64_t h = at[2] * number(resample_strides, 0) + r - number(resample_pre_paddings, 0),
                           w = at[3] * number(resample_strides, 1) + s - number(resample_pre_paddings, 1);
        if (h >= 0 && w >= 0 && h < x.size[2] && w < x.size[3])
          function(Index{at[0], at[1], h, w}, static_cast<double>(r * number(resample_window, 1) + s));
      }
  }

  /// The divisor of an average pool.
  static double divisor(const Object& form, const View& x, const Index& at) {
    double inside = 0;
    each_in_window(form, x, at, [&](const Index&, double) { ++inside; });
    const Numbers& window = form.numbers.at(resample_window);
    return form.numbers.at(resample_form)[0] == resample_average_all ? static_cast<double>(window[0] * window[2])
                                                                     : inside;
  }

  void pool(const Object& op) {
    const Object& form = op.others.at(resample_forward_form).front();
    const View x = view(op, resample_forward_x), y = view(op, resample_forward_y);
    const bool maxima = form.numbers.at(resample_form)[0] == resample_max;
    y.each([&](const Index& at) {
      double best = maxima ? -std::numeric_limits<double>::infinity() : 0, taken = 0;
      each_in_window(form, x, at, [&](const Index& i, double number) {
        if (maxima && x.read(i) > best) best = x.read(i), taken = number;
        if (!maxima) best += x.read(i);
      });
      y.write(at, maxima ? best : best / divisor(form, x, at));
      if (op.others.count(resample_forward_index) > 0) view(op, resample_forward_index).write(at, taken);
    });
  }

  void spread(const Object& op) {
    const Object& form = op.others.at(resample_backward_form).front();
    const View dx = view(op, resample_backward_dx), dy = view(op, resample_backward_dy);
    const bool maxima = form.numbers.at(resample_form)[0] == resample_max;
    std::map<std::int64_t, double> sums;
    dy.each([&](const Index& at) {
      const double taken = maxima ? view(op, resample_backward_index).read(at) : 0;
      each_in_window(form, dx, at, [&](const Index& i, double number) {
        if (!maxima || number == taken) sums[dx.offset(i)] += dy.read(at) / (maxima ? 1 : divisor(form, dx, at));
      });
    });
    dx.each([&](const Index& i) { dx.write(i, sums[dx.offset(i)]); });
  }

  void normalise(const Object& op) {
    const View x = view(op, norm_forward_x), y = view(op, norm_forward_y);
    const double epsilon = view(op, norm_forward_epsilon).read({}), factor = view(op, norm_forward_momentum).read({});
    const auto count = static_cast<double>(x.size[0] * x.size[2] * x.size[3]);
    for (std::int64_t c = 0; c < x.size[1]; ++c) {
      const Index channel{0, c, 0, 0};
      double sum = 0, squares = 0;
      x.each([&](const Index& i) { sum += i[1] == c ? x.read(i) : 0; });
      const double mean = sum / count;
      x.each([&](const Index& i) { squares += i[1] == c ? (x.read(i) - mean) * (x.read(i) - mean) : 0; });
      const double inverse = 1 / std::sqrt(squares / count + epsilon);
      view(op, norm_forward_mean).write(channel, mean);
      view(op, norm_forward_inverse).write(channel, inverse);
      const auto move = [&](int from, int to, double by) {
        view(op, to).write(channel, (1 - factor) * view(op, from).read(channel) + factor * by);
      };
      move(norm_forward_old_mean, norm_forward_new_mean, mean);
      move(norm_forward_old_variance, norm_forward_new_variance, squares / (count - 1));
      const double scale = view(op, norm_forward_scale).read(channel),
                   shift = view(op, norm_forward_shift).read(channel);
      y.each([&](const Index& i) {
        if (i[1] == c) y.write(i, (x.read(i) - mean) * inverse * scale + shift);
      });
    }
  }

  void normalise_backward(const Object& op) {
    const View x = view(op, norm_backward_x), dy = view(op, norm_backward_dy), dx = view(op, norm_backward_dx);
    const auto count = static_cast<double>(x.size[0] * x.size[2] * x.size[3]);
    for (std::int64_t c = 0; c < x.size[1]; ++c) {
      const Index channel{0, c, 0, 0};
      const double mean = view(op, norm_backward_mean).read(channel),
                   inverse = view(op, norm_backward_inverse).read(channel),
                   scale = view(op, norm_backward_scale).read(channel);
      double shift = 0, product = 0;
      dy.each([&](const Index& i) {
        if (i[1] != c) return;
        shift += dy.read(i);
        product += dy.read(i) * (x.read(i) - mean) * inverse;
      });
      view(op, norm_backward_dscale).write(channel, product);
      view(op, norm_backward_dshift).write(channel, shift);
      dx.each([&](const Index& i) {
        if (i[1] != c) return;
        const double normal = (x.read(i) - mean) * inverse;
        dx.write(i, scale * inverse * (dy.read(i) - shift / count - normal * product / count));
      });
    }
  }

  const FakeGraph::Places& places_;
  std::map<std::int64_t, std::vector<char>> between_;
};

/// The tensor of a descriptor that fake.h made.
View view_of(const void* descriptor, const void* data) {
  std::istringstream text(described(descriptor));
  std::string type, size;
  View view{{}, {}, cudnn::data_type::f32, static_cast<char*>(const_cast<void*>(data))};
  text >> type >> size >> std::ws;
  view.type = type == "f32" ? cudnn::data_type::f32 : type == "f16" ? cudnn::data_type::f16 : cudnn::data_type::bf16;
  std::istringstream extents(size);
  for (std::string each; std::getline(extents, each, 'x');) view.size.push_back(std::stoll(each));
  text.ignore(1);
  for (std::int64_t stride = 0; text >> stride;) view.strides.push_back(stride);
  return view;
}

bool adds(const void* beta) { return *static_cast<const float*>(beta) != 0; }

/// to = from, or to += from if `add`. `from` may have only one number for each channel.
void move(const View& from, const View& to, bool add) {
  to.each([&](const Index& i) { to.write(i, from.read(i) + (add ? to.read(i) : 0)); });
}

}  // namespace

void compute_calls(cudnn::Api& api) {
  using namespace cudnn;
  api.ActivationForward = [](HandleObject*, ActivationObject*, const void*, TensorObject* from, const void* x,
                             const void*, TensorObject* to, void* y) {
    const View in = view_of(from, x), out = view_of(to, y);
    out.each([&](const Index& i) { out.write(i, std::max(in.read(i), 0.0)); });
    return ok;
  };
  api.ActivationBackward = [](HandleObject*, ActivationObject*, const void*, TensorObject* result, const void* y,
                              TensorObject* gradient, const void* dy, TensorObject*, const void*, const void* beta,
                              TensorObject* to, void* dx) {
    const View of = view_of(result, y), in = view_of(gradient, dy), out = view_of(to, dx);
    out.each([&](const Index& i) { out.write(i, (of.read(i) > 0 ? in.read(i) : 0) + (adds(beta) ? out.read(i) : 0)); });
    return ok;
  };
  api.AddTensor = [](HandleObject*, const void*, TensorObject* from, const void* a, const void*, TensorObject* to,
                     void* c) { return move(view_of(from, a), view_of(to, c), true), ok; };
  api.TransformTensor = [](HandleObject*, const void*, TensorObject* from, const void* x, const void* beta,
                           TensorObject* to,
                           void* y) { return move(view_of(from, x), view_of(to, y), adds(beta)), ok; };
  api.ConvolutionBackwardBias = [](HandleObject*, const void*, TensorObject* from, const void* dy, const void* beta,
                                   TensorObject* to, void* db) {
    const View in = view_of(from, dy), out = view_of(to, db);
    out.each([&](const Index& i) {
      double sum = adds(beta) ? out.read(i) : 0;
      in.each([&](const Index& j) { sum += j[1] == i[1] ? in.read(j) : 0; });
      out.write(i, sum);
    });
    return ok;
  };
}

void compute_graph(const FakeGraph::Object& graph, const FakeGraph::Places& places) {
  Computing computing(places);
  for (const Object& op : graph.others.at(graph_operations)) computing.run(op);
}

}  // namespace lamina::test
