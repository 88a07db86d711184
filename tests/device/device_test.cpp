// The host as a device: memory, the memory limit, the timer, and copies between host values and tensors of any layout,
// pitch and type.

#include "lamina/device.h"

#include <chrono>
#include <thread>

#include "lib/core/device/host/host_device.h"
#include "tests/support/catch.h"

using namespace lamina;

namespace {

/// A tensor in device memory. Its bytes are 0xAB at first, so that unwritten bytes can be found.
struct Placed {
  Buffer buffer;
  Tensor tensor;

  Placed(Device& device, Shape shape, DType dtype, Layout layout, std::int64_t pitch)
      : buffer(device, bytes(shape, dtype, layout, pitch)), tensor{buffer.data(), shape, dtype, layout, pitch} {
    device.fill(buffer.data(), 0xAB, buffer.size_bytes());
  }

  static std::size_t bytes(Shape shape, DType dtype, Layout layout, std::int64_t pitch) {
    const std::int64_t steps = layout == Layout::nchw ? shape.n : shape.n * shape.plane();
    return static_cast<std::size_t>(steps * pitch) * size_of(dtype);
  }

  /// The index of element (n, c, h, w) in memory, by the definition of layout and pitch.
  std::int64_t place(int n, int c, int h, int w) const {
    const Shape& s = tensor.shape;
    if (tensor.layout == Layout::nchw) return n * tensor.pitch + (c * s.h + h) * s.w + w;
    return ((n * s.h + h) * s.w + w) * tensor.pitch + c;
  }
};

template <class T>
std::vector<T> counting(const Shape& shape) {
  std::vector<T> values(static_cast<std::size_t>(shape.count()));
  std::iota(values.begin(), values.end(), T(1));
  return values;
}

template <class T, class Visit>
void for_each_element(const Shape& s, const std::vector<T>& values, Visit&& visit) {
  std::size_t i = 0;
  for (int n = 0; n < s.n; ++n)
    for (int c = 0; c < s.c; ++c)
      for (int h = 0; h < s.h; ++h)
        for (int w = 0; w < s.w; ++w) visit(n, c, h, w, values[i++]);
}

std::uint16_t uploaded_bits(Device& device, DType dtype, double value) {
  Buffer buffer(device, 2);
  const Tensor tensor{buffer.data(), {1, 1, 1, 1}, dtype, Layout::nchw, 1};
  upload(device, tensor, std::span<const double>(&value, 1));
  std::uint16_t bits = 0;
  device.download(&bits, buffer.data(), 2);
  return bits;
}

double downloaded(Device& device, DType dtype, std::uint16_t bits) {
  Buffer buffer(device, 2);
  device.upload(buffer.data(), &bits, 2);
  double value = 0;
  download(device, std::span<double>(&value, 1), Tensor{buffer.data(), {1, 1, 1, 1}, dtype, Layout::nchw, 1});
  return value;
}

}  // namespace

TEST_CASE("memory is aligned to 256 bytes, and large blocks to huge pages") {
  HostDevice device(1);
  const Buffer small(device, 1), medium(device, 1000), large(device, std::size_t{5} << 20);
  CHECK(reinterpret_cast<std::uintptr_t>(small.data()) % 256 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(medium.data()) % 256 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(large.data()) % (std::size_t{2} << 20) == 0);
  CHECK(device.allocate(0) == nullptr);
  device.release(nullptr);
}

TEST_CASE("the memory limit counts living blocks, and its error has the wanted and the free bytes") {
  HostDevice device(1, 1000);
  Buffer first(device, 600);
  try {
    const Buffer second(device, 500);
    FAIL("the limit was not kept");
  } catch (const OutOfMemory& error) {
    CHECK(error.wanted_bytes() == 500);
    CHECK(error.free_bytes() == 400);
  }
  { const Buffer rest(device, 400); }
  { const Buffer rest_again(device, 400); }
  first = Buffer();
  const Buffer whole(device, 1000);
  CHECK_THROWS_AS(device.allocate(1), OutOfMemory);
}

TEST_CASE("a request for more memory than the machine has throws OutOfMemory at once") {
  HostDevice device(1);
  CHECK_THROWS_AS(device.allocate(std::size_t{1} << 60), OutOfMemory);
  CHECK_THROWS_AS(device.allocate(std::numeric_limits<std::size_t>::max()), OutOfMemory);
}

TEST_CASE("bytes are copied to the device, filled and copied back") {
  HostDevice device(2);
  Buffer buffer(device, 8);
  device.upload(buffer.data(), "lamina!", 8);
  char text[8] = {};
  device.download(text, buffer.data(), 8);
  CHECK(std::string(text) == "lamina!");
  device.fill(buffer.data(), 'x', 3);
  device.synchronize();
  device.download(text, buffer.data(), 8);
  CHECK(std::string(text) == "xxxina!");
}

TEST_CASE("the host device has a description, times work, and refuses to capture it") {
  HostDevice one(1), two(2);
  CHECK_THAT(one.describe(), Catch::Matchers::EndsWith(", 1 thread"));
  CHECK_THAT(two.describe(), Catch::Matchers::EndsWith(", 2 threads"));
  const auto timer = one.timer();
  timer->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  timer->stop();
  CHECK(timer->seconds() >= 0.003);
  CHECK_THROWS_AS(one.capture([] {}), Unsupported);
}

TEST_CASE("upload and download follow layout, pitch and type, and leave gaps alone") {
  HostDevice device(1);
  const Shape shape = {3, 4, 2, 5};
  const Layout layout = GENERATE(Layout::nchw, Layout::nhwc);
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int gap = GENERATE(0, 7);
  const Placed placed(device, shape, dtype, layout, dense_pitch(shape, layout) + gap);
  const auto values = counting<double>(shape);
  const std::vector<float> floats(values.begin(), values.end());
  if (GENERATE(true, false))
    upload(device, placed.tensor, std::span<const double>(values));
  else
    upload(device, placed.tensor, std::span<const float>(floats));

  std::vector<unsigned char> expected(placed.buffer.size_bytes(), 0xAB);
  for_each_element(shape, values, [&](int n, int c, int h, int w, double value) {
    const auto at = static_cast<std::size_t>(placed.place(n, c, h, w)) * size_of(dtype);
    const auto narrow = static_cast<float>(value);
    if (dtype == DType::f64)
      std::memcpy(&expected[at], &value, sizeof value);
    else
      std::memcpy(&expected[at], &narrow, sizeof narrow);
  });
  std::vector<unsigned char> bytes(expected.size());
  device.download(bytes.data(), placed.buffer.data(), bytes.size());
  CHECK(bytes == expected);

  std::vector<double> back(values.size());
  download(device, std::span<double>(back), placed.tensor);
  CHECK(back == values);
  std::vector<float> narrow_back(values.size());
  download(device, std::span<float>(narrow_back), placed.tensor);
  CHECK(narrow_back == floats);
}

TEST_CASE("16-bit floats are rounded to nearest, ties to even") {
  HostDevice device(1);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto half = [&](double value) { return uploaded_bits(device, DType::f16, value); };
  CHECK(half(1) == 0x3C00);
  CHECK(half(-2) == 0xC000);
  CHECK(half(-0.0) == 0x8000);
  CHECK(half(65504) == 0x7BFF);
  CHECK(half(65519.99) == 0x7BFF);
  CHECK(half(65520) == 0x7C00);
  CHECK(half(1e300) == 0x7C00);
  CHECK(half(-infinity) == 0xFC00);
  CHECK(half(1 + std::ldexp(1, -11)) == 0x3C00);
  CHECK(half(1 + std::ldexp(3, -11)) == 0x3C02);
  CHECK(half(1 + std::ldexp(1, -11) + std::ldexp(1, -40)) == 0x3C01);  // a detour through f32 would lose the last bit
  CHECK(half(std::ldexp(1, -24)) == 0x0001);
  CHECK(half(std::ldexp(1, -25)) == 0x0000);
  CHECK(half(std::ldexp(1023.5, -24)) == 0x0400);
  CHECK(half(std::numeric_limits<double>::quiet_NaN()) == 0x7E00);
  const auto brain = [&](double value) { return uploaded_bits(device, DType::bf16, value); };
  CHECK(brain(1) == 0x3F80);
  CHECK(brain(-3.140625) == 0xC049);
  CHECK(brain(1 + std::ldexp(1, -8)) == 0x3F80);
  CHECK(brain(1 + std::ldexp(3, -8)) == 0x3F82);
  CHECK(brain(1e39) == 0x7F80);
}

TEST_CASE("every 16-bit float but NaN is unchanged after a copy to the host and back") {
  HostDevice device(1);
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const unsigned infinity = dtype == DType::f16 ? 0x7C00U : 0x7F80U;
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const double value = downloaded(device, dtype, static_cast<std::uint16_t>(bits));
    REQUIRE(std::isnan(value) == ((bits & 0x7FFFU) > infinity));
    if (!std::isnan(value)) REQUIRE(uploaded_bits(device, dtype, value) == bits);
  }
}

TEST_CASE("copies with wrong arguments are errors that name the fault") {
  HostDevice device(1);
  const Placed placed(device, {2, 3, 1, 1}, DType::f32, Layout::nchw, 3);
  std::vector<float> five(5), six(6);
  using Catch::Matchers::EndsWith;
  CHECK_THAT(test::said_by<UsageError>([&] { upload(device, placed.tensor, std::span<const float>(five)); }),
             EndsWith("5 host values for a tensor of 2x3x1x1, which has 6"));
  CHECK_THAT(test::said_by<UsageError>([&] { download(device, std::span<float>(five), placed.tensor); }),
             EndsWith("5 host values for a tensor of 2x3x1x1, which has 6"));
  Tensor none = placed.tensor;
  none.data = nullptr;
  CHECK_THAT(test::said_by<UsageError>([&] { upload(device, none, std::span<const float>(six)); }),
             EndsWith("the tensor is null"));
  Tensor words = placed.tensor;
  words.dtype = DType::u64;
  CHECK_THAT(test::said_by<UsageError>([&] { download(device, std::span<float>(six), words); }),
             EndsWith("u64 words; copy them with Device::download"));
}
