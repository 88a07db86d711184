// The device of the backend cuda: its answers without a GPU, and its work on a GPU.

#include "lib/core/device/cuda/cuda_device.h"

#include "lamina/lamina.h"
#include "lamina/timing.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace lamina {
namespace {

/// The fixture of tests on a GPU. Without a GPU the process ends as skipped.
struct OnGpu {
  OnGpu() {
    if (const std::string why = cuda_unavailable(); !why.empty()) test::skip_without_gpu(why);
  }
  CudaDevice device;
};

TEST_CASE("a CudaDevice without work needs no GPU", "[no_gpu]") {
  CudaDevice device(7);
  CHECK(device.allocate(0) == nullptr);
  device.release(nullptr);
  int untouched = 0;
  device.release(&untouched);
  CHECK_NOTHROW(Buffer(device, 0));
}

TEST_CASE("without a GPU, the first call that needs one fails with the reason", "[no_gpu]") {
  const std::string why = cuda_unavailable();
  if (why.empty()) return;  // there is a GPU: tests with the label gpu cover it
  CHECK_THAT(why, ContainsSubstring("no CUDA device here") && ContainsSubstring("cudaError"));
  CHECK(why.find('\n') == std::string::npos);
  CudaDevice device;
  CHECK_THROWS_MATCHES(device.allocate(1), DeviceError, Says("cudaGetDeviceCount", why));
  CHECK_THROWS_AS(device.stream(), DeviceError);
  CHECK_THROWS_AS(device.timer(), DeviceError);
  CHECK_THROWS_AS(device.staging(1), DeviceError);
  CHECK_THROWS_AS(device.side_queue(), DeviceError);
  CHECK_THROWS_AS(device.synchronize(), DeviceError);
  CHECK_THROWS_AS(device.describe(), DeviceError);
  CHECK_THROWS_AS(device.hold(1e-3), DeviceError);
  CHECK_THROWS_AS(cuda_peak_flops_per_second(device, DType::f32), DeviceError);
  CHECK_THAT(device.state().missing, ContainsSubstring(why));  // a failed reading is no error
  bool worked = false;
  CHECK_THROWS_AS(device.capture([&] { worked = true; }), DeviceError);
  CHECK_FALSE(worked);
}

TEST_CASE_METHOD(OnGpu, "a GPU number that is too high is refused with the number of GPUs", "[gpu]") {
  CudaDevice none(1000);
  CHECK_THROWS_AS(none.stream(), UsageError);
  CHECK_THAT(cuda_unavailable(1000), ContainsSubstring("no CUDA device 1000; there "));
}

TEST_CASE_METHOD(OnGpu, "a side queue can wait for the device, and the device for the side queue", "[gpu]") {
  const auto queue = device.side_queue();
  CHECK(queue->stream() != nullptr);
  CHECK(queue->stream() != device.stream());
  CHECK(queue->idle());
  device.hold(device.longest_hold());
  queue->follow();
  CHECK_FALSE(queue->idle());
  queue->lead();
  device.synchronize();
  CHECK(queue->idle());
}

TEST_CASE_METHOD(OnGpu, "values are copied to a GPU and back, and a fill keeps its order between copies", "[gpu]") {
  CHECK_THAT(device.describe(), ContainsSubstring("sm_"));
  std::vector<int> values(100000);
  std::iota(values.begin(), values.end(), 0);
  const std::size_t bytes = values.size() * sizeof(int);
  const Buffer first(device, bytes);
  const Buffer second(device, bytes);
  CHECK(reinterpret_cast<std::uintptr_t>(first.data()) % 256 == 0);
  device.upload(first.data(), values.data(), bytes);
  device.copy(second.data(), first.data(), bytes);
  device.fill(first.data(), 0xff, bytes / 2);
  std::vector<int> back(values.size());
  device.download(back.data(), second.data(), bytes);
  CHECK(back == values);
  device.download(back.data(), first.data(), bytes);
  CHECK(back.front() == -1);
  CHECK(back.back() == values.back());
}

TEST_CASE_METHOD(OnGpu, "staged bytes are copied in the queue's order, and may be overwritten after the copy",
                 "[gpu]") {
  constexpr std::size_t count = 1 << 20, half = count / 2;
  const Buffer block(device, count), kept(device, 16 * count);
  const auto staging = device.staging(count);
  for (unsigned char turn = 0; turn < 16; ++turn) {
    device.hold(1e-3);  // delays the copies
    std::memset(staging->data(), turn, count);
    staging->upload(block.data(), 0, half);
    staging->upload(static_cast<std::byte*>(block.data()) + half, half, half);
    device.copy(static_cast<std::byte*>(kept.data()) + turn * count, block.data(), count);
  }
  std::vector<unsigned char> back(16 * count), wanted(16 * count);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<unsigned char>(i / count);
  device.download(back.data(), kept.data(), back.size());
  CHECK(back == wanted);
  CHECK_NOTHROW(device.staging(count)->data());  // no upload from the buffer is in progress
}

TEST_CASE_METHOD(OnGpu, "memory beyond the limit or beyond the GPU's memory is an error with the free bytes", "[gpu]") {
  CudaDevice limited(0, 1 << 20);
  const Buffer block(limited, 1 << 19);
  try {
    limited.allocate((1 << 19) + 1);
    FAIL("the limit was not kept");
  } catch (const OutOfMemory& error) {
    CHECK(error.wanted_bytes() == (1 << 19) + 1);
    CHECK(error.free_bytes() == 1 << 19);
  }
  CHECK_THROWS_AS(device.allocate(std::size_t{1} << 50), OutOfMemory);
  CHECK_NOTHROW(device.synchronize());  // the failed allocation leaves no error
}

TEST_CASE_METHOD(OnGpu, "a timer measures the time of the work between its marks", "[gpu]") {
  const Buffer block(device, std::size_t{256} << 20);
  const auto timer = device.timer();
  const auto seconds = [&](int fills) {
    timer->start();
    for (int i = 0; i < fills; ++i) device.fill(block.data(), 0, block.size_bytes());
    timer->stop();
    return timer->seconds();
  };
  seconds(1);
  const double one = seconds(1);
  CHECK(one > 0);
  CHECK(seconds(50) > 10 * one);
}

TEST_CASE_METHOD(OnGpu, "a held queue reaches a mark only after the delay", "[gpu]") {
  const auto timer = device.timer();
  const auto marked = [&](double seconds) {
    if (seconds > 0) device.hold(seconds);
    timer->start();
    timer->stop();
    return timer->started();
  };
  marked(device.longest_hold());  // the first call loads the kernel
  device.synchronize();
  CHECK(timer->started());
  CHECK_FALSE(marked(device.longest_hold()));
  CHECK_NOTHROW(device.synchronize());  // the query before the mark leaves no error
  CHECK(timer->started());

  const auto delay = device.timer();
  delay->start();
  device.hold(2e-3);
  delay->stop();
  CHECK(delay->seconds() > 1.5e-3);  // the clock is at most the rate that the driver reports
  CHECK(delay->seconds() < 0.1);
}

TEST_CASE_METHOD(OnGpu, "the measured time of a small kernel is shorter if its launch is hidden", "[gpu]") {
  const Buffer block(device, 4096);
  const auto timer = device.timer();
  HeldLaunches held(device);
  const auto work = [&] {
    timer->start();
    for (int i = 0; i < 4; ++i) device.fill(block.data(), 0, 4096);
    timer->stop();
  };
  std::vector<double> hidden, included;
  int were_hidden = 0;
  for (int i = 0; i < 50; ++i) {
    device.synchronize();
    work();
    included.push_back(timer->seconds());
    device.synchronize();
    were_hidden += held.run(*timer, work) ? 1 : 0;
    hidden.push_back(timer->seconds());
  }
  CHECK(were_hidden >= 45);
  std::sort(hidden.begin(), hidden.end());
  std::sort(included.begin(), included.end());
  CHECK(hidden[25] < included[25]);
}

TEST_CASE_METHOD(OnGpu, "the measured peak is most of the arithmetic peak, and not more than it", "[gpu]") {
  const double peak = cuda_peak_flops_per_second(device, DType::f32), arithmetic = devices().at(1).peak_fp32;
  WARN("fp32 units: " << 1e-12 * peak << " TFLOP/s of " << 1e-12 * arithmetic << " by arithmetic");
  if (arithmetic > 0) {
    CHECK(peak > 0.5 * arithmetic);  // a lower clock is no failure
    CHECK(peak < 1.02 * arithmetic);
  }
  CHECK(cuda_peak_flops_per_second(device, DType::f64) > 0);
  CHECK_THROWS_AS(cuda_peak_flops_per_second(device, DType::f16), Unsupported);
  CHECK(make_backend("cuda")->peak_flops_per_second(DType::f16) > 0);  // f16 is computed in f32
}

TEST_CASE_METHOD(OnGpu, "a GPU's clock, temperature and power are read, or the state says why not", "[gpu]") {
  device.synchronize();
  const DeviceState state = device.state();
  if (!state.missing.empty()) WARN("not read: " << state.missing);
  CHECK((state.sm_mhz || !state.missing.empty()));
  if (state.sm_mhz) CHECK(*state.sm_mhz > 100);
  if (state.temperature_c) CHECK((*state.temperature_c > 5 && *state.temperature_c < 110));
  if (state.power_w) CHECK(*state.power_w > 1);
}

TEST_CASE_METHOD(OnGpu, "a captured graph runs its work once for each launch", "[gpu]") {
  const Buffer block(device, 4096);
  device.fill(block.data(), 1, 4096);
  const auto recorded = device.capture([&] { device.fill(block.data(), 2, 4096); });
  std::vector<unsigned char> back(4096);
  device.download(back.data(), block.data(), 4096);
  CHECK(back[4095] == 1);
  for (int i = 0; i < 2; ++i) {
    device.fill(block.data(), 3, 4096);
    recorded->launch();
    device.download(back.data(), block.data(), 4096);
    CHECK(back[4095] == 2);
  }
}

TEST_CASE_METHOD(OnGpu, "work that fails while it is captured leaves the queue usable", "[gpu]") {
  CHECK_THROWS_AS(device.capture([] { throw UsageError("on purpose"); }), UsageError);
  CHECK_THROWS_AS(device.capture([&] { device.synchronize(); }), DeviceError);
  const Buffer block(device, 16);
  device.fill(block.data(), 7, 16);
  CHECK_NOTHROW(device.synchronize());
}

TEST_CASE_METHOD(OnGpu, "a whole pass is captured, and each launch has the same results", "[gpu]") {
  const auto backend = make_backend("cuda");
  Graph graph("small");
  Value x = conv(graph.input({4, 8, 12, 12}), "conv", {.channels = 32, .kernel = 3, .pad = 1});
  x = relu(x, "relu");
  fully_connected(conv(x, "deep", {.channels = 32, .kernel = 3, .pad = 1}), "fc", {.outputs = 10});
  const auto values = [&](const Tensor& tensor) {
    std::vector<float> result(static_cast<std::size_t>(tensor.shape.count()));
    download(backend->device(), result, tensor);
    return result;
  };
  for (const char* algorithm : {"", "direct", "im2col_gemm", "implicit_gemm", "cublas", "gemm"}) {
    INFO(algorithm);
    const Options options{.choice = {.algorithm = {algorithm, algorithm, algorithm}}};
    Plan recorded(graph, *backend, options), plain(graph, *backend, options);
    plain.forward();  // the first use of cuBLAS may make calls that cannot be captured
    plain.backward();
    const auto pass = backend->device().capture([&] {
      recorded.forward();
      recorded.backward();
    });
    for (int launch = 0; launch < 2; ++launch) {
      pass->launch();
      CHECK(values(recorded.output()) == values(plain.output()));
      for (const std::string& name : plain.parameter_names())
        CHECK(values(recorded.parameter_gradient(name)) == values(plain.parameter_gradient(name)));
    }
  }
}

}  // namespace
}  // namespace lamina
