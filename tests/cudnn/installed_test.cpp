// The cuDNN of the system, if installed: its answers without a device.

#include <cstdlib>

#include "lamina/error.h"
#include "lib/backends/cudnn/library/common.h"
#include "lib/backends/cudnn/library/status.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace lamina;
using namespace lamina::cudnn;

namespace {

/// LAMINA_TEST_CUDNN names its directory; otherwise the loader finds it. Without a cuDNN the test is skipped.
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

TEST_CASE("the installed cuDNN has a version, a directory and the entry points of the table") {
  const Api& api = library().api();
  CHECK(api.major() >= 7);
  CHECK_FALSE(api.directory.empty());
#define LAMINA_TEST_THERE(name, ...) CHECK(api.name != nullptr);
  LAMINA_CUDNN_CONVOLUTION(LAMINA_TEST_THERE)
  LAMINA_CUDNN_OPS(LAMINA_TEST_THERE)
  if (api.major() >= 9) LAMINA_CUDNN_BY_VERSION(LAMINA_TEST_THERE)
}

TEST_CASE("the installed cuDNN names its statuses as our meanings have them") {
  const Api& api = library().api();
  const bool old = api.major() < 9;
  CHECK(text(api, 0).find("SUCCESS") != std::string::npos);
  const Status refusal = old ? 9 : 3000, parameter = old ? 3 : 2000, start = old ? 1 : 1001;
  CHECK(text(api, refusal).find("CUDNN_STATUS_NOT_SUPPORTED") == 0);
  CHECK(text(api, parameter).find("CUDNN_STATUS_BAD_PARAM") == 0);
  CHECK(text(api, start).find("CUDNN_STATUS_NOT_INITIALIZED") == 0);
  CHECK(meaning(api, refusal) == Meaning::not_supported);
  CHECK(meaning(api, parameter) == Meaning::bad_parameter);
  CHECK(meaning(api, start) == Meaning::not_initialized);
}

TEST_CASE("the installed cuDNN takes our descriptors, and refuses one that makes no sense with its own text") {
  const Api& api = library().api();
  for (const Layout layout : {Layout::nchw, Layout::nhwc})
    for (const DType dtype : {DType::f32, DType::f64}) {
      CHECK_NOTHROW(describe(api, {2, 3, 4, 5}, dtype, layout, layout == Layout::nchw ? 70 : 7));
      const TensorSpec filter{.shape = {4, 3, 3, 3}, .dtype = dtype, .layout = layout};
      CHECK_NOTHROW(describe_filter(api, filter));
    }
  CHECK_NOTHROW(describe_relu(api));
  const ConvolutionDescriptor convolution(api);
  CHECK_NOTHROW(LAMINA_CUDNN(api, SetConvolution2dDescriptor, convolution.get(), 1, 1, 2, 2, 1, 1,
                             convolution_mode::cross_correlation, data_type::f32));
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
  CHECK_NOTHROW(LAMINA_CUDNN(api, SetOpTensorDescriptor, add.get(), op_tensor::add, data_type::f64, nan::propagate));
  CHECK_THROWS_AS(describe(api, {0, 3, 4, 5}, DType::f32, Layout::nchw, 60), Error);
  CHECK_THROWS_WITH(describe(api, {0, 3, 4, 5}, DType::f32, Layout::nchw, 60),
                    Catch::Matchers::ContainsSubstring("cudnnSetTensor4dDescriptorEx gave CUDNN_STATUS_"));
}
