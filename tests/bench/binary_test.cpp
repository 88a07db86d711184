// The program itself: what it prints, what it leaves in files, how it ends.

#include <filesystem>
#include <map>

#include "ended.h"
#include "lamina/lamina.h"
#include "tests/support/csv.h"

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using namespace lamina::test;

TEST_CASE("the table of devices has measured rates, and lists below the table which backends are missing and why") {
  const std::string said = said_by("devices"), why = lamina::why_no_gpu();
  REQUIRE_THAT(said, ContainsSubstring("copy GB/s") && ContainsSubstring("\nprocessor"));
  REQUIRE_THAT(said, ContainsSubstring("\nUnits of processor: ") &&
                         ContainsSubstring(", multiply-adds in registers, on every thread\n") &&
                         ContainsSubstring("\nMatrix rate of processor: backend eigen, fastest of "));
  REQUIRE_THAT(said, ContainsSubstring(why.empty() ? "\ngpu 0" : "\nGPU: " + why + "\n"));
  REQUIRE_THAT(said, !ContainsSubstring("Not measured, processor"));
  said_by("devices --format=csv", 0, "device,name,architecture,GiB,");
}

TEST_CASE("rows for a GPU are listed on a machine without one, and fail with the reason") {
  for (const std::string backend : {"cuda", "cudnn"}) {
    const std::string rows = "--benchmark_filter=net/mnist_mlp/total --backend=" + backend;
    said_by(rows + " --benchmark_list_tests", 0, "net/mnist_mlp/total/" + backend + "/f32/nchw/batch:16\n");
    if (lamina::why_no_gpu().empty()) continue;
    CHECK_THAT(said_by(rows + " --passes=1", 1, "Unsupported: "), ContainsSubstring("no row could run"));
  }
}

TEST_CASE("every sample of a row is in the JSON, under its documented name, without the fields of GPUs") {
  const json result = results_of("--benchmark_filter=net/mnist_mlp/ --batch=2 --passes=4");
  for (const char* key : {"processor", "compiler", "compiler_flags", "commit", "backend_eigen", "processor_cores",
                          "load_average_start", "load_average_end", "clock_MHz_start", "clock_MHz_end", "libc"})
    REQUIRE_THAT(result["context"].value(key, std::string()), !Catch::Matchers::Equals(""));
  std::map<std::string, std::map<int, double>> seconds;
  std::map<std::string, double> bytes;
  for (const json& run : result["benchmarks"]) {
    REQUIRE(run["key"]["what"] == "net");
    REQUIRE(run["key"]["network"] == "mnist_mlp");
    REQUIRE(run["key"]["backend"] == "eigen");
    REQUIRE(run["key"]["batch"] == 2);
    REQUIRE(run["name"].get<std::string>().starts_with("net/mnist_mlp/" + run["key"]["part"].get<std::string>() + "/"));
    REQUIRE(run["time_unit"] == "ms");
    for (const char* field : {"launches", "throttled", "sm_mhz", "temperature_c", "power_w"})
      CHECK_FALSE(run.contains(field));
    if (run["run_type"] != "iteration") continue;
    REQUIRE(run["name"] == run["run_name"]);
    REQUIRE(run["repetitions"] == 4);
    REQUIRE(run["iterations"] == 1);
    REQUIRE(run["cpu_time"] > 0);
    REQUIRE(run["images_per_second"].get<double>() == Approx(2e3 / run["real_time"].get<double>()));
    seconds[run["name"]][run["repetition_index"]] = run["real_time"];
    bytes[run["name"]] = 1e-3 * run["real_time"].get<double>() * run["bytes_per_second"].get<double>();
  }
  CHECK_FALSE(result["context"].contains("readings_eigen"));
  REQUIRE(seconds.size() == 4);
  const std::string tail = "/eigen/f32/nchw/batch:2";
  REQUIRE(bytes.at("net/mnist_mlp/inference" + tail) > 0);
  REQUIRE(bytes.at("net/mnist_mlp/total" + tail) ==
          Approx(bytes.at("net/mnist_mlp/forward" + tail) + bytes.at("net/mnist_mlp/backward" + tail)));
  for (const auto& [name, passes] : seconds) REQUIRE(passes.size() == 4);
  for (int pass = 0; pass < 4; ++pass)
    REQUIRE(seconds.at("net/mnist_mlp/total" + tail).at(pass) ==
            Approx(seconds.at("net/mnist_mlp/forward" + tail).at(pass) +
                   seconds.at("net/mnist_mlp/backward" + tail).at(pass)));
}

TEST_CASE("a row has its share of the peak, and the context has the peak") {
  const json result = results_of("--backend=eigen --batch=1 --passes=2 --benchmark_filter=net/mnist_mlp/total/");
  for (const json& run : result["benchmarks"]) {
    if (run["run_type"] != "iteration") continue;
    const double peak = run["peak_flops_per_second"];
    CHECK(run["share_of_peak"].get<double>() == Approx(run["flops_per_second"].get<double>() / peak));
    CHECK(run["core_mhz"] > 100);
  }
  CHECK(result["context"].contains("peak_GFLOPs_eigen/f32"));
  CHECK(result["context"]["peak_is_eigen/f32"] == "multiply-adds in registers, on every thread");
}

TEST_CASE("all networks can be listed") {
  std::vector<std::string> names;
  for (const CsvRow& row : csv_rows(said_by("networks --format=csv"))) {
    names.push_back(row.at("network"));
    const lamina::nets::Info& info = lamina::nets::info(names.back());
    CHECK(std::to_string(info.smallest_image) == row.at("smallest"));
    CHECK((row.at("softmax") == "yes") == info.protocol.softmax);
    CHECK((row.at("input_gradient") == "yes") == info.protocol.input_gradient);
    CHECK((row.at("accumulate") == "yes") == info.protocol.accumulate);
  }
  CHECK(names.size() == lamina::nets::list().size());
}

TEST_CASE("measured choices are kept in the named file, and layer rows do not use them") {
  const Folder folder;
  const std::string cache = folder.file("choices.json");
  const json rows = results_of(
      "--benchmark_filter='^(net|layer)/mnist_cnn' --batch=2 --width_divisor=8 --passes=1 "
      "--backend=eigen --measure --choice_cache=" +
      cache)["benchmarks"];
  REQUIRE(std::filesystem::exists(cache));
  REQUIRE_FALSE(rows.empty());
  for (const auto& row : rows) {
    const std::string name = row.at("name");
    CAPTURE(name);
    REQUIRE((name.find("/measured") != std::string::npos) == !name.starts_with("layer/"));
  }
}

TEST_CASE("a refused row is reported, and a run fails if all of its rows are refused") {
  const std::string rows = " --batch=2 --passes=1 --benchmark_filter=net/mnist_mlp";
  said_by("--layout=nchw,nhwc" + rows + "/total", 0, "Unsupported: ");
  // A reason that many rows share is printed once.
  const std::string many = said_by("--backend=eigen --layout=nhwc" + rows, 1, "no row could run");
  const std::size_t first = many.find("Unsupported: ");
  REQUIRE(first != std::string::npos);
  CHECK(many.find("Unsupported: ", first + 1) == std::string::npos);
  CHECK_THAT(many, ContainsSubstring("Unsupported, as above"));
}

TEST_CASE("a row that needs more than the memory limit fails, and other rows run") {
  const Folder folder;
  const std::string out = folder.file("rows.json");
  said_by(
      "--benchmark_filter='net/(mnist_mlp|mnist_cnn)/inference' --batch=2 --memory_limit=4MB --passes=2 "
      "--benchmark_out=" +
          out,
      1);
  std::map<std::string, int> failed, measured;
  const json result = read(out);
  for (const json& run : result["benchmarks"]) {
    if (run["run_type"] != "iteration") continue;
    const bool error = run.value("error_occurred", false);
    ++(error ? failed : measured)[run["name"].get<std::string>()];
    if (error) REQUIRE_THAT(run["error_message"].get<std::string>(), ContainsSubstring("OutOfMemory: "));
  }
  REQUIRE(failed == std::map<std::string, int>{{"net/mnist_cnn/inference/eigen/f32/nchw/batch:2", 1}});
  REQUIRE(measured == std::map<std::string, int>{{"net/mnist_mlp/inference/eigen/f32/nchw/batch:2", 2}});
}

TEST_CASE("the table has a line for each network, and the rows are in a file") {
  const Folder folder;
  const std::string out = folder.file("rows.json");
  const std::string said = said_by(
      "--table --benchmark_filter=net/resnet18/ --batch=2 --image=32 --width_divisor=8 --passes=2 --benchmark_out=" +
      out);
  REQUIRE_THAT(said, ContainsSubstring("about") && ContainsSubstring("eigen f32 nchw batch 2"));
  REQUIRE_THAT(said, ContainsSubstring("Rows: " + out));
  REQUIRE(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  REQUIRE(read(out)["benchmarks"][0]["name"] == "net/resnet18/forward/eigen/f32/nchw/batch:2/image:32/width_divisor:8");
}
