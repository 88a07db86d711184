#pragma once
// Environment variables that make NVIDIA's libraries compute differently from what a program requests.

#include <string>

#include "lamina/backend.h"

namespace lamina {

enum class Products : std::uint8_t { of_cudnn, of_cublas };

/// A text like ", environment NVIDIA_TF32_OVERRIDE=1" with every such variable that is set, for a backend's
/// description; empty if none is set.
std::string math_environment();

/// Throws UsageError if one of these variables would round strict products to TF32, turn off TF32 that is asked for, or
/// have cuBLAS emulate products. The message starts with `unit` and names the variable.
void check_math_environment(const std::string& unit, DType, Math, Products);

}  // namespace lamina
