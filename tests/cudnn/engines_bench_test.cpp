// lamina_bench engines: tables, files, errors, and the time for ten networks.

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
using lamina::test::seconds_of_ended;

namespace {

/// Ends the process if no cuDNN of 9.8 or later is installed.
Ended run_or_skip(const std::string& arguments) {
  Ended ended = run_bench(arguments);
  if (ended.status == 1 &&
      (ended.said.find("finds no cuDNN") != std::string::npos || ended.said.find("is too old") != std::string::npos))
    test::skip(ended.said);
  return ended;
}

constexpr const char* ten = "alexnet,inception_v1,vgg16,vgg19,resnet18,resnet34,resnet50,resnet101,resnet152,resnet200";

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double most_seconds = 60;  // of a program under a sanitizer
#else
constexpr double most_seconds = 30;
#endif

}  // namespace

TEST_CASE("engines of all convolutions of the ten networks are there in seconds, strict ones without tensor cores") {
  const Folder folder;
  const std::string out = folder.file("engines.json");
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < 3 && least >= most_seconds; ++attempt) {
    const double start = seconds_of_ended();  // processor time: other programs hold up a clock
    const Ended ended = run_or_skip(std::string("engines ") + ten + " --device=h200 --benchmark_out=" + out);
    const double seconds = seconds_of_ended() - start;
    CAPTURE(ended.said);
    REQUIRE(ended.status == 0);
    std::printf("ten networks, f32 with and without TF32: %.1f s\n", seconds);
    least = std::min(least, seconds);
  }
  REQUIRE(least < most_seconds);

  const json all = lamina::test::read(out);
  REQUIRE(all["context"]["cudnn"].get<std::string>().substr(0, 2) == "9.");
  REQUIRE(all["context"]["device_properties"]["deviceVer"] == 900);
  std::set<std::string> networks;
  int first_picks = 0;
  for (const json& convolution : all["convolutions"]) {
    for (const json& use : convolution["uses"]) networks.insert(use["network"].get<std::string>());
    for (const char* pass : {"forward", "backward_data", "backward_params"}) {
      const json& answer = convolution["passes"][pass];
      CAPTURE(convolution["conv"], convolution["x"], pass);
      REQUIRE_FALSE(answer["tf32"].empty());
      REQUIRE_FALSE(answer["strict"].empty());
      first_picks += answer["tf32"][0]["list"] == "a" ? 1 : 0;
      for (const json& each : answer["strict"])
        for (const json& note : each["notes"]) {
          REQUIRE(note != "tensor_core");
          REQUIRE(note != "down_convert_inputs");
        }
    }
  }
  REQUIRE(networks.size() == 10);
  REQUIRE(all["convolutions"].size() > 60);
  REQUIRE(first_picks > static_cast<int>(all["convolutions"].size()));  // mode A has an answer, not the fallback alone
}

TEST_CASE("layouts and batches are asked apart, and each has a table") {
  const Folder folder;
  const std::string out = folder.file("engines.json");
  const Ended table =
      run_or_skip("engines mnist_cnn --device=a100 --layout=nchw,nhwc --batch=2,3 --benchmark_out=" + out);
  CAPTURE(table.said);
  REQUIRE(table.status == 0);
  for (const char* part : {"mnist_cnn, batch 2, nchw", "mnist_cnn, batch 3, nhwc", "t tensor cores"})
    REQUIRE_THAT(table.said, ContainsSubstring(part));
  const json all = lamina::test::read(out);
  REQUIRE(all["convolutions"].size() == 8);  // two layers, two layouts, two batches
}

TEST_CASE("an unknown --device is refused with the known ones") {
  const auto said = [](const std::string& device) {
    const Ended ended = run_or_skip("engines mnist_cnn " + device);
    REQUIRE(ended.status == 2);
    return ended.said;
  };
  REQUIRE_THAT(said(""), ContainsSubstring("--device"));
  REQUIRE_THAT(said("--device=h2000"),
               ContainsSubstring("no device \"h2000\", and no such file: valid names: a100 and h200"));
  const Folder folder;
  lamina::test::write(folder / "garbage.json", "{\"deviceVer\": ");
  REQUIRE_THAT(said("--device=" + folder.file("garbage.json")), ContainsSubstring("does not hold a JSON object"));
}

TEST_CASE("a file that lacks properties is refused with their names and with cuDNN's message") {
  const Folder folder;
  lamina::test::write(folder / "partial.json", "{\"deviceVer\": 900, \"warpSize\": 32}");
  const Ended ended = run_or_skip("engines mnist_cnn --device=" + folder.file("partial.json"));
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.said, ContainsSubstring("CUDNN_STATUS_BAD_PARAM"));
  REQUIRE_THAT(ended.said, ContainsSubstring("maxGridSize"));
  REQUIRE_THAT(ended.said, !ContainsSubstring("warpSize"));
}

TEST_CASE("a cuDNN that is absent or too old is reported with what to do") {
  const std::string what = "engines mnist_cnn --device=h200 --cudnn=" LAMINA_TEST_FAKES;
  const Ended missing = run_bench(what + "/nowhere");
  REQUIRE(missing.status == 1);
  REQUIRE_THAT(missing.said, ContainsSubstring("no cuDNN in") && ContainsSubstring("--cudnn=DIR"));
  const Ended old = run_bench(what + "/8.9");
  REQUIRE(old.status == 1);
  REQUIRE_THAT(old.said, ContainsSubstring("8.9.7") && ContainsSubstring("9.8 or later"));
}
