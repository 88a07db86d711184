// The worker of oneDNN in a race of layers. It runs single convolutions as oneDNN primitives; server.h has the
// requests. Variants: "any" (direct algorithm, layouts chosen by oneDNN), "winograd" (Winograd algorithm, layouts
// chosen by oneDNN) and "nchw" (direct algorithm on nchw tensors). Reorders are not timed. With bf16, x, w, y and the
// gradients of x and y have this type. The bias and the gradients of parameters are f32, as in our plans. usage:
// onednn_worker THREADS f32|bf16, with OMP_NUM_THREADS set to THREADS

#include <oneapi/dnnl/dnnl.hpp>

#include <iostream>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "bench/race/serve/server.h"

namespace lamina::bench {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

/// The descriptors of a convolution's tensors: all plain, or all with layouts that oneDNN chooses.
struct Tensors {
  memory::desc x, w, bias, y;
};

memory::dims both(const Size& size) { return {size.h, size.w}; }

/// The descriptors for a pass. `type`: type of the values.
Tensors tensors(const RacedConvolution& conv, bool plain, Type type, Pass pass) {
  const Shape& x = conv.x;
  const Conv& op = conv.op;
  const Shape y = infer(op, {x}).y;
  const auto tag = [&](Tag of_plain) { return plain ? of_plain : Tag::any; };
  const Type weights = pass == Pass::backward_params ? Type::f32 : type;
  const int g = op.groups;
  return {{{x.n, x.c, x.h, x.w}, type, tag(Tag::nchw)},
          g == 1 ? memory::desc({op.channels, x.c, op.kernel.h, op.kernel.w}, weights, tag(Tag::oihw))
                 : memory::desc({g, op.channels / g, x.c / g, op.kernel.h, op.kernel.w}, weights, tag(Tag::goihw)),
          op.bias ? memory::desc({op.channels}, Type::f32, tag(Tag::x)) : memory::desc(),
          {{y.n, y.c, y.h, y.w}, type, tag(Tag::nchw)}};
}

/// Makes the primitive's descriptor: in oneDNN 3 directly, in oneDNN 2 from the operation's descriptor.
template <class Primitive, class... Hint, class... Arguments>
typename Primitive::primitive_desc make(const dnnl::engine& engine, const std::tuple<Hint...>& hint,
                                        const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return std::apply([&](const auto&... h) { return typename Primitive::primitive_desc(engine, arguments..., h...); },
                    hint);
#else
  return std::apply(
      [&](const auto&... h) {
        return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), engine, h...);
      },
      hint);
#endif
}

class TimedPrimitive final : public ServedConvolution {
 public:
  TimedPrimitive(const dnnl::engine& engine, const RacedConvolution& conv, Pass pass, const std::string& variant,
                 Type type)
      : ServedConvolution(pass), engine_(engine), stream_(engine), plain_(tensors(conv, true, Type::f32, pass)) {
    const auto algorithm =
        variant == "winograd" ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
    const Tensors wanted = tensors(conv, variant == "nchw", type, pass);
    const Tensors hinted = tensors(conv, variant == "nchw", type, Pass::forward);
    const memory::dims stride = both(conv.op.stride), pad = both(conv.op.pad);
    const memory::dims dilation = {conv.op.dilation.h - 1, conv.op.dilation.w - 1};  // oneDNN counts from 0

    // In backward_params, `bias` is the gradient of the bias. backward_data has no bias.
    const auto forward =
        make<dnnl::convolution_forward>(engine, std::tuple(), dnnl::prop_kind::forward_training, algorithm, hinted.x,
                                        hinted.w, hinted.bias, hinted.y, stride, dilation, pad, pad);
    if (pass == Pass::forward) {
      take<dnnl::convolution_forward>(forward);
      give(DNNL_ARG_SRC, forward.src_desc(), plain_.x, "x");
      give(DNNL_ARG_WEIGHTS, forward.weights_desc(), plain_.w, "w");
      if (conv.op.bias) give(DNNL_ARG_BIAS, forward.bias_desc(), plain_.bias, "bias");
      receive(DNNL_ARG_DST, forward.dst_desc(), plain_.y);
    } else if (pass == Pass::backward_data) {
      const auto data = make<dnnl::convolution_backward_data>(engine, std::tie(forward), algorithm, wanted.x, wanted.w,
                                                              wanted.y, stride, dilation, pad, pad);
      take<dnnl::convolution_backward_data>(data);
      give(DNNL_ARG_DIFF_DST, data.diff_dst_desc(), plain_.y, "dy");
      give(DNNL_ARG_WEIGHTS, data.weights_desc(), plain_.w, "w");
      receive(DNNL_ARG_DIFF_SRC, data.diff_src_desc(), plain_.x);
    } else {
      const auto params = make<dnnl::convolution_backward_weights>(
          engine, std::tie(forward), algorithm, wanted.x, wanted.w, wanted.bias, wanted.y, stride, dilation, pad, pad);
      take<dnnl::convolution_backward_weights>(params);
      give(DNNL_ARG_SRC, params.src_desc(), plain_.x, "x");
      give(DNNL_ARG_DIFF_DST, params.diff_dst_desc(), plain_.y, "dy");
      receive(DNNL_ARG_DIFF_WEIGHTS, params.diff_weights_desc(), plain_.w);
      if (conv.op.bias) receive(DNNL_ARG_DIFF_BIAS, params.diff_bias_desc(), plain_.bias);
    }
    stream_.wait();
  }

  std::vector<float> result() override {
    run();
    std::vector<float> all;
    for (const auto& [argument, plain] : results_) {
      std::vector<float> values(plain.get_size() / sizeof(float));
      memory to(plain, engine_, values.data());
      dnnl::reorder(arguments_.at(argument), to).execute(stream_, arguments_.at(argument), to);
      stream_.wait();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  std::string implementation() const override { return implementation_; }

  Sample run() override {
    const double start = steady_seconds(), cpu_start = cpu_seconds();
    primitive_.execute(stream_, arguments_);
    stream_.wait();
    return {steady_seconds() - start, cpu_seconds() - cpu_start};
  }

  template <class Primitive>
  void take(const typename Primitive::primitive_desc& description) {
    implementation_ = description.impl_info_str();
    primitive_ = Primitive(description);
  }

  void give(int argument, const memory::desc& chosen, const memory::desc& plain, const std::string& tensor) {
    std::vector<float> values = whole_numbers(static_cast<std::int64_t>(plain.get_size() / sizeof(float)), tensor);
    memory from(plain, engine_, values.data());
    memory& to = arguments_[argument] = memory(chosen, engine_);
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
  }

  void receive(int argument, const memory::desc& chosen, const memory::desc& plain) {
    arguments_[argument] = memory(chosen, engine_);
    results_.emplace_back(argument, plain);
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  Tensors plain_;
  std::string implementation_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
  std::vector<std::pair<int, memory::desc>> results_;
};

std::unique_ptr<Served> open(const dnnl::engine& engine, const RacedConvolution& conv, Pass pass,
                             const std::string& variant, Type type) {
  try {
    return std::make_unique<TimedPrimitive>(engine, conv, pass, variant, type);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) throw Unsupported("oneDNN has none such");
    throw;
  }
}

void serve_onednn(int threads, const std::string& type) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const dnnl_version_t& version = *dnnl_version();
  const std::string text =
      std::to_string(version.major) + '.' + std::to_string(version.minor) + '.' + std::to_string(version.patch);
  serve({{"onednn", text}, {"threads", threads}},
        [&](const std::string& pass, const std::string& variant, const std::string& numbers) {
          return open(engine, read_convolution(numbers), named("pass", pass, raced_passes), variant,
                      type == "bf16" ? Type::bf16 : Type::f32);
        });
}

}  // namespace
}  // namespace lamina::bench

int main(int argc, char** argv) {
  using namespace lamina::bench;
  if (argc == 3) return answering([&] { serve_onednn(std::stoi(argv[1]), argv[2]); });
  std::cerr << "usage: onednn_worker THREADS f32|bf16\n";
  return 2;
}
