// Networks from ONNX files in lamina_bench: they have the names of their files, and the files' weights.

#include <algorithm>
#include <span>

#include "bench/measure/net_run.h"
#include "bench/measure/session.h"
#include "bench/rows/rows.h"
#include "bench/tasks/describe.h"
#include "lamina/error.h"
#include "lamina/safetensors.h"
#include "tests/bench/ended.h"
#include "tests/support/onnx_model.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The file tiny.onnx: a convolution and a ReLU, with an open batch.
class TinyFile {
 public:
  explicit TinyFile(float first = 0) { write(first); }

  /// Writes the file with the weights first, first + 1, and so on.
  void write(float first) {
    test::write(path(), test::bytes_of("x[n,1,8,8] w[2,1,3,3] = " + std::to_string(first) +
                                       ".. c = Conv(x, w) \"conv1\" y = Relu(c)"));
  }
  std::filesystem::path path() const { return folder_ / "tiny.onnx"; }

 private:
  test::Folder folder_;
};

/// Writes a file with one unsupported operator.
void write_unsupported(const std::filesystem::path& path) {
  test::write(path, test::bytes_of("x[n,1,8,8] y = Unheard(x)"));
}

}  // namespace

TEST_CASE("a network of a file is described by the name of its file, and checked with its weights") {
  TinyFile file;
  DescribeOptions options;
  options.net.onnx = {file.path()};
  options.networks = {"tiny"};
  const std::string text = describe(options);
  CHECK_THAT(text, ContainsSubstring("tiny: from " + file.path().string()));
  CHECK_THAT(text, ContainsSubstring("conv1") && ContainsSubstring("2x6x6"));
  options.networks = {"tinny"};
  CHECK_THROWS_AS(describe(options), UsageError);
  const std::string check = "check --backend=eigen --onnx=" + file.path().string();
  test::said_by(check, 0, "tiny on eigen, batch 2, f64:\npassed: ");
  file.write(NAN);  // check must see these weights
  test::said_by(check, 1, "failed: ");
}

TEST_CASE("a network of a file has the weights of the file") {
  const TinyFile file;
  PlanningSettings settings;
  settings.net.onnx = {file.path()};
  Session session(settings);
  const Config c{"tiny", "eigen", DType::f32, Layout::nchw, 2};
  const TensorFile weights = session.plans.weights(c);
  REQUIRE(weights.contains("conv1.weight"));
  NetRun run(session.plans.graph(c), session.backends.usable("eigen"), session.plans.options(c, Mode::inference), false,
             weights);
  CHECK(save_weights(run.plan()).at("conv1.weight").values.at(17) == 17);
}

TEST_CASE("every input of a network gets random values for each pass, and ids get valid ids") {
  Graph graph("two");
  const Value x = graph.input({64, 4, 1, 1}, "x"), ids = graph.input({64, 1, 1, 1}, "ids");
  fully_connected(add(x, embedding(ids, "table", {.vocabulary = 5, .features = 4})), "fc", {.outputs = 2});
  const auto backend = make_backend("eigen");
  NetRun run(graph, *backend, {}, false);
  const auto read = [&](const char* input) {
    const Tensor tensor = run.plan().input(input);
    std::vector<double> values(static_cast<std::size_t>(tensor.shape.count()));
    download(backend->device(), std::span<double>(values), tensor);
    return values;
  };
  const auto first_x = read("x"), first_ids = read("ids");
  CHECK(run.pass().size() == 3);
  CHECK(read("x") != first_x);
  CHECK(read("ids") != first_ids);
  CHECK(
      std::ranges::all_of(read("ids"), [](double id) { return id == 0 || id == 1 || id == 2 || id == 3 || id == 4; }));
}

TEST_CASE("a file of two inputs is timed") {
  const test::Folder folder;
  test::write(folder / "two.onnx", test::bytes_of(R"(
    x[n,1,8,8] z[n,1,8,8] w[2,1,3,3] = all 1; v[2,1,3,3] = all 2
    a = Conv(x, w) "image" b = Conv(z, v) "mask" y = Add(a, b))"));
  const std::string file = " --backend=eigen --batch=2 --passes=1 --onnx=" + folder.file("two.onnx");
  const std::string rows = test::said_by("run" + file);
  for (const char* pass : {"forward", "backward", "total", "inference"})
    CHECK_THAT(rows, ContainsSubstring(std::string("net/two/") + pass + "/eigen/f32/nchw/batch:2"));
  test::said_by("sweep" + file + " --thread_counts=1 --benchmark_out=" + folder.file("rows.json"));
  test::said_by("train --onnx=" + folder.file("two.onnx"), 2, "has 2 inputs; a training takes one of images");
  test::said_by("serve --batch=2 --write_onnx --onnx=" + folder.file("two.onnx") +
                " --files=" + folder.path().string() + " < /dev/null");
  const TensorFile check = read_safetensors(folder / "check.safetensors");
  CHECK(check.at("x").extents == std::vector<std::int64_t>{2, 1, 8, 8});
  CHECK(check.at("x").values != check.at("x1").values);
  CHECK(check.at("y").extents == std::vector<std::int64_t>{2, 2, 6, 6});
  CHECK(read_onnx(folder / "network.onnx").inputs.size() == 2);
}

TEST_CASE("the ONNX reader's notes on a file are printed once, before the network is described, timed or trained") {
  const test::Folder folder;
  test::write(folder / "folded.onnx", test::bytes_of(R"(
    x[n,3,32,32] w[2,3,1,1] = all 1; b[2] = 0, 1; c = Conv(x, w, b) m = GlobalAveragePool(c) y = Flatten(m))"));
  for (const auto& [command, first] :
       {std::pair("describe", "\nfolded: from"), std::pair("run --backend=eigen --passes=1 --batch=1", "net/folded/"),
        std::pair("train --epochs=1 --share=0.01", "\nfolded: 8 parameters")}) {
    const std::string said = test::run_bench(command + (" --onnx=" + folder.file("folded.onnx"))).said;
    CAPTURE(said);
    const std::size_t note = said.find("folded.onnx: no batch norm, but 1 convolution:"), after = said.find(first);
    CHECK(note != std::string::npos);
    CHECK(after != std::string::npos);
    CHECK(note < after);
    CHECK(note == said.rfind("folded.onnx: no batch norm"));
  }
}

TEST_CASE("a batch on another axis than the first is found, and a file without a batch is reported") {
  const test::Folder folder;
  test::write(folder / "time.onnx", test::bytes_of("x[7,2,3] w[1,8,3] = all 0; r[1,8,2] = all 0;"
                                                   "y = LSTM<hidden_size=2>(x, w, r)"));
  test::write(folder / "image.onnx",
              test::bytes_of("x[1,8,8] a = {0} w[2,1,3,3] = 1..; u = Unsqueeze(x, a) y = Conv(u, w)"));
  const auto told = [&](const std::string& words) { return test::run_bench(words).said; };
  CHECK_THAT(told("memory --backend=eigen --batch=4 --onnx=" + (folder / "time.onnx").string()),
             ContainsSubstring("a batch of 2; it is taken with --batch=4") && ContainsSubstring("batch at axis 1"));
  const std::string image = " --onnx=" + (folder / "image.onnx").string();
  CHECK_THAT(told("describe" + image), ContainsSubstring("2x6x6"));
  CHECK_THAT(told("memory --backend=eigen --batch=4" + image), ContainsSubstring("give --batch=1"));
}

TEST_CASE("flags give a file's open extents and choose one of its outputs, and both are in the rows' names") {
  const test::Folder folder;
  test::write(folder / "wide.onnx",  // h is open, under the name "batch"
              test::bytes_of("x[1,1,batch,8] w[2,1,3,3] = all 0; c = Conv(x, w) \"conv1\" y = Relu(c) return y, c"));
  RunOptions options;
  options.net.onnx = {folder / "wide.onnx"};
  options.backends.names = {"eigen"};
  options.configs.batches = {3};
  const auto rows = [&] {
    Session session(options);
    return all_rows(session, options);
  };
  CHECK_THROWS_WITH(rows(),
                    ContainsSubstring("'y', 'c'") && Catch::Matchers::EndsWith("name one by --onnx_output=NAME"));
  options.net.onnx_settings.output = "c";
  CHECK_THROWS_WITH(rows(), ContainsSubstring("'batch'") &&
                                Catch::Matchers::EndsWith("give its extent by --onnx_extents=NAME=EXTENT[,...]"));
  options.net.onnx_settings.extents = {{"batch", 12}};
  const auto named = [&](const std::string& start) {
    const std::vector<Row> all = rows();
    return std::any_of(all.begin(), all.end(), [&](const Row& row) {
      return row.name == start + "/batch:3/onnx_extents:batch=12/onnx_output:c";
    });
  };
  CHECK(named("net/wide/inference/eigen/f32/nchw"));
  CHECK(named("layer/wide/conv1/forward/eigen/default/f32/nchw"));
  CHECK_THAT(test::said_by("describe --onnx=" + folder.file("wide.onnx") + " --onnx_output=c --onnx_extents=batch=12"),
             ContainsSubstring("2x10x6") && ContainsSubstring("1 layers"));
}

TEST_CASE("an extent that no file leaves open is refused, and the open extents of each file are listed") {
  const test::Folder folder;
  test::write(folder / "wide.onnx", test::bytes_of("x[n,3,height,width] y = Relu(x)"));
  test::write(folder / "whole.onnx", test::bytes_of("x[1,3,4,4] y = Relu(x)"));
  const std::string wide = folder.file("wide.onnx"), whole = folder.file("whole.onnx");
  for (const std::string command :
       {"run", "describe", "memory", "train", "engines --device=a100", "sweep --benchmark_out=never.json"})
    test::said_by(command + " --onnx=" + wide + "," + whole + " --onnx_extents=height=8,width=8,hieght=8", 2,
                  "--onnx_extents: no axis is open by the name hieght; " + wide +
                      " leaves n (of --batch), height, width open; " + whole + " leaves no axis open");
  // An extent that is open in only one of the files applies to that file.
  CHECK_THAT(test::said_by("describe --onnx=" + wide + "," + whole + " --onnx_extents=height=8,width=6"),
             ContainsSubstring("3x8x6") && ContainsSubstring("3x4x4"));
  test::said_by("memory --backend=eigen --onnx=" + whole, 0,
                whole + " was exported with a batch of 1; it is taken with --batch=16\n");
}

TEST_CASE("a stopped sweep goes on with the same model, and refuses another model of the same name") {
  TinyFile file;
  const test::Folder folder;
  const auto sweep = [&](int status, const std::string& why) {
    return test::said_by(
        "sweep --onnx=" + file.path().string() +
            " --backend=eigen --passes=1 --batch=1 --thread_counts=1 --benchmark_out=" + folder.file("sweep.json"),
        status, why);
  };
  sweep(0, "");
  sweep(0, "resuming after");
  file.write(1);
  CHECK_THAT(sweep(2, "another sweep"), ContainsSubstring("tiny.onnx"));
}

TEST_CASE("memory, ledger, frontier and describe take the network of a file, even if it can only infer") {
  const test::Folder folder;
  test::write(folder / "net.onnx", test::bytes_of(R"(
    x[n,1,8,8] w[2,1,3,3] = all 0; k[2] = all 1
    c = Conv(x, w) "conv1" g = GlobalAveragePool(c) y = BatchNormalization(g, k, k, k, k))"));  // one value in each
                                                                                                // channel
  for (const std::string subcommand : {"memory", "ledger", "frontier", "describe"}) {
    CAPTURE(subcommand);
    const std::string command = subcommand + " --onnx=" + folder.file("net.onnx") + " --backend=eigen --batch=1";
    CHECK_THAT(test::run_bench(command).said, ContainsSubstring("training needs two or more"));
    if (subcommand == "describe") {
      test::said_by(command + " --inference", 0, "nchw, inference");
      continue;
    }
    const nlohmann::json results = test::results_of(command + " --inference");
    const auto list = subcommand == "memory" ? "memories" : subcommand + "s";
    REQUIRE(results[list].size() == 1);
    CHECK(results[list][0]["key"]["part"] == "inference");
    CHECK(results[list][0]["key"]["network"] == "net");
    CHECK(results[list][0]["key"]["batch"] == 1);
    if (subcommand != "memory")
      CHECK(results[list][0][subcommand == "ledger" ? "calls" : "lines"][0]["node"] == "conv1");
    CHECK_THAT(results[list][0]["rerun"].get<std::string>(), ContainsSubstring(" --inference"));
  }
}

TEST_CASE("memory reports a file's network with the batch of --batch, in training and in inference") {
  const TinyFile file;
  const nlohmann::json memories =
      test::results_of("memory --onnx=" + file.path().string() + " --backend=eigen --batch=2")["memories"];
  REQUIRE(memories.size() == 2);
  for (const nlohmann::json& memory : memories) {
    CHECK(memory["key"]["network"] == "tiny");
    CHECK(memory["key"]["batch"] == 2);
  }
  CHECK(memories[0]["key"]["part"] != memories[1]["key"]["part"]);
}

TEST_CASE("readable files are timed even if another file is refused, and the refused file is named") {
  const TinyFile file;
  const test::Folder folder;
  write_unsupported(folder / "other.onnx");
  const std::string run = "run --backend=eigen --passes=1 --batch=1 --benchmark_filter=net/.*/inference --onnx=";
  CHECK_THAT(test::said_by(run + folder.file("other.onnx") + "," + file.path().string(), 1, "Unheard"),
             ContainsSubstring("left out: " + folder.file("other.onnx")) &&
                 ContainsSubstring("net/tiny/inference/eigen/f32/nchw/batch:1"));
  CHECK_THAT(test::said_by(run + folder.file("other.onnx"), 1, "Unheard"), !ContainsSubstring("left out"));
}

TEST_CASE("a sweep that leaves out a file with an unsupported operator ends well, and lists that file in its results") {
  const TinyFile file;
  const test::Folder folder;
  write_unsupported(folder / "other.onnx");
  test::write(folder / "junk.onnx", "junk");
  const auto sweep = [&](const std::string& second, int status) {
    const std::string out = folder.file(second + ".json");
    test::said_by("sweep --backend=eigen --passes=1 --batch=1 --thread_counts=1 --onnx=" + file.path().string() + "," +
                      folder.file(second + ".onnx") + " --benchmark_out=" + out,
                  status, second + " on eigen, f32 nchw was left out, as it cannot be planned");
    const nlohmann::json result = test::read(out);
    CHECK(result["benchmarks"][0]["key"]["network"] == "tiny");
    REQUIRE(result["not_planned"].size() == 1);
    CHECK(result["not_planned"][0]["key"]["network"] == second);
    return result["not_planned"][0]["failure"].get<std::string>();
  };
  CHECK(sweep("other", 0) == "unsupported");
  CHECK(sweep("junk", 1) == "failed");
}
