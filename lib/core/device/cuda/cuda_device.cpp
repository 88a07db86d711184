// A GPU as a device, on the CUDA runtime.

#include "cuda_device.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "cuda_raii.h"
#include "kernels/timing/delay.h"
#include "lamina/error.h"
#include "lib/core/device/gpu.h"
#include "nvml.h"

namespace lamina {
namespace {

/// The number of devices; if 0, `why` has the reason. Never throws.
int device_count(std::string& why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  (void)cudaGetLastError();
  why = "no CUDA device here";
  if (status != cudaSuccess)
    why += std::string(": ") + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ", " +
           std::to_string(static_cast<int>(status)) + ")";
  int driver = 0;
  int runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || cudaRuntimeGetVersion(&runtime) != cudaSuccess) return 0;
  if (driver == 0)
    why += "; no NVIDIA driver is installed";
  else if (driver / 1000 < runtime / 1000)
    why += "; the driver is for CUDA " + cuda_version_text(driver) + ", and this build needs one for " +
           cuda_version_text(runtime / 1000 * 1000);
  return 0;
}

/// Whether a query returned that all work is done.
bool is_done(cudaError_t status, const char* query) {
  if (status != cudaErrorNotReady) {
    cudart::check(status, query, __FILE__, __LINE__);
    return true;
  }
  (void)cudaGetLastError();  // clears the error, which the runtime also remembers
  return false;
}

class CudaTimer final : public Timer {
 public:
  explicit CudaTimer(CudaDevice& device) : device_(&device) {
    device.stream();  // events belong to the thread's current device
    start_ = cudart::make_event();
    stop_ = cudart::make_event();
  }

  void start() override { LAMINA_CUDART(cudaEventRecord(start_.get(), device_->stream())); }
  void stop() override { LAMINA_CUDART(cudaEventRecord(stop_.get(), device_->stream())); }
  double seconds() override {
    device_->stream();
    LAMINA_CUDART(cudaEventSynchronize(stop_.get()));
    float milliseconds = 0;
    LAMINA_CUDART(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()));
    return 1e-3 * static_cast<double>(milliseconds);
  }
  bool started() override {
    device_->stream();
    return is_done(cudaEventQuery(start_.get()), "cudaEventQuery(start_.get())");
  }

 private:
  CudaDevice* device_;
  cudart::Event start_, stop_;
};

class CudaStaging final : public Staging {
 public:
  CudaStaging(CudaDevice& device, std::size_t bytes) : device_(&device) {
    device.stream();
    memory_ = cudart::make_host_memory(bytes);
    copied_ = cudart::make_event(cudaEventDisableTiming);
  }
  ~CudaStaging() override {
    if (cudaEventSynchronize(copied_.get()) != cudaSuccess) (void)cudaGetLastError();
  }
  CudaStaging(const CudaStaging&) = delete;
  CudaStaging& operator=(const CudaStaging&) = delete;

  void* data() override {
    device_->stream();
    LAMINA_CUDART(cudaEventSynchronize(copied_.get()));  // returns at once if nothing was uploaded yet
    return memory_.get();
  }
  void upload(void* to, std::size_t first, std::size_t bytes) override {
    if (bytes == 0) return;
    cudaStream_t const stream = device_->stream();
    const auto* const from = static_cast<const std::byte*>(memory_.get()) + first;
    LAMINA_CUDART(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
    LAMINA_CUDART(cudaEventRecord(copied_.get(), stream));
  }

 private:
  CudaDevice* device_;
  cudart::HostMemory memory_;
  cudart::Event copied_;
};

class CudaSideQueue final : public SideQueue {
 public:
  explicit CudaSideQueue(CudaDevice& device) : device_(&device) {
    device.stream();
    stream_ = cudart::make_stream();
    before_ = cudart::make_event(cudaEventDisableTiming);
    after_ = cudart::make_event(cudaEventDisableTiming);
  }

  void* stream() override { return stream_.get(); }
  void follow() override {
    LAMINA_CUDART(cudaEventRecord(before_.get(), device_->stream()));
    LAMINA_CUDART(cudaStreamWaitEvent(stream_.get(), before_.get(), 0));
  }
  void lead() override {
    cudaStream_t const of_device = device_->stream();
    LAMINA_CUDART(cudaEventRecord(after_.get(), stream_.get()));
    LAMINA_CUDART(cudaStreamWaitEvent(of_device, after_.get(), 0));
  }
  bool idle() override {
    device_->stream();
    return is_done(cudaStreamQuery(stream_.get()), "cudaStreamQuery(stream_.get())");
  }

 private:
  CudaDevice* device_;
  cudart::Stream stream_;
  cudart::Event before_, after_;
};

class CudaGraph final : public CapturedGraph {
 public:
  CudaGraph(CudaDevice& device, cudart::Executable executable) : device_(&device), executable_(std::move(executable)) {}
  void launch() override { LAMINA_CUDART(cudaGraphLaunch(executable_.get(), device_->stream())); }

 private:
  CudaDevice* device_;
  cudart::Executable executable_;
};

}  // namespace

std::string cuda_unavailable(int number) {
  std::string why;
  const int count = device_count(why);
  if (count == 0) return why;
  if (number < count) return {};
  return "no CUDA device " + std::to_string(number) + "; there " +
         (count == 1 ? "is one, number 0" : "are " + std::to_string(count) + ", counted from 0");
}

struct CudaDevice::Body {
  struct Block {
    cudart::Memory memory;
    std::size_t bytes = 0;
  };

  cudart::Stream stream;
  double clock_hertz = 0;  // the highest clock
  std::optional<Nvml> nvml;
  std::mutex mutex;
  std::unordered_map<void*, Block> blocks;
  std::size_t used_bytes = 0;
};

CudaDevice::CudaDevice(int number, std::size_t memory_limit) : number_(number), memory_limit_(memory_limit) {}

CudaDevice::~CudaDevice() {
  if (body_ != nullptr && cudaSetDevice(number_) != cudaSuccess) (void)cudaGetLastError();
}

CudaDevice::Body& CudaDevice::open() {
  if (body_ == nullptr) {
    std::string why;
    if (device_count(why) == 0) throw DeviceError("cudaGetDeviceCount: " + why);
    if (why = cuda_unavailable(number_); !why.empty()) throw UsageError(why);
    LAMINA_CUDART(cudaSetDevice(number_));
    auto body = std::make_unique<Body>();
    body->stream = cudart::make_stream();
    body->clock_hertz = 1e3 * cudart::attribute(cudaDevAttrClockRate, number_);
    body_ = std::move(body);
  }
  LAMINA_CUDART(cudaSetDevice(number_));  // the current device belongs to the thread, and others may have set it
  return *body_;
}

CUstream_st* CudaDevice::stream() { return open().stream.get(); }

std::string CudaDevice::describe() {
  open();
  const DeviceInfo info = cuda_device_info(number_);
  std::string text = info.name + ", " + info.architecture + ", " + std::to_string(info.memory_bytes >> 20) + " MiB";
  for (const LibraryVersion& library : cuda_versions()) text += ", " + library.name + " " + library.version;
  return text;
}

void* CudaDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  Body& body = open();
  const std::lock_guard lock(body.mutex);
  const std::size_t within_limit = memory_limit_ - std::min(memory_limit_, body.used_bytes);
  if (bytes > within_limit) throw OutOfMemory(bytes, within_limit);
  cudart::Memory memory;
  try {
    memory = cudart::make_memory(bytes);  // the runtime aligns to 256 bytes or more
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(bytes, std::min(error.free_bytes(), within_limit));
  }
  void* const data = memory.get();
  body.blocks.emplace(data, Body::Block{std::move(memory), bytes});
  body.used_bytes += bytes;
  return data;
}

void CudaDevice::release(void* data) noexcept {
  if (data == nullptr || body_ == nullptr) return;
  const std::lock_guard lock(body_->mutex);
  const auto block = body_->blocks.find(data);
  if (block == body_->blocks.end()) return;
  body_->used_bytes -= block->second.bytes;
  body_->blocks.erase(block);
}

void CudaDevice::upload(void* to, const void* from_host, std::size_t bytes) {
  if (bytes == 0) return;
  LAMINA_CUDART(cudaMemcpyAsync(to, from_host, bytes, cudaMemcpyHostToDevice, stream()));
  synchronize();
}

void CudaDevice::download(void* to_host, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  LAMINA_CUDART(cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, stream()));
  synchronize();
}

void CudaDevice::fill(void* to, unsigned char byte, std::size_t bytes) {
  if (bytes > 0) LAMINA_CUDART(cudaMemsetAsync(to, byte, bytes, stream()));
}

void CudaDevice::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) LAMINA_CUDART(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()));
}

void CudaDevice::synchronize() { LAMINA_CUDART(cudaStreamSynchronize(stream())); }

std::unique_ptr<Timer> CudaDevice::timer() { return std::make_unique<CudaTimer>(*this); }

std::unique_ptr<Staging> CudaDevice::staging(std::size_t bytes) { return std::make_unique<CudaStaging>(*this, bytes); }

std::unique_ptr<SideQueue> CudaDevice::side_queue() { return std::make_unique<CudaSideQueue>(*this); }

/// The limit is far more than the host needs to enqueue a layer, and short enough to be harmless otherwise.
double CudaDevice::longest_hold() const { return 5e-3; }

void CudaDevice::hold(double seconds) {
  Body& body = open();
  const double bounded = std::clamp(seconds, 0.0, longest_hold());
  try {
    cuda::delay(body.stream.get(), static_cast<std::int64_t>(bounded * body.clock_hertz));
  } catch (const cuda::LaunchError& error) {
    throw DeviceError(error.what());
  }
}

DeviceState CudaDevice::state() {
  try {
    Body& body = open();
    if (!body.nvml) body.nvml.emplace(cuda_bus_id(number_));
    return body.nvml->read();
  } catch (const std::exception& error) {
    DeviceState none;
    none.missing = error.what();
    return none;
  }
}

int CudaDevice::multiprocessors() {
  open();
  return cudart::attribute(cudaDevAttrMultiProcessorCount, number_);
}

std::unique_ptr<CapturedGraph> CudaDevice::capture(const std::function<void()>& work) {
  cudaStream_t const recorded = stream();
  // Only this thread's calls are refused if they cannot be recorded.
  LAMINA_CUDART(cudaStreamBeginCapture(recorded, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t ended = nullptr;
  try {
    work();
  } catch (...) {
    // The stream must leave the recording, with or without an error.
    if (cudaStreamEndCapture(recorded, &ended) != cudaSuccess) (void)cudaGetLastError();
    const cudart::Graph unfinished(ended);
    throw;
  }
  const cudaError_t status = cudaStreamEndCapture(recorded, &ended);
  const cudart::Graph graph(ended);
  cudart::check(status, "cudaStreamEndCapture", __FILE__, __LINE__);

  cudaGraphExec_t made = nullptr;
  LAMINA_CUDART(cudaGraphInstantiateWithFlags(&made, graph.get(), 0));
  cudart::Executable executable(made);
  LAMINA_CUDART(cudaGraphUpload(executable.get(), recorded));  // here, since the first launch may be timed
  return std::make_unique<CudaGraph>(*this, std::move(executable));
}

}  // namespace lamina
