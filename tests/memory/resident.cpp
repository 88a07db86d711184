// Resident memory, from /proc.

#include "resident.h"

#include <fstream>
#include <string>

namespace lamina::test {
namespace {

std::optional<std::int64_t> status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  return {};
}

}  // namespace

std::optional<std::int64_t> resident_bytes() { return status_bytes("VmRSS"); }
std::optional<std::int64_t> peak_resident_bytes() { return status_bytes("VmHWM"); }

bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << 5 << std::flush;
  return file.good();
}

}  // namespace lamina::test
