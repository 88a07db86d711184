// Names for messages, as text; and the shapes of launches that a GPU accepts.

#include "shape.h"

#include <string_view>

namespace lamina::cuda_host::host {

std::string text_of(const dim3& d) {
  return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}
std::string text_of(const uint3& i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}

std::string text_of(const char* file, int line) {
  const std::string_view path = file;
  return "line " + std::to_string(line) + " of " + std::string(path.substr(path.rfind('/') + 1));
}

const char* name_of(WarpPrimitive primitive) {
  switch (primitive) {
    case WarpPrimitive::sync: return "__syncwarp";
    case WarpPrimitive::shuffle: return "__shfl_sync";
    case WarpPrimitive::shuffle_up: return "__shfl_up_sync";
    case WarpPrimitive::shuffle_down: return "__shfl_down_sync";
    case WarpPrimitive::shuffle_xor: return "__shfl_xor_sync";
    case WarpPrimitive::ballot: return "__ballot_sync";
  }
  return "a warp primitive";
}

void check_shape(const Launch& l) {
  const std::uint64_t threads = std::uint64_t{l.block.x} * l.block.y * l.block.z;
  const auto refuse = [&](const std::string& why) {
    throw LaunchError(std::string("launch of ") + l.name + ": grid " + text_of(l.grid) + ", block " + text_of(l.block) +
                      ", " + std::to_string(l.shared_bytes) + " bytes of dynamic shared memory: " + why);
  };
  if (threads == 0 || std::uint64_t{l.grid.x} * l.grid.y * l.grid.z == 0) refuse("nothing to run");
  if (threads > 1024 || l.block.z > 64) refuse("a block has at most 1024 threads, 64 along z");
  if (l.grid.x > 2147483647U || l.grid.y > 65535 || l.grid.z > 65535)
    refuse("a grid has at most 2147483647 x 65535 x 65535 blocks");
  if (l.shared_bytes > std::size_t{227} * 1024) refuse("a block has at most 232448 of them");
}

}  // namespace lamina::cuda_host::host
