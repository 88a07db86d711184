// Environment variables that change the results of matrix products.

#include "math_environment.h"

#include <cstdlib>

#include "lamina/error.h"

namespace lamina {
namespace {

constexpr const char* tf32 = "NVIDIA_TF32_OVERRIDE";  // 0: never TF32; other values have no documented meaning
constexpr const char* single_emulated = "CUBLAS_EMULATE_SINGLE_PRECISION";
constexpr const char* double_emulated = "CUBLAS_EMULATE_DOUBLE_PRECISION";
// These two say how to emulate; they do not switch emulation on.
constexpr const char* strategy = "CUBLAS_EMULATION_STRATEGY";
constexpr const char* mantissa_bits = "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT";

std::string value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_on(const char* name) {
  const std::string value = value_of(name);
  return !value.empty() && value != "0";
}

[[noreturn]] void refuse(const std::string& unit, const char* name, const std::string& effect) {
  throw UsageError(unit + ": the environment has " + name + "=" + value_of(name) + ", " + effect +
                   "; unset it before the process starts");
}

}  // namespace

std::string math_environment() {
  std::string text;
  for (const char* const name : {tf32, single_emulated, double_emulated, strategy, mantissa_bits})
    if (const std::string value = value_of(name); !value.empty())
      text += (text.empty() ? ", environment " : " ") + std::string(name) + "=" + value;
  return text;
}

void check_math_environment(const std::string& unit, DType dtype, Math math, Products products) {
  if (dtype == DType::f32 && math == Math::strict && is_on(tf32))
    refuse(unit, tf32, "which may round the factors of strict products to TF32");
  if (dtype == DType::f32 && math == Math::tf32 && value_of(tf32) == "0")
    refuse(unit, tf32, "which turns TF32 off, and TF32 is asked for");
  if (products != Products::of_cublas) return;
  if (dtype == DType::f32 && is_on(single_emulated))
    refuse(unit, single_emulated, "by which cuBLAS emulates fp32 products");
  if (dtype == DType::f64 && is_on(double_emulated))
    refuse(unit, double_emulated, "by which cuBLAS emulates fp64 products");
}

}  // namespace lamina
