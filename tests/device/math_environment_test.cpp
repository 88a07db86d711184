// Environment variables that change the results of cuBLAS's and cuDNN's products.

#include "lib/core/device/math_environment.h"

#include "tests/support/catch.h"
#include "tests/support/environment.h"

using namespace lamina;
using lamina::test::Variable;

namespace {

bool refused(DType dtype, Math math, Products products) {
  return test::throws<UsageError>([&] { check_math_environment("unit", dtype, math, products); });
}

}  // namespace

TEST_CASE("environment variables that change no product are neither reported nor refused") {
  for (const char* const value : {static_cast<const char*>(nullptr), ""}) {
    const Variable tf32("NVIDIA_TF32_OVERRIDE", value), single("CUBLAS_EMULATE_SINGLE_PRECISION", value),
        twice("CUBLAS_EMULATE_DOUBLE_PRECISION", value);
    CHECK(math_environment().empty());
    for (const DType dtype : {DType::f32, DType::f64})
      for (const Math math : {Math::strict, Math::tf32}) CHECK_FALSE(refused(dtype, math, Products::of_cublas));
  }
}

TEST_CASE("an override of TF32 is reported, and refused if it contradicts the requested math") {
  for (const Products products : {Products::of_cudnn, Products::of_cublas}) {
    {
      const Variable on("NVIDIA_TF32_OVERRIDE", "1");
      CHECK(math_environment() == ", environment NVIDIA_TF32_OVERRIDE=1");
      CHECK(refused(DType::f32, Math::strict, products));
      CHECK_FALSE(refused(DType::f32, Math::tf32, products));
      CHECK_FALSE(refused(DType::f64, Math::strict, products));
      CHECK_THROWS_WITH(check_math_environment("cudnn: conv", DType::f32, Math::strict, products),
                        ContainsSubstring("cudnn: conv: ") && ContainsSubstring("NVIDIA_TF32_OVERRIDE=1") &&
                            ContainsSubstring("unset it"));
    }
    const Variable off("NVIDIA_TF32_OVERRIDE", "0");
    CHECK_FALSE(refused(DType::f32, Math::strict, products));
    CHECK(refused(DType::f32, Math::tf32, products));
  }
}

TEST_CASE("cuBLAS's emulation is refused for the emulated type, and its strategy is only reported") {
  const Variable single("CUBLAS_EMULATE_SINGLE_PRECISION", "1");
  CHECK(refused(DType::f32, Math::strict, Products::of_cublas));
  CHECK_FALSE(refused(DType::f64, Math::strict, Products::of_cublas));
  CHECK_FALSE(refused(DType::f32, Math::strict, Products::of_cudnn));
  const Variable off("CUBLAS_EMULATE_SINGLE_PRECISION", "0"), twice("CUBLAS_EMULATE_DOUBLE_PRECISION", "1"),
      strategy("CUBLAS_EMULATION_STRATEGY", "eager");
  CHECK_FALSE(refused(DType::f32, Math::strict, Products::of_cublas));
  CHECK(refused(DType::f64, Math::strict, Products::of_cublas));
  CHECK(math_environment() ==
        ", environment CUBLAS_EMULATE_SINGLE_PRECISION=0 CUBLAS_EMULATE_DOUBLE_PRECISION=1 "
        "CUBLAS_EMULATION_STRATEGY=eager");
}
