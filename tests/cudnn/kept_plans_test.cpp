// Failures around a folder of plans: processes that are killed, that share the folder or may not write to it, and plans
// of another library or device.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "lamina/cudnn_engines.h"
#include "lib/backends/cudnn/graph/kept_plans.h"
#include "tests/cudnn/carried_plans.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina;
using cudnn::graph::KeptPlans;
using test::Folder;

namespace {

const std::string key = "cuDNN 9.19.0\ngraph\nengine 30", plan = "{\"plan\": 1}", older = "{\"plan\": 0}";

/// The status of a process that does `work`: 0 if `work` returns true.
template <class Work>
int status_of(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

/// The plan in a folder. Requires that there is no complaint about it.
std::string found(const KeptPlans& kept) {
  std::string complaint;
  const std::optional<std::string> text = kept.find(key, complaint);
  CHECK(complaint.empty());
  return text.value_or("");
}

Spec relu_unit() {
  Graph graph("one");
  relu(max_pool(graph.input({2, 8, 9, 7}), "p", {.window = 1, .stride = 1}));
  return cudnn_graph_units(graph, {}).back().spec;
}

const std::string device = R"({"driverVer": 13000, "multiProcessorCount": 132})";

}  // namespace

TEST_CASE("a process that is killed at any byte of its writing leaves the old plan or no plan") {
  const bool replaces = GENERATE(false, true);
  const Folder folder;
  const KeptPlans kept(folder / "plans");
  std::string complaint;
  kept.keep(key, plan, complaint);
  const auto size = static_cast<rlim_t>(std::filesystem::file_size(kept.file(key)));
  for (rlim_t bytes = 0; bytes < size; ++bytes) {
    std::filesystem::remove(kept.file(key));
    if (replaces) kept.keep(key, older, complaint);
    const int status = status_of([&] {
      const rlimit most{bytes, bytes};
      std::string ignored;
      std::signal(SIGXFSZ, SIG_DFL);
      if (::setrlimit(RLIMIT_FSIZE, &most) == 0) kept.keep(key, plan, ignored);
      ::raise(SIGKILL);  // after a write that was cut short, not refused
      return true;
    });
    CAPTURE(bytes);
    CHECK(WIFSIGNALED(status));
    CHECK(found(kept) == (replaces ? older : ""));
  }
  kept.keep(key, plan, complaint);
  CHECK(complaint.empty());
  CHECK(found(kept) == plan);
  const auto files = std::filesystem::directory_iterator(folder / "plans");
  CHECK(std::distance(begin(files), end(files)) == 1);  // the files of the killed processes are gone
}

TEST_CASE("two processes that write the same plan at once leave a complete plan, and find only complete plans") {
  const Folder folder;
  const KeptPlans kept(folder / "plans");
  const auto work = [&](const std::string& mine) {
    for (int i = 0; i < 100; ++i) {
      std::string complaint;
      kept.keep(key, mine, complaint);
      const std::optional<std::string> text = kept.find(key, complaint);
      if (!complaint.empty() || !text || (*text != plan && *text != older)) return false;
    }
    return true;
  };
  const pid_t other = ::fork();
  if (other == 0) ::_exit(work(older) ? 0 : 1);
  CHECK(work(plan));
  int status = -1;
  REQUIRE(::waitpid(other, &status, 0) == other);
  CHECK(status == 0);
  CHECK_FALSE(found(kept).empty());
}

TEST_CASE("plans of a read-only folder are found, and a plan that cannot be kept is reported in one line") {
  const Folder folder;
  const KeptPlans kept(folder / "plans");
  std::string complaint;
  kept.keep(key, plan, complaint);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(folder / "plans", std::filesystem::perms(0555));
  const int status = status_of([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return false;  // root could write to the folder
    std::string said;
    const KeptPlans same(folder / "plans");
    if (same.find(key, said) != plan || !said.empty()) return false;
    same.keep(key + "1", plan, said);
    return !said.empty() && said.find('\n') == std::string::npos && !same.find(key + "1", said);
  });
  std::filesystem::permissions(folder / "plans", std::filesystem::perms(0755));
  CHECK(status == 0);
}

TEST_CASE("plans of another device, driver or library are not used, and stay in the folder beside each other") {
  const Folder folder;
  const std::string plans = folder.file("plans");
  const Spec spec = relu_unit();
  const CudnnEngine engine{30, false, {}, {}, 0};
  const auto build = [&](const std::string& of) {
    const CudnnPlan built = CudnnEngines(LAMINA_TEST_FAKES "/graph", of).build(spec, Pass::forward, engine, plans);
    CHECK(built.refused.empty());
    return built;
  };
  CHECK_FALSE(build(device).from_folder);
  CHECK_FALSE(build(R"({"driverVer": 12080, "multiProcessorCount": 132})").from_folder);
  CHECK_FALSE(build(R"({"driverVer": 13000, "multiProcessorCount": 114})").from_folder);
  CHECK(build(device).from_folder);

  // The key is right, but the library refuses the plan.
  for (const auto& file : std::filesystem::directory_iterator(plans)) {
    std::string complaint;
    KeptPlans(plans).keep(test::key_in(test::contents(file.path())), "plan of fake 9.28.0: engine 30.", complaint);
  }
  const CudnnPlan again = build(device);
  CHECK_FALSE(again.from_folder);
  CHECK_THAT(again.complaint, ContainsSubstring("is not taken") && ContainsSubstring("cudnnBackendFinalize"));
  CHECK(again.complaint.find('\n') == std::string::npos);
  CHECK(build(device).from_folder);
}
