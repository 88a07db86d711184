#pragma once
// Host access to the memory that stands for a device's memory. With a GPU the host could not read it. A test sets a
// gate that closes the memory; the code that stands for the device opens it while it runs.

namespace lamina::cuda_host::host {

class MemoryGate {
 public:
  virtual ~MemoryGate() = default;
  virtual void open() = 0;
  virtual void close() noexcept = 0;
};

/// Sets the gate. Null, as at the start: the memory is always open. Do not call it while a kernel runs. The gate must
/// outlive all runs.
void set_memory_gate(MemoryGate*);

/// Opens the memory as long as it lives. Such objects may nest.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;  // each object closes what it opened
  OpenMemory& operator=(const OpenMemory&) = delete;
};

}  // namespace lamina::cuda_host::host
