// Uploads of batches to a device that copies late. The host must wait only before it overwrites data that is not yet
// copied.

#include "lib/training/feed.h"

#include <deque>

#include "lib/core/device/host/host_device.h"
#include "tests/support/catch.h"

using namespace lamina;
using training::Uploads;

namespace {

/// A device that copies from staging memory only when a caller waits for the copy, as late as a GPU could.
class LateDevice final : public Device {
 public:
  struct Copy {
    const void* staging;
    std::function<void()> run;
  };
  std::deque<Copy> queue;
  int waiting_uploads = 0;

  void finish() {
    while (!queue.empty()) run_first();
  }

  std::string describe() override { return "late device"; }
  void* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  void release(void* data) noexcept override { memory_.release(data); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    ++waiting_uploads;
    finish();
    memory_.upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override { finish(), memory_.download(to, from, bytes); }
  void fill(void* to, unsigned char byte, std::size_t bytes) override { memory_.fill(to, byte, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { finish(), memory_.copy(to, from, bytes); }
  void synchronize() override { finish(); }
  std::unique_ptr<Timer> timer() override { return memory_.timer(); }
  std::unique_ptr<Staging> staging(std::size_t bytes) override { return std::make_unique<Late>(*this, bytes); }

 private:
  struct Late final : Staging {
    Late(LateDevice& of, std::size_t bytes) : device(&of), memory(bytes) {}
    void* data() override {
      const auto pending = [&] {
        for (const Copy& copy : device->queue)
          if (copy.staging == this) return true;
        return false;
      };
      while (pending()) device->run_first();
      return memory.data();
    }
    void upload(void* to, std::size_t first, std::size_t bytes) override {
      REQUIRE(first + bytes <= memory.size());
      device->queue.push_back({this, [=, this] { std::memcpy(to, memory.data() + first, bytes); }});
    }
    LateDevice* device;
    std::vector<unsigned char> memory;
  };

  void run_first() {
    const Copy copy = queue.front();
    queue.pop_front();
    copy.run();
  }

  HostDevice memory_{1};
};

/// The values of a batch. They differ from the values of all other batches.
std::vector<float> numbered(int batch, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(32 * batch) + static_cast<float>(i);
  return values;
}

std::vector<float> values(Device& device, const Tensor& tensor) {
  std::vector<float> all(static_cast<std::size_t>(tensor.shape.count()));
  download(device, std::span<float>(all), tensor);
  return all;
}

}  // namespace

TEST_CASE("a host may be two batches ahead of its device, and waits before it overwrites an uncopied batch") {
  const Shape samples{3, 2, 2, 2}, labels{3, 1, 1, 1};
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      INFO(to_string(dtype) << ", " << to_string(layout));
      LateDevice device;
      const Buffer to_samples(device, static_cast<std::size_t>(samples.count()) * size_of(dtype));
      const Buffer to_labels(device, static_cast<std::size_t>(labels.count()) * size_of(dtype));
      const Tensor x{to_samples.data(), samples, dtype, layout, dense_pitch(samples, layout)};
      const Tensor y{to_labels.data(), labels, dtype, layout, dense_pitch(labels, layout)};
      Uploads uploads(device, x, y);
      const auto give = [&](int batch) { uploads.give(numbered(batch, 24), numbered(batch, 3)); };
      // The device makes the copies of batch `batch`, and no later copies.
      const auto arrives = [&](int batch) {
        std::deque<LateDevice::Copy> later;
        while (device.queue.size() > 2) {
          later.push_front(device.queue.back());
          device.queue.pop_back();
        }
        CHECK(values(device, x) == numbered(batch, 24));
        CHECK(values(device, y) == numbered(batch, 3));
        device.queue = later;
      };
      give(0);
      give(1);
      CHECK(device.queue.size() == 4);  // the host did not wait
      arrives(0);
      give(2);
      CHECK(device.queue.size() == 4);  // batch 0 is copied, so its memory is free
      give(3);
      CHECK(device.queue.size() == 4);  // the host has waited for the copies of batch 1
      arrives(2);
      arrives(3);
      CHECK(device.waiting_uploads == 0);
    }
}

TEST_CASE("without staging memory, or to a tensor with a pitch, an upload waits for the device") {
  const Shape samples{2, 3, 2, 2}, labels{2, 1, 1, 1};
  LateDevice late;
  HostDevice host(1);
  for (Device* device : {static_cast<Device*>(&late), static_cast<Device*>(&host)}) {
    const std::int64_t pitch = device == &late ? 17 : 12;
    const Buffer to_samples(*device, static_cast<std::size_t>(2 * pitch) * sizeof(float)), to_labels(*device, 8);
    const Tensor x{to_samples.data(), samples, DType::f32, Layout::nchw, pitch};
    const Tensor y{to_labels.data(), labels, DType::f32, Layout::nchw, 1};
    Uploads uploads(*device, x, y);
    for (int batch = 0; batch < 3; ++batch) {
      uploads.give(numbered(batch, 24), numbered(batch, 2));
      CHECK(values(*device, x) == numbered(batch, 24));
      CHECK(values(*device, y) == numbered(batch, 2));
    }
  }
  CHECK(late.waiting_uploads > 0);
}

TEST_CASE("write_elements() needs a dense tensor and the right number of values") {
  std::vector<float> host(12);
  const Tensor dense{host.data(), {1, 3, 2, 2}, DType::f32, Layout::nhwc, 3};
  std::vector<float> bytes(12);
  write_elements(bytes.data(), dense, numbered(0, 12));
  CHECK(bytes == std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  const Tensor pitched{host.data(), {1, 2, 2, 2}, DType::f32, Layout::nhwc, 3};
  CHECK_THROWS_AS(write_elements(bytes.data(), pitched, numbered(0, 8)), UsageError);
  CHECK_THROWS_AS(write_elements(bytes.data(), dense, numbered(0, 11)), UsageError);
}
