// Access to the memory that stands for a device's memory.

#include "device_memory.h"

#include <mutex>

namespace lamina::cuda_host::host {
namespace {

struct State {
  std::mutex mutex;
  MemoryGate* gate = nullptr;
  int living = 0;
};

State& state() {
  static State* const one = new State;  // a backend may live until the process ends
  return *one;
}

}  // namespace

void set_memory_gate(MemoryGate* gate) {
  const std::lock_guard lock(state().mutex);
  state().gate = gate;
}

OpenMemory::OpenMemory() {
  const std::lock_guard lock(state().mutex);
  if (state().living++ == 0 && state().gate != nullptr) state().gate->open();
}

OpenMemory::~OpenMemory() {
  const std::lock_guard lock(state().mutex);
  if (--state().living == 0 && state().gate != nullptr) state().gate->close();
}

}  // namespace lamina::cuda_host::host
