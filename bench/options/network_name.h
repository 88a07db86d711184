#pragma once
// What the network of an ONNX file is called.

#include <filesystem>
#include <string>

namespace lamina::bench {

/// The file's name without its folder and ending.
inline std::string network_name(const std::filesystem::path& onnx) { return onnx.stem().string(); }

}  // namespace lamina::bench
