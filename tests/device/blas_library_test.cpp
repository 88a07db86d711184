// cuBLAS, opened at run time: invalid files, fake libraries, and the real library if it is installed.

#include "lib/core/device/blas/blas.h"

#include "lamina/devices.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

namespace lamina {
namespace {

TEST_CASE("a folder without cuBLAS is an error that names every file that was tried") {
  const std::string folder = test::data("goldens");
  CHECK_THROWS_MATCHES(open_blas(folder), LoadError,
                       Says(folder + "/libcublas.so.13: no such file", folder + "/libcublas.so.11: no such file"));
  CHECK_THROWS_WITH(open_blas("/nowhere", 12),
                    ContainsSubstring("/nowhere/libcublas.so.12") && !ContainsSubstring("libcublas.so.13"));
}

TEST_CASE("a cuBLAS that lacks functions is refused with their names") {
  const std::string folder = LAMINA_FAKES "/lacking";
  CHECK_THROWS_AS(open_blas(folder), LoadError);
  CHECK_THROWS_WITH(open_blas(folder), ContainsSubstring(folder + "/libcublas.so.12") &&
                                           ContainsSubstring("lacks cublasDestroy_v2, cublasSetStream_v2, ") &&
                                           !ContainsSubstring("cublasCreate_v2") &&
                                           !ContainsSubstring("cublasGetStatusName"));
}

TEST_CASE("a complete cuBLAS is opened from its folder and reports its version and path") {
  const BlasLibrary library = open_blas(LAMINA_FAKES "/whole");
  CHECK(library.version == "12.9.7");
  CHECK(library.description() == "cuBLAS 12.9.7");
  CHECK(std::filesystem::equivalent(library.path, LAMINA_FAKES "/whole/libcublas.so.12"));
  CHECK(library.table.cublasGetStatusName == nullptr);
  CHECK_THROWS_WITH(Blas(library.table, nullptr), ContainsSubstring("cublasCreate_v2: status 14"));
}

TEST_CASE("a process has one cuBLAS, and another folder is refused with both names") {
  const std::string folder = LAMINA_FAKES "/whole";
  CHECK_THROWS_AS(blas_library("/nowhere"), LoadError);  // a failure is not remembered
  const BlasLibrary& library = blas_library(folder);
  CHECK(&blas_library(folder) == &library);
  CHECK(&blas_library() == &library);
  CHECK_THROWS_WITH(blas_library(LAMINA_FAKES "/lacking"), ContainsSubstring(folder) && ContainsSubstring("/lacking"));
}

TEST_CASE("the installed cuBLAS reports its version, and without a GPU the error has the status by name") {
  BlasLibrary library;
  try {
    library = open_blas();
  } catch (const LoadError& error) {
    WARN("no cuBLAS is installed here: " << error.what());
    CHECK_THAT(error.what(), ContainsSubstring("libcublas.so.13"));
    return;
  }
  CHECK_THAT(library.version, Catch::Matchers::Matches("1[1-3]\\.[0-9]+\\.[0-9]+"));
  CHECK(std::filesystem::exists(library.path));
  if (why_no_gpu().empty()) {
    CHECK_NOTHROW(Blas(library.table, nullptr));
  } else {
    CHECK_THROWS_MATCHES(Blas(library.table, nullptr), DeviceError, Says("cublasCreate_v2: CUBLAS_STATUS_"));
  }
}

}  // namespace
}  // namespace lamina
