// The one cuDNN of a process: its claims, and the refusal of a second one.

#include "lamina/backend.h"
#include "lamina/cudnn_engines.h"
#include "lib/backends/cudnn/library/session.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::cudnn;
namespace fs = std::filesystem;

namespace {

/// The folder that the build made for a fake.
std::string folder(const std::string& name) { return fs::canonical(fs::path(LAMINA_TEST_FAKES) / name).string(); }

/// Checks for a LoadError with both directories and the remedy.
template <class Act>
void refuses(const std::string& first, const std::string& second, Act act) {
  CHECK_THROWS_MATCHES(act(), LoadError, Says(first, second, "one process per version"));
}

}  // namespace

// The tests must run in this order, because the last one opens a library that stays open.
TEST_CASE("one cuDNN per process: claimed without being opened, as long as a claim lives") {
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

TEST_CASE("one cuDNN per process: the engine listing claims it too, and gives it back") {
  const Claim other(folder("8.9"));
  refuses(folder("8.9"), folder("9.19"), [] { CudnnEngines(folder("9.19"), "{}"); });
  CHECK_THROWS_WITH(CudnnEngines(folder("8.9"), "{}"), ContainsSubstring("too old"));
}

#if defined(LAMINA_TEST_WITH_CUDA)
TEST_CASE("one cuDNN per process: a second backend is refused where it is made") {
  {
    const auto first = make_backend("cudnn:" + folder("8.9"));
    refuses(folder("8.9"), folder("9.19"), [] { make_backend("cudnn:" + folder("9.19")); });
    CHECK_NOTHROW(make_backend("cudnn:" + folder("8.9")));
  }
  CHECK_NOTHROW(make_backend("cudnn:" + folder("9.19")));
  CHECK(mapped_directories().empty());
}
#endif

TEST_CASE("one cuDNN per process: what was opened stays, and a second is refused with both directories") {
  const Api& first = process_library(folder("9.19"));
  CHECK(&process_library(folder("9.19")) == &first);
  CHECK(&process_library(folder("9.19") + "/.") == &first);
  refuses(folder("9.19"), folder("8.9"), [] { process_library(folder("8.9")); });
  CHECK_THROWS_WITH(process_library(""), ContainsSubstring("the system"));
  refuses(folder("9.19"), folder("8.9"), [] { Claim(folder("8.9")); });
  CHECK_NOTHROW(Claim(folder("9.19") + "/."));
}
