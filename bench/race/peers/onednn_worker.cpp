// The worker of a race of layers for single convolutions by oneDNN's own primitives, f32; see server.h for the
// requests. Its variants: "any" (the direct algorithm in whatever layouts oneDNN likes best), "winograd"
// (likewise, by its Winograd algorithm) and "nchw" (the direct one on plain tensors). Reorders are outside the timing.
// usage: onednn_worker THREADS, with OMP_NUM_THREADS set to the same

#include <oneapi/dnnl/dnnl.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "bench/race/serve/convolution.h"
#include "bench/timing/stopwatch.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

using dnnl::memory;
using nlohmann::json;
using Tag = memory::format_tag;

/// The descriptors of a convolution's tensors, all in one style of layout.
struct Tensors {
  memory::desc x, w, bias, y;
};

memory::desc describe(const memory::dims& extents, Tag tag) { return {extents, memory::data_type::f32, tag}; }

memory::dims both(const Size& size) { return {size.h, size.w}; }

Tensors tensors(const RacedConvolution& conv, bool plain) {
  const Shape& x = conv.x;
  const Conv& op = conv.op;
  const Shape y = infer(op, {x}).y;
  const auto tag = [&](Tag of_plain) { return plain ? of_plain : Tag::any; };
  const int g = op.groups;
  return {describe({x.n, x.c, x.h, x.w}, tag(Tag::nchw)),
          g == 1 ? describe({op.channels, x.c, op.kernel.h, op.kernel.w}, tag(Tag::oihw))
                 : describe({g, op.channels / g, x.c / g, op.kernel.h, op.kernel.w}, tag(Tag::goihw)),
          op.bias ? describe({op.channels}, tag(Tag::x)) : memory::desc(),
          describe({y.n, y.c, y.h, y.w}, tag(Tag::nchw))};
}

/// The primitive's descriptor: in version 3 made at once, in version 2 of the operation's descriptor.
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
  TimedPrimitive(const dnnl::engine& engine, const RacedConvolution& conv, Pass pass, const std::string& variant)
      : ServedConvolution(pass), engine_(engine), stream_(engine), plain_(tensors(conv, true)) {
    const auto algorithm =
        variant == "winograd" ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
    const Tensors wanted = tensors(conv, variant == "nchw");
    const memory::dims stride = both(conv.op.stride), pad = both(conv.op.pad);
    const memory::dims dilation = {conv.op.dilation.h - 1, conv.op.dilation.w - 1};  // oneDNN counts from 0

    // A weights gradient takes its bias from the bias's gradient; the data gradient knows none.
    const auto forward =
        make<dnnl::convolution_forward>(engine, std::tuple(), dnnl::prop_kind::forward_training, algorithm, wanted.x,
                                        wanted.w, wanted.bias, wanted.y, stride, dilation, pad, pad);
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
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_seconds();
    primitive_.execute(stream_, arguments_);
    stream_.wait();
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), cpu_seconds() - cpu_start};
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
                             const std::string& variant) {
  if (variant != "any" && variant != "winograd" && variant != "nchw")
    throw UsageError("no variant '" + variant + "'; there are any, winograd and nchw");
  try {
    return std::make_unique<TimedPrimitive>(engine, conv, pass, variant);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) throw Unsupported("oneDNN has none such");
    throw;
  }
}

int serve_onednn(int threads) {
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const dnnl_version_t& version = *dnnl_version();
    const std::string text =
        std::to_string(version.major) + '.' + std::to_string(version.minor) + '.' + std::to_string(version.patch);
    serve({{"onednn", text}, {"threads", threads}},
          [&](const std::string& pass, const std::string& variant, const std::string& numbers) {
            return open(engine, read_convolution(numbers), pass_of(pass), variant);
          });
  } catch (const std::exception& error) {
    std::cout << json{{"error", error.what()}}.dump() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace lamina::bench

int main(int argc, char** argv) {
  if (argc == 2) return lamina::bench::serve_onednn(std::stoi(argv[1]));
  std::cerr << "usage: onednn_worker THREADS\n";
  return 2;
}
