// The loader, on fake libraries of the build, with one folder per version.

#include <dlfcn.h>
#include <unistd.h>

#include <fstream>

#include "lib/backends/cudnn/library/call.h"
#include "lib/backends/cudnn/library/common.h"
#include "tests/cudnn/bound.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::cudnn;
namespace fs = std::filesystem;

namespace {

/// The folder of a fake library.
std::string folder(const std::string& name) { return fs::canonical(fs::path(LAMINA_TEST_FAKES) / name).string(); }

const test::Case plain = {"", Conv{.channels = 4, .kernel = 3, .bias = false}, {{1, 2, 5, 5}}};

/// Runs the steps [first, end) of a unit. The contents of its tensors do not matter.
void run_all(const Lowered& lowered, std::size_t first, std::size_t end) {
  static std::array<double, 4096> memory{};
  Tensor any;
  any.data = memory.data();
  Args args;
  args.x = args.dx = args.w = args.dw = {any};
  args.y = args.dy = any;
  args.workspace = memory.data();
  for (std::size_t i = first; i < end; ++i) lowered.steps.at(i).kernel->run(args);
}

}  // namespace

TEST_CASE("cudnn loader: one process can load versions 7.6, 8.9 and 9.19 from their directories") {
  const Library seven(folder("7.6")), eight(folder("8.9")), nine(folder("9.19"));
  CHECK(seven.api().version == 7605);
  CHECK(seven.api().number() == "7.6.5");
  CHECK(eight.api().number() == "8.9.7");
  CHECK(nine.api().number() == "9.19.0");
  CHECK(seven.api().major() == 7);
  CHECK(nine.api().major() == 9);
  CHECK(nine.api().directory == folder("9.19"));
  CHECK(at_least(eight.api(), 8, 9));
  CHECK(at_least(nine.api(), 8, 30));
  CHECK_FALSE(at_least(eight.api(), 8, 10));
  CHECK_FALSE(at_least(seven.api(), 8, 0));
}

TEST_CASE("cudnn loader: without a directory, the library that the process has already opened is used") {
  const Library first(folder("named"));
  const Library found("");
  CHECK(found.api().directory == folder("named"));
  CHECK(found.api().GetVersion == first.api().GetVersion);
}

TEST_CASE("cudnn loader: a status has the meaning and the text of its version") {
  const Library eight(folder("8.9")), nine(folder("9.19"));
  CHECK(meaning(eight.api(), 9) == Meaning::not_supported);
  CHECK(meaning(nine.api(), 9) == Meaning::other);
  CHECK(meaning(nine.api(), 3000) == Meaning::not_supported);
  CHECK(meaning(eight.api(), 3000) == Meaning::other);
  CHECK(text(eight.api(), 9) == "CUDNN_STATUS_NOT_SUPPORTED (9)");
  CHECK(text(nine.api(), 9) == "CUDNN_UNKNOWN_STATUS (9)");
  const std::pair<int, Meaning> old[] = {
      {0, Meaning::other},         {1, Meaning::other},         {2, Meaning::no_memory}, {3, Meaning::bad_parameter},
      {5, Meaning::bad_parameter}, {6, Meaning::not_supported}, {8, Meaning::other},     {11, Meaning::not_supported}};
  for (const auto& [status, meant] : old) CHECK(meaning(eight.api(), status) == meant);
  const std::pair<int, Meaning> young[] = {{0, Meaning::other},
                                           {1001, Meaning::other},
                                           {2008, Meaning::bad_parameter},
                                           {3014, Meaning::not_supported},
                                           {4000, Meaning::other},
                                           {4003, Meaning::no_memory},
                                           {4004, Meaning::no_memory},
                                           {5000, Meaning::other}};
  for (const auto& [status, meant] : young) CHECK(meaning(nine.api(), status) == meant);
  CHECK(refused(nine.api(), 2000));
  CHECK_FALSE(refused(nine.api(), 5000));
  const TensorSpec nhwc{.shape = {1, 1, 1, 1}, .layout = Layout::nhwc, .pitch = 1};  // these fakes refuse nhwc
  CHECK_THROWS_AS(FilterDescriptor(describe_filter(eight.api(), nhwc)), Unsupported);
  CHECK_THROWS_AS(FilterDescriptor(describe_filter(nine.api(), nhwc)), Unsupported);
}

TEST_CASE("cudnn loader: a function that a version lacks is null, and the error names it when it is needed") {
  const Library seven(folder("7.6")), nine(folder("9.19"));
  CHECK(seven.api().GetLastErrorString == nullptr);
  CHECK(seven.api().BackendCreateDescriptor == nullptr);
  CHECK(nine.api().BackendCreateDescriptor != nullptr);
  CHECK_THROWS_MATCHES(PoolingDescriptor(nine.api()), LoadError,
                       Says("cuDNN 9.19.0 in " + folder("9.19"), "cudnnCreatePoolingDescriptor"));
}

TEST_CASE("cudnn loader: a file that is no cuDNN, too old or lacks a needed function is refused with the reason") {
  CHECK_THROWS_MATCHES(Library("nowhere"), LoadError, Says("no cuDNN in nowhere", "libcudnn.so.9"));
  CHECK_THROWS_WITH(Library(folder("lacking")), ContainsSubstring("no entry point cudnnSetStream"));
  CHECK_THROWS_WITH(Library(folder("5.1")), ContainsSubstring("cuDNN 5.1.10") && ContainsSubstring("too old"));
  CHECK_THROWS_WITH(Library(folder("other")), ContainsSubstring("cudnnGetVersion"));
  const test::Folder scratch;
  std::ofstream(scratch / "libcudnn.so") << "no library";
  CHECK_THROWS_MATCHES(Library(scratch.path().string()), LoadError, Says("cannot open", "libcudnn.so"));
}

TEST_CASE("cudnn loader: the parts of cuDNN are opened from its directory, and a part that does not open is named") {
  const Library nine(folder("9.19"));
  void* const part = dlopen((fs::path(folder("9.19")) / "libcudnn_ops.so.9").c_str(), RTLD_NOW | RTLD_NOLOAD);
  CHECK(part != nullptr);
  if (part != nullptr) dlclose(part);
  const std::vector<std::string> mapped = mapped_directories();
  CHECK(std::find(mapped.begin(), mapped.end(), folder("9.19")) != mapped.end());

  const test::Folder scratch;
  fs::copy(fs::path(folder("9.19")) / "libcudnn.so.9", scratch / "libcudnn.so.9");
  std::ofstream(scratch / "libcudnn_cnn.so.9") << "no library";
  std::ofstream(scratch / "libcudnn_cnn.so.8") << "part of another version: not opened";
  std::ofstream(scratch / "libcudnn_cnn.so.9.19.0") << "another name of the same part: not opened";
  const Library partial(scratch.path().string());
  CHECK(nine.api().unopened.empty());
  CHECK_THAT(partial.api().unopened, ContainsSubstring("libcudnn_cnn.so.9: ") && !ContainsSubstring("; "));
  test::MachineLog log;
  const auto backend =
      make_backend("cudnn", test::make_host_machine(log), [&]() -> const Api& { return partial.api(); });
  CHECK_THAT(backend->describe(), ContainsSubstring("cuDNN 9.19.0 of " + fs::canonical(scratch.path()).string()) &&
                                      ContainsSubstring("did not open: "));
}

TEST_CASE("cudnn loader: a directory that cannot be listed is an error that names the directory") {
  const test::Folder scratch;
  fs::copy(fs::path(folder("9.19")) / "libcudnn.so.9", scratch / "libcudnn.so.9");
  fs::permissions(scratch.path(), fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec);
  const auto user = ::geteuid();
  if (user == 0) REQUIRE(::seteuid(65534) == 0);  // a user without permissions
  const std::string said = test::said_by<LoadError>([&] { const Library library(scratch.path().string()); });
  if (user == 0) REQUIRE(::seteuid(user) == 0);
  fs::permissions(scratch.path(), fs::perms::owner_all);
  CHECK_THAT(said, ContainsSubstring("cannot list") && ContainsSubstring(scratch.path().string()));
}

TEST_CASE("cudnn loader: a library that opens a part from another directory is refused, and both are named") {
  const Spec spec = test::spec_of(test::FakeBackend(), plain);
  const auto said = [&](const std::string& name, auto act) {
    const Library mixed(folder(name));
    check_one_directory(mixed.api());  // nothing was opened yet
    test::MachineLog log;
    const auto backend =
        make_backend("cudnn", test::make_host_machine(log), [&]() -> const Api& { return mixed.api(); });
    for (int again = 0; again < 2; ++again) {  // the mixture is refused again
      INFO(name << ", call " << again);
      CHECK_THROWS_MATCHES(act(*backend), LoadError, Says(folder(name), folder("elsewhere")));
    }
  };
  said("mixed_by_descriptor", [](Backend& on) { on.device(); });
  said("mixed_by_query", [&](Backend& on) { on.lower(spec, {}); });
  for (const std::size_t pass : {0, 1, 2})
    said(std::array{"mixed_by_forward", "mixed_by_backward_params", "mixed_by_backward_data"}[pass],
         [&](Backend& on) { run_all(on.lower(spec, {}), 0, pass + 1); });
}

TEST_CASE("cudnn loader: a convolution is lowered and run with the constants of each version") {
  const Spec spec = test::spec_of(test::FakeBackend(), plain);
  for (const std::string name : {"7.6", "8.9", "9.19"}) {
    INFO(name);
    const Library library(folder(name));
    test::MachineLog log;
    const auto backend =
        make_backend("cudnn", test::make_host_machine(log), [&]() -> const Api& { return library.api(); });
    const Lowered lowered = backend->lower(spec, {});
    // The first answer of each pass is refused with the status number of the version.
    REQUIRE(lowered.steps.size() == 3);
    CHECK(lowered.steps[0].algorithm == "winograd");
    CHECK(lowered.steps[0].kernel->workspace_bytes() == 6 * 64);
    CHECK(lowered.steps[1].algorithm == "winograd_nonfused");
    CHECK(lowered.steps[2].algorithm == "winograd");
    void* const file =
        dlopen((fs::path(folder(name)) / ("libcudnn.so." + name.substr(0, 1))).c_str(), RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(file != nullptr);
    const auto ran = reinterpret_cast<int (*)()>(dlsym(file, "fake_ran"));
    REQUIRE(ran != nullptr);
    for (const auto& [pass, number] : {std::pair{0, 106}, {1, 205}, {2, 304}}) {
      run_all(lowered, static_cast<std::size_t>(pass), static_cast<std::size_t>(pass) + 1);
      CHECK(ran() == number);
    }
    dlclose(file);
    CHECK_THROWS_AS(
        backend->lower(test::spec_of(test::FakeBackend(), plain, {.dtype = DType::f32, .layout = Layout::nhwc}), {}),
        Unsupported);
  }
}
