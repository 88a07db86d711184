#pragma once
// Host access to the memory that plays a device's memory. On a GPU the host has none. A test sets a gate
// that closes the memory; the code that plays the device opens it while it runs.

namespace lamina::cuda_host::host {

class MemoryGate {
 public:
  virtual ~MemoryGate() = default;
  virtual void open() = 0;
  virtual void close() noexcept = 0;
};

/// Sets the gate; null, as at the start: always open. Not to be called while a kernel runs. It must outlive all runs.
void set_memory_gate(MemoryGate*);

/// Opens the memory as long as it lives. These nest.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;  // each closes what it opened
  OpenMemory& operator=(const OpenMemory&) = delete;
};

}  // namespace lamina::cuda_host::host
