// A process uses only one cuDNN: claims on it, and the refusal of a second cuDNN.

#include "lamina/backend.h"
#include "lamina/cudnn_engines.h"
#include "lib/backends/cudnn/library/session.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::cudnn;
namespace fs = std::filesystem;

namespace {

/// The folder of a fake library.
std::string folder(const std::string& name) { return fs::canonical(fs::path(LAMINA_TEST_FAKES) / name).string(); }

/// Checks that `act` throws a LoadError with both directories and the remedy.
template <class Act>
void refuses(const std::string& first, const std::string& second, Act act) {
  CHECK_THROWS_MATCHES(act(), LoadError, Says(first, second, "one process per version"));
}

}  // namespace

// The tests must run in this order, because the last test opens a library that stays open.
TEST_CASE("one cuDNN per process: a claim refuses other directories while it lives, without opening the library") {
  {
    const Claim first("nowhere/a");
    const Claim again("nowhere/a");
    refuses("nowhere/a", "nowhere/b", [] { Claim("nowhere/b"); });
    refuses("nowhere/a", "the system", [] { Claim(""); });
  }
  const Claim other(folder("8.9"));
  CHECK_NOTHROW(Claim(folder("8.9") + "/."));
  CHECK(mapped_directories().empty());
}

TEST_CASE("one cuDNN per process: listing engines claims the cuDNN, and releases it at the end") {
  const Claim other(folder("8.9"));
  refuses(folder("8.9"), folder("9.19"), [] { CudnnEngines(folder("9.19"), "{}"); });
  CHECK_THROWS_WITH(CudnnEngines(folder("8.9"), "{}"), ContainsSubstring("too old"));
}

#if defined(LAMINA_TEST_WITH_CUDA)
TEST_CASE("one cuDNN per process: making a backend on a second cuDNN is refused") {
  {
    const auto first = make_backend("cudnn:" + folder("8.9"));
    refuses(folder("8.9"), folder("9.19"), [] { make_backend("cudnn:" + folder("9.19")); });
    CHECK_NOTHROW(make_backend("cudnn:" + folder("8.9")));
  }
  CHECK_NOTHROW(make_backend("cudnn:" + folder("9.19")));
  CHECK(mapped_directories().empty());
}
#endif

TEST_CASE("one cuDNN per process: an opened cuDNN stays open, and a second is refused with both directories") {
  const Api& first = process_library(folder("9.19"));
  CHECK(&process_library(folder("9.19")) == &first);
  CHECK(&process_library(folder("9.19") + "/.") == &first);
  refuses(folder("9.19"), folder("8.9"), [] { process_library(folder("8.9")); });
  CHECK_THROWS_WITH(process_library(""), ContainsSubstring("the system"));
  refuses(folder("9.19"), folder("8.9"), [] { Claim(folder("8.9")); });
  CHECK_NOTHROW(Claim(folder("9.19") + "/."));
}
