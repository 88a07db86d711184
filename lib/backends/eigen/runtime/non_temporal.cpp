#include "non_temporal.h"

#include <fstream>

std::int64_t& lamina::non_temporal_bytes() {
  static std::int64_t bytes = [] {
    std::int64_t kibibytes = 0;
    std::ifstream("/sys/devices/system/cpu/cpu0/cache/index3/size") >> kibibytes;
    return std::clamp(kibibytes << 10, std::int64_t{32} << 20, std::int64_t{128} << 20);
  }();
  return bytes;
}
