// A process refuses a second real version of cuDNN. The two versions are the directories in
// LAMINA_TEST_CUDNN_VERSIONS=DIR1,DIR2, or versions that bench/get-cudnn has fetched. Without two versions the test is
// skipped.

#include <sstream>

#include "lamina/lamina.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace lamina;

namespace {

/// The default folder of bench/get-cudnn.
std::filesystem::path cache() {
  const char *given = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  return (given != nullptr ? std::filesystem::path(given)
                           : std::filesystem::path(home != nullptr ? home : "") / ".cache") /
         "lamina/cudnn";
}

std::vector<std::string> directories() {
  std::vector<std::string> found;
  if (const char* given = std::getenv("LAMINA_TEST_CUDNN_VERSIONS"); given != nullptr) {
    std::stringstream stream(given);
    for (std::string one; std::getline(stream, one, ',');) found.push_back(one);
    return found;
  }
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(cache(), none))
    if (const auto folder = entry.path() / "nvidia/cudnn/lib"; std::filesystem::exists(folder / "libcudnn.so.9"))
      found.push_back(folder.string());
  std::sort(found.begin(), found.end());
  return found;
}

std::pair<std::string, std::string> two_versions() {
  try {
    make_backend("cudnn");
  } catch (const Unsupported& error) {
    test::skip(error.what());
  }
  const std::vector<std::string> all = directories();
  if (all.size() < 2) test::skip("no two versions of cuDNN here; bench/get-cudnn brings some");
  return {all.front(), all.back()};
}

}  // namespace

TEST_CASE("a second cuDNN in one process is refused with both directories") {
  const auto [a, b] = two_versions();
  const auto first = make_backend("cudnn:" + a);
  CHECK_THAT(first->describe(), ContainsSubstring(a));
  const auto describe_second = [&] { return make_backend("cudnn:" + b)->describe(); };
  CHECK_THROWS_MATCHES(describe_second(), LoadError, Says(a, b));
}
