// Answers of the installed cuDNN, if there is one, without a device.

#include "lib/backends/cudnn/library/call.h"
#include "lib/backends/cudnn/library/common.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace lamina;
using namespace lamina::cudnn;

namespace {

/// The cuDNN in the directory LAMINA_TEST_CUDNN, or else the cuDNN that the loader finds. Without a cuDNN the test is
/// skipped.
const Library& library() {
  static const Library* const found = [] {
    const char* directory = std::getenv("LAMINA_TEST_CUDNN");
    try {
      return new Library(directory == nullptr ? "" : directory);
    } catch (const LoadError& error) {
      test::skip_without_gpu(error.what());
    }
  }();
  return *found;
}

}  // namespace

TEST_CASE("the installed cuDNN has a version, a directory and all functions of the table") {
  const Api& api = library().api();
  CHECK(api.major() >= 7);
  CHECK_FALSE(api.directory.empty());
#define LAMINA_TEST_THERE(name, ...) CHECK(api.name != nullptr);
  LAMINA_CUDNN_CONVOLUTION(LAMINA_TEST_THERE)
  LAMINA_CUDNN_OPS(LAMINA_TEST_THERE)
  if (api.major() >= 9) LAMINA_CUDNN_BY_VERSION(LAMINA_TEST_THERE)
}

TEST_CASE("the installed cuDNN's status names agree with our meanings of the status numbers") {
  const Api& api = library().api();
  const bool old = api.major() < 9;
  CHECK(text(api, 0).find("SUCCESS") != std::string::npos);
  const Status refusal = old ? 9 : 3000, parameter = old ? 3 : 2000, start = old ? 1 : 1001;
  CHECK(text(api, refusal).find("CUDNN_STATUS_NOT_SUPPORTED") == 0);
  CHECK(text(api, parameter).find("CUDNN_STATUS_BAD_PARAM") == 0);
  CHECK(text(api, start).find("CUDNN_STATUS_NOT_INITIALIZED") == 0);
  CHECK(meaning(api, refusal) == Meaning::not_supported);
  CHECK(meaning(api, parameter) == Meaning::bad_parameter);
  CHECK(meaning(api, start) == Meaning::other);
}

TEST_CASE("the installed cuDNN accepts our descriptors, and refuses a wrong descriptor with its own message") {
  const Api& api = library().api();
  for (const Layout layout : {Layout::nchw, Layout::nhwc})
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      if (dtype == DType::bf16 && !at_least(api, 8, 1)) continue;
      CHECK_NOTHROW(describe(api, {2, 3, 4, 5}, dtype, layout, layout == Layout::nchw ? 70 : 7));
      const TensorSpec filter{.shape = {4, 3, 3, 3}, .dtype = dtype, .layout = layout};
      CHECK_NOTHROW(describe_filter(api, filter));
    }
  CHECK_NOTHROW(describe_activation(api, activation_mode::relu));
  const ConvolutionDescriptor convolution(api);
  CHECK_NOTHROW(LAMINA_CUDNN(api, SetConvolution2dDescriptor, convolution.get(), 1, 1, 2, 2, 1, 1, cross_correlation,
                             data_type::f32));
  CHECK_NOTHROW(LAMINA_CUDNN(api, SetConvolutionGroupCount, convolution.get(), 2));
  CHECK_NOTHROW(LAMINA_CUDNN(api, SetConvolutionMathType, convolution.get(),
                             api.major() >= 8 ? math_type::fma : math_type::standard));
  CHECK_NOTHROW(check_one_directory(api));
  const PoolingDescriptor pooling(api);
  CHECK_NOTHROW(LAMINA_CUDNN(api, SetPooling2dDescriptor, pooling.get(), pooling_mode::max_deterministic,
                             nan::propagate, 3, 3, 0, 0, 2, 2));
  const LrnDescriptor lrn(api);
  CHECK_NOTHROW(LAMINA_CUDNN(api, SetLRNDescriptor, lrn.get(), 5U, 1e-4, 0.75, 2.0));
  const OpTensorDescriptor add(api);
  CHECK_NOTHROW(LAMINA_CUDNN(api, SetOpTensorDescriptor, add.get(), op_tensor_add, data_type::f64, nan::propagate));
  CHECK_THROWS_MATCHES(describe(api, {0, 3, 4, 5}, DType::f32, Layout::nchw, 60), Error,
                       Says("cudnnSetTensor4dDescriptorEx gave CUDNN_STATUS_"));
}

TEST_CASE("the installed cuDNN accepts an LSTM's descriptors with every algorithm, but only with both biases") {
  const Api& api = library().api();
  if (api.major() < 9) return;
  const DropoutDescriptor no_dropout(api);
  const auto set = [&](int algorithm, int biases, int type, int math) {
    const RnnDescriptor network(api);
    return api.SetRNNDescriptor_v8(network.get(), algorithm, rnn::lstm, biases, rnn::one_direction, rnn::linear_input,
                                   type, type, math, 4, 3, 3, 1, no_dropout.get(), rnn::takes_padding);
  };
  const int persistent[] = {rnn::persist_small_h, rnn::persist_static, rnn::persist_dynamic};
  for (const int math : {math_type::fma, math_type::standard}) {
    CHECK(set(rnn::standard, rnn::both_biases, data_type::f32, math) == ok);
    for (const int algorithm : persistent) CHECK(set(algorithm, rnn::both_biases, data_type::f32, math) == ok);
  }
  CHECK(set(rnn::standard, rnn::both_biases, data_type::f64, math_type::standard) == ok);
  constexpr int bias_of_x = 1;
  for (const int algorithm : persistent)
    CHECK(meaning(api, set(algorithm, bias_of_x, data_type::f32, math_type::fma)) == Meaning::not_supported);

  const auto rows_of = [&](int steps) {
    const RnnDataDescriptor rows(api);
    const int lengths[] = {steps, steps};
    return api.SetRNNDataDescriptor(rows.get(), data_type::f32, rnn::steps_first, steps, 2, 4, lengths, nullptr);
  };
  CHECK(rows_of(5) == ok);
  CHECK(meaning(api, rows_of(1 << 16)) == Meaning::not_supported);  // one step more than the maximum
}
