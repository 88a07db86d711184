// Two versions of cuDNN that are really there: each is loaded by a process of its own, and never both by one. They are
// the directories in LAMINA_TEST_CUDNN_VERSIONS=DIR1,DIR2, or two that bench/get-cudnn has brought; else all is
// skipped.

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "bench/ended.h"
#include "lamina/lamina.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

[[noreturn]] void skip(const char* reason) {
  std::printf("skipped: %s\n", reason);
  std::fflush(stdout);
  std::_Exit(77);
}

/// Where bench/get-cudnn puts what it brings, unless told otherwise.
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
    skip(error.what());
  }
  const std::vector<std::string> all = directories();
  if (all.size() < 2) skip("no two versions of cuDNN here; bench/get-cudnn brings some");
  return {all.front(), all.back()};
}

/// Of wheels' trees, named "9.19.1.2-cuda13"; else nothing.
std::string version_in(const std::string& directory) {
  const std::string tree = std::filesystem::path(directory).parent_path().parent_path().parent_path().filename();
  const std::string whole = tree.substr(0, tree.find('-'));
  return std::count(whole.begin(), whole.end(), '.') == 3 ? whole.substr(0, whole.rfind('.')) : std::string();
}

}  // namespace

TEST_CASE("each version of cuDNN is loaded by a process of its own, which reports its number and directory") {
  const auto [a, b] = two_versions();
  const Folder folder;
  const std::string out = folder.file("rows.json");
  const Ended ended =
      run_bench("--cudnn=" + a + "," + b +
                " --rounds=3 --benchmark_filter=^net/mnist_mlp/forward/ --batch=2 --benchmark_out=" + out);
  CAPTURE(ended.said);
  const nlohmann::json result = read(out);
  REQUIRE(result["context"]["variants"].size() == 2);
  std::vector<std::string> reports;
  for (const std::size_t i : {0, 1}) {
    const nlohmann::json& variant = result["context"]["variants"][i];
    const std::string& directory = i == 0 ? a : b;
    const std::string report = variant["context"].value("backend_cudnn", std::string());
    CAPTURE(report);
    CHECK(variant["variant"] == directory);
    CHECK(variant["crashes"].empty());
    CHECK_THAT(report, ContainsSubstring("cuDNN " + version_in(directory)) && ContainsSubstring(directory));
    reports.push_back(report);
  }
  CHECK(reports[0] != reports[1]);
  REQUIRE(result["benchmarks"].size() >= 6);  // measured, or refused with the reason where there is no device
  for (const nlohmann::json& run : result["benchmarks"])
    CHECK((run.value("real_time", 0.0) > 0 || !run.value("error_message", run.value("skip_message", "")).empty()));
}

TEST_CASE("a second cuDNN in one process is refused with both directories") {
  const auto [a, b] = two_versions();
  const auto first = make_backend("cudnn:" + a);
  CHECK_THAT(first->describe(), ContainsSubstring(a));
  const auto describe_second = [&] { return make_backend("cudnn:" + b)->describe(); };
  CHECK_THROWS_AS(describe_second(), LoadError);
  CHECK_THROWS_WITH(describe_second(), ContainsSubstring(a) && ContainsSubstring(b));
}
