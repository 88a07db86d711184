#pragma once
// Variables of the environment by which NVIDIA's libraries compute otherwise than a program asks them to.

#include <string>

#include "lamina/backend.h"

namespace lamina {

enum class Products : std::uint8_t { of_cudnn, of_cublas };

/// ", environment NVIDIA_TF32_OVERRIDE=1": every such variable that is set, for what a backend says of itself; empty
/// where none is.
std::string math_environment();

/// Throws UsageError, which opens with `unit` and names the variable, where one of them makes such products something
/// else than `math`: strict ones with factors rounded to TF32, or emulated; TF32 ones that are not.
void check_math_environment(const std::string& unit, DType, Math, Products);

}  // namespace lamina
