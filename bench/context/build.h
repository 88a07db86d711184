#pragma once
// Facts of this build, which CMake fills in.

namespace lamina::bench::build {

extern const char* const lamina_version;
extern const char* const compiler;
extern const char* const type;               ///< "Release"
extern const char* const flags;              ///< flags of the compiler
extern const char* const benchmark_version;  ///< version of Google Benchmark's package
extern const char* const commit;             ///< commit, with "-dirty" if files differed from it; or "unknown"

}  // namespace lamina::bench::build
