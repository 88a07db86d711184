// The command lamina_bench engines: tables, files, errors, and the time for ten networks.

#include <dlfcn.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/tasks/engines/engines.h"
#include "tests/bench/ended.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using nlohmann::json;
using namespace lamina;
using lamina::test::Ended;
using lamina::test::Folder;
using lamina::test::run_bench;
using lamina::test::said_by;
using lamina::test::seconds_of_ended;

namespace {

/// Like said_by(). Skips the test if no cuDNN of 9.8 or later is installed.
std::string said_by_engines(const std::string& arguments, int status = 0, const std::string& why = {}) {
  const Ended ended = run_bench("engines " + arguments);
  if (ended.status == 1 &&
      (ended.said.find("finds no cuDNN") != std::string::npos || ended.said.find("is too old") != std::string::npos))
    test::skip(ended.said);
  CAPTURE(arguments, ended.said);
  REQUIRE(ended.status == status);
  REQUIRE_THAT(ended.said, ContainsSubstring(why));
  return ended.said;
}

constexpr const char* ten = "alexnet,inception_v1,vgg16,vgg19,resnet18,resnet34,resnet50,resnet101,resnet152,resnet200";

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double most_seconds = 120;  // processor time, with a sanitizer
#else
constexpr double most_seconds = 60;
#endif

}  // namespace

TEST_CASE("listing all convolutions' engines of ten networks takes seconds, and strict ones use no tensor cores") {
  const Folder folder;
  const std::string out = folder.file("engines.json");
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < 3 && least >= most_seconds; ++attempt) {
    const double start = seconds_of_ended();  // processor time: other programs do not change it
    said_by_engines(std::string(ten) + " --device=h200 --benchmark_out=" + out);
    const double seconds = seconds_of_ended() - start;
    std::printf("ten networks, f32 with and without TF32: %.1f s\n", seconds);
    least = std::min(least, seconds);
  }
  REQUIRE(least < most_seconds);

  const json all = lamina::test::read(out);
  REQUIRE(all["context"]["cudnn"][0]["version"].get<std::string>().substr(0, 2) == "9.");
  REQUIRE(all["context"]["device_properties"]["deviceVer"] == 900);
  std::set<std::string> networks, convolutions;
  int first_picks = 0;
  for (const json& graph : all["graphs"]) {
    const std::string ops = graph["ops"];
    for (const json& use : graph["uses"]) networks.insert(use["network"].get<std::string>());
    if (ops.rfind("conv", 0) != 0) continue;
    convolutions.insert(ops + graph["x"].get<std::string>());
    const json& answer = graph["answers"][0];
    CAPTURE(ops, graph["x"], graph["pass"]);
    REQUIRE_FALSE(answer["tf32"].empty());
    REQUIRE_FALSE(answer["strict"].empty());
    first_picks += answer["tf32"][0]["list"] == "a" ? 1 : 0;
    for (const json& each : answer["strict"])
      for (const json& note : each["notes"]) {
        REQUIRE(note != "tensor_core");
        REQUIRE(note != "down_convert_inputs");
      }
  }
  REQUIRE(networks.size() == 10);
  REQUIRE(convolutions.size() > 60);
  REQUIRE(first_picks > static_cast<int>(convolutions.size()));  // mode A proposes engines, not only the fallback list
}

TEST_CASE("each layout, batch and type is queried: layouts and batches have tables, types have columns") {
  const Folder folder;
  const std::string out = folder.file("engines.json");
  const std::string table =
      said_by_engines("mnist_cnn --device=a100 --layout=nchw,nhwc --batch=2,3 --dtype=f32,bf16 --benchmark_out=" + out);
  for (const char* part : {"mnist_cnn, batch 2, nchw", "mnist_cnn, batch 3, nhwc", "t tensor cores",
                           "without a graph: dropout, softmax", "strict", "bf16", "backward_data+fused"})
    REQUIRE_THAT(table, ContainsSubstring(part));
  const json all = lamina::test::read(out);
  const bool driver =
      ::dlopen("libcuda.so.1", RTLD_LAZY) != nullptr;  // without it, "none" may only mean that no engine compiles
  REQUIRE(all["context"]["cudnn"][0]["driver"] == driver);
  REQUIRE((table.find("no libcuda.so.1, which cuDNN 9.") == table.npos) == driver);
  // For each layout, batch and type: three passes of two convolutions, and two passes of a pool. For each batch and
  // type: three passes of two fully connected ops, and in nhwc the second convolution's data gradient with the mask of
  // the first convolution.
  REQUIRE(all["graphs"].size() == (3 * 2 + 2) * 8 + 3 * 2 * 4 + 4);
}

TEST_CASE("one layer can be given by its name or by its fields, and every row names its unit") {
  const auto rows = [](const std::string& said, const std::string& begin) {
    std::size_t count = 0;
    for (std::size_t at = said.find(begin); at != std::string::npos; at = said.find(begin, at + 1)) ++count;
    return count;
  };
  const std::string named = said_by_engines("mnist_cnn --device=h100 --layer=conv2d_2");
  CHECK(rows(named, "\nconv2d_2 ") == 3);
  CHECK_THAT(named, ContainsSubstring("asked about h100: 3 distinct graphs") && !ContainsSubstring("conv2d_1"));
  const std::string own = said_by_engines("conv --input=2x8x9x9 --channels=4 --kernel=3 --device=h100");
  CHECK_THAT(own, ContainsSubstring("conv(4, 3x3) of 2x8x9x9, batch 2, nchw"));
  CHECK(rows(own, "conv(4, 3x3) ") == 4);  // in the title and three passes
  said_by("engines mnist_cnn --layer=conv2d_9 --device=h100", 2,
          "no layer \"conv2d_9\": did you mean \"conv2d_1\" or \"conv2d_2\"?");
  said_by("engines mnist_cnn --layer=dropout_1 --device=h100", 2, "no layer \"dropout_1\"");
  said_by("engines conv --input=2x8x9x9 --channels=4 --kernel=3 --batch=3 --device=h100", 2,
          "--batch applies to networks only");
}

TEST_CASE("an unknown --device is refused with the known names, and an incomplete file with a complete one") {
  said_by_engines("mnist_cnn ", 2, "--device");
  said_by_engines("mnist_cnn --device=h2000", 2,
                  "no device \"h2000\", and no such file: valid names: a100, h100, h200");
  const Folder folder;
  lamina::test::write(folder / "garbage.json", "{\"deviceVer\": ");
  said_by_engines("mnist_cnn --device=" + folder.file("garbage.json"), 2, "does not hold a JSON object");
  lamina::test::write(folder / "partial.json", "{\"deviceVer\": 900, \"warpSize\": 32}");
  REQUIRE_THAT(said_by_engines("mnist_cnn --device=" + folder.file("partial.json"), 2, "CUDNN_STATUS_BAD_PARAM"),
               ContainsSubstring("bench/devices/h200.json has all keys"));
}

TEST_CASE("plans of precompiled engines are built without a device and kept, and a second run loads them") {
  const Folder folder;
  const std::string what = "mnist_cnn --device=h200 --build=first --plans=" + folder.file("plans") +
                           " --benchmark_out=" + folder.file("built.json");
  // Plans and loaded plans from the first line: "14 distinct graphs, 435 plans, 20 of them from the folder".
  const auto loaded = [](const std::string& said) {
    std::pair<int, int> numbers;
    const char* const begin = said.c_str() + said.find("distinct graphs, ");
    REQUIRE(std::sscanf(begin, "distinct graphs, %d plans, %d of", &numbers.first, &numbers.second) == 2);
    return numbers;
  };
  const auto [built, of_them_loaded] = loaded(said_by_engines(what));
  REQUIRE(of_them_loaded == 0);
  int plans = 0;
  const json all = lamina::test::read(folder / "built.json");
  for (const json& graph : all["graphs"])
    for (const auto& [view, engines] : graph["answers"][0].items())
      for (const json& engine : engines) {
        const std::vector<std::string> notes = engine["notes"];
        if (!engine.contains("plan") || std::count(notes.begin(), notes.end(), "runtime_compilation") > 0) continue;
        REQUIRE(engine["plan"]["bytes"].get<int>() > 100);
        REQUIRE(engine["plan"]["workspace_bytes"].get<std::int64_t>() >= 0);
        ++plans;
      }
  REQUIRE(plans >= 24);  // three passes of four convolutions and fully connected ops, with TF32 and without

  const auto file = std::filesystem::directory_iterator(folder / "plans")->path();
  lamina::test::write(file, lamina::test::contents(file).substr(0, 100));
  const std::string again = said_by_engines(what), third = said_by_engines(what);
  REQUIRE_THAT(again, ContainsSubstring(file.string() + " is damaged"));
  REQUIRE(loaded(again) == std::pair(built, built - 1));
  REQUIRE_THAT(third, !ContainsSubstring("is damaged"));
  REQUIRE(loaded(third) == std::pair(built, built));
}

TEST_CASE("the help of engines says that --cudnn takes several versions") {
  said_by("engines --help", 0, "several are compared with the first");
}

TEST_CASE("two cuDNN versions are compared pick by pick, and a version compared with itself has no change") {
  const std::string plain = said_by_engines("mnist_cnn --device=h200");
  const std::string directory = plain.substr(plain.find(" in ") + 4, plain.find(',') - plain.find(" in ") - 4);
  REQUIRE_THAT(said_by_engines("mnist_cnn --device=h200 --cudnn=" + directory + "," + directory),
               ContainsSubstring("mnist_cnn, batch 16, nchw: 0 of "));
}

TEST_CASE("unusable values of --build and --dtype are refused before cuDNN is opened") {
  const std::string what = "engines mnist_cnn --device=h200 ";
  said_by(what + "--dtype=f64", 2, "f32, f16 and bf16");
  said_by(what + "--plans=x", 2, "--build=first or --build=all");
  said_by(what + "--build=some", 2, "--build");
}

TEST_CASE("a missing or too old cuDNN is reported with advice") {
  const std::string what = "engines mnist_cnn --device=h200 --cudnn=" LAMINA_TEST_FAKES;
  CHECK_THAT(said_by(what + "/nowhere", 1, "no cuDNN in"), ContainsSubstring("--cudnn=DIR"));
  CHECK_THAT(said_by(what + "/8.9", 1, "8.9.7"), ContainsSubstring("9.8 or later"));
}
