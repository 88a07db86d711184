#pragma once
// Memory, queue and timers of one device, the host or a GPU, as a plan sees it.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "lamina/api.h"
#include "lamina/shape.h"

namespace lamina {

/// Times work on a device: two events on its queue, or a steady clock.
class LAMINA_API Timer {
 public:
  virtual ~Timer() = default;
  virtual void start() = 0;      ///< marks the queue; does not wait
  virtual void stop() = 0;       ///< marks the queue; does not wait
  virtual double seconds() = 0;  ///< time between the two marks; waits for the second

  /// Whether the queue has reached the first mark; does not wait. Default: true, for a device that runs work as it is
  /// enqueued.
  virtual bool started() { return true; }
};

/// Readings of a device at one moment. A value that is not reported is empty.
struct DeviceState {
  std::optional<double> sm_mhz, temperature_c, power_w;  ///< multiprocessors' clock, die's temperature, board's power
  std::string throttled{};  ///< what limits the clock: "power cap, thermal slowdown"; empty: nothing known
  std::string missing{};    ///< readings that fail on a GPU, and why; empty: none fail, or no GPU
};

/// Work recorded once, to be launched again at little cost (a CUDA graph).
class LAMINA_API CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual void launch() = 0;  ///< enqueues; does not wait
};

/// Host memory from which a device copies on its own, so that neither side waits for the other. For a GPU it is
/// page-locked.
class LAMINA_API Staging {
 public:
  virtual ~Staging() = default;
  /// The bytes, which the caller may write until the next upload. Waits until the device has copied all that was
  /// uploaded from here.
  virtual void* data() = 0;
  /// Enqueues a copy of `bytes` bytes, from offset `first` on, into the device's memory; does not wait.
  virtual void upload(void* to, std::size_t first, std::size_t bytes) = 0;
};

/// A second queue of a device, for a library that enqueues work there. Its destructor may run after the device's.
class LAMINA_API SideQueue {
 public:
  virtual ~SideQueue() = default;
  virtual void* stream() = 0;  ///< a cudaStream_t
  virtual void follow() = 0;   ///< work enqueued here later runs after the device's work so far; does not wait
  virtual void lead() = 0;     ///< later work of the device runs after the work here so far; does not wait
  virtual bool idle() = 0;     ///< whether all work that was enqueued here has run; does not wait
};

/// One device with one queue of work, which runs in order. Its memory, timers and captured work must not outlive it; it
/// lives as long as its backend.
class LAMINA_API Device {
 public:
  virtual ~Device() = default;
  virtual std::string describe() = 0;  ///< "AMD EPYC, 2 threads"; throws DeviceError if there is no device

  /// Memory aligned to 256 bytes, contents undefined. Throws OutOfMemory. Zero bytes give null.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* data) noexcept = 0;

  virtual void upload(void* to, const void* from_host, std::size_t bytes) = 0;    ///< copies in queue order; waits
  virtual void download(void* to_host, const void* from, std::size_t bytes) = 0;  ///< copies in queue order; waits
  virtual void fill(void* to, unsigned char byte, std::size_t bytes) = 0;         ///< enqueues; does not wait
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  ///< copies within the device; enqueues
  virtual void synchronize() = 0;                                        ///< waits for all work
  virtual std::unique_ptr<Timer> timer() = 0;
  virtual bool has_host_memory() const { return false; }  ///< whether the host may read and write the device's memory

  /// `bytes` of memory for uploads that do not wait. Default: null, for a device whose uploads never wait.
  virtual std::unique_ptr<Staging> staging(std::size_t bytes);

  /// A second queue. Makes the device current in the calling thread. Default: null, for a device without CUDA streams.
  virtual std::unique_ptr<SideQueue> side_queue();

  /// Longest time for which hold() keeps the queue busy. 0: work runs as it is enqueued, so there is nothing to hold.
  virtual double longest_hold() const { return 0; }
  /// Keeps the queue busy for about `seconds`, at most longest_hold(), so that marks and work enqueued meanwhile begin
  /// without waiting for the host. The hold ends on time, whatever the host does. Enqueues; does not wait.
  virtual void hold(double seconds);

  /// Takes readings of the device now. Changes nothing, never throws. Default: no readings.
  virtual DeviceState state() { return {}; }

  /// Records the work that `work` enqueues instead of running it. Throws Unsupported if the device cannot do so.
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work);
};

/// Device memory with one owner. The device must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, std::size_t bytes) : device_(&device), data_(device.allocate(bytes)), bytes_(bytes) {}
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }

  void* data() const { return data_; }
  std::size_t size_bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  void reset() noexcept {
    if (data_ != nullptr) device_->release(data_);
    data_ = nullptr;
  }

  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Copies host values in dense n, c, h, w order into a tensor of any layout, pitch and float type, or back. Both wait.
/// Bytes between the images or pixels of a pitched tensor are left as they are.
/// Throws UsageError when the number of values is not the tensor's, and for a tensor that is null or of type u64.
LAMINA_API void upload(Device&, const Tensor& to, std::span<const float> from);
LAMINA_API void upload(Device&, const Tensor& to, std::span<const double> from);
LAMINA_API void download(Device&, std::span<float> to, const Tensor& from);
LAMINA_API void download(Device&, std::span<double> to, const Tensor& from);

/// Writes to host memory, for instance of a Staging, the bytes that upload() would copy to a tensor. Throws what
/// upload() throws, and UsageError for a tensor that is not dense.
LAMINA_API void write_elements(void* to_host, const Tensor& tensor, std::span<const float> from);

}  // namespace lamina
