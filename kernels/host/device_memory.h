#pragma once
// What stands for a device's memory, as far as the host may touch it. On a GPU the host may never; a test sets a gate
// that closes the memory, and whatever runs in a device's place opens it for as long as it runs.

namespace lamina::cuda_host::host {

class MemoryGate {
 public:
  virtual ~MemoryGate() = default;
  virtual void open() = 0;
  virtual void close() noexcept = 0;
};

/// From now on; null, as at the start: memory is always open. Not while a kernel runs. The gate must outlive all runs.
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
