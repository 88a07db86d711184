// Which flags go together, and what is said of those that do not.

#include <fstream>

#include "ended.h"
#include "lamina/choice_cache.h"
#include "tests/support/catch.h"

using Catch::Matchers::ContainsSubstring;
using namespace lamina::test;

namespace {

void refused(const std::string& arguments, const std::string& why) {
  const Ended ended = run_bench(arguments);
  CAPTURE(arguments, ended.said);
  CHECK(ended.status == 2);
  CHECK_THAT(ended.said, ContainsSubstring(why));
}

}  // namespace

TEST_CASE("a subcommand refuses a flag that it does not take, and names those that do") {
  for (const std::string task : {"ledger mnist_mlp", "frontier mnist_mlp", "networks", "describe mnist_mlp"}) {
    refused(task + " --benchmark_filter=mlp", "accepted by: run");
    refused(task + " --weights=/dev/null", "accepted by: run");
  }
  refused("networks --benchmark_out=rows.json",
          "accepted by: run, ledger, frontier, compare, sweep, memory, engines, train");
  refused("networks --batch=2", "accepted by: run, ledger, frontier, sweep, memory, describe, engines, train");
  refused("devices --backend=eigen", "accepted by: run, ledger, frontier, sweep, memory, describe, train");
  refused("devices --image=64", "devices: unknown option --image");
  refused("memory alexnet --passes=3", "accepted by: run, ledger, frontier, sweep");
  refused("frontier alexnet --choices=/dev/null", "accepted by: run, ledger, memory, describe");
  refused("--format=csv", "accepted by: ledger, frontier, compare, memory, describe, networks, devices, engines");
  refused("--device=h200", "accepted by: engines");
  refused("run mnist_mlp", "--benchmark_filter='^net/mnist_mlp/'");
  refused("frontier alexnet --measure", "accepted by: run, ledger, memory, describe");
  refused("frontier alexnet --max_error=1e-6", "accepted by: run, ledger, sweep, memory, describe");
  refused("--choices_out=c.json", "accepted by: frontier");
  refused("ledger alexnet --pases=3", "--passes");
  refused("run alexnet", "alexnet");
}

TEST_CASE("without a subcommand it is run, and each has its own help") {
  const Ended plain = run_bench("--benchmark_list_tests --benchmark_filter=net/mnist_mlp/total");
  CHECK(plain.status == 0);
  CHECK(plain.said == run_bench("run --benchmark_list_tests --benchmark_filter=net/mnist_mlp/total").said);
  const Ended all = run_bench("--help");
  CHECK(all.status == 0);
  for (const char* name :
       {"run", "ledger", "frontier", "memory", "describe", "networks", "devices", "engines", "train"}) {
    CAPTURE(name);
    CHECK_THAT(all.said, ContainsSubstring(std::string("\n  ") + name + " "));
    const Ended one = run_bench(std::string(name) + " --help");
    CHECK(one.status == 0);
    CHECK_THAT(one.said, ContainsSubstring(std::string("lamina_bench ") + name));
  }
  CHECK_THAT(run_bench("frontier --help").said, ContainsSubstring("measured") && !ContainsSubstring("--measure "));
  CHECK_THAT(run_bench("run --help").said, ContainsSubstring("guarantee") && ContainsSubstring("net/<net>/"));
  refused("frontir alexnet", "frontier");
}

TEST_CASE("flags that go together or exclude each other are named") {
  refused("--quick", "--table");
  refused("--table --quick --benchmark_filter=alexnet", "--quick");
  refused("--measure --choices=/dev/null", "--choices");
  refused("--choice_cache=c.json --instruction_set=generic", "--measure");
  refused("--backend=cuda-host --instruction_set=x86-64-v3", "--instruction_set is of eigen, which --backend does not");
}

TEST_CASE("wrong use ends with status 2 and near names") {
  refused("--benchmark_filer=x", "--benchmark_filter");
  refused("--benchmark_filter=net/resnet5/totl", "net/resnet50/total");
  refused("--benchmark_filter='('", "regular expression");
  refused("--benchmark_context=no_value", "--benchmark_context");
  refused("ledger", "networks");
  refused("describe resnet5", "resnet50");
  refused("memory vgg61", "vgg16");
  refused("frontier resnet5", "resnet50");
  refused("train mnist_mlq", "mnist_mlp");
  refused("--backend=eigne", "eigen");
  refused("--batch=0", "--batch");
  refused("--threads=two", "--threads");
  refused("--max_error=-1", "--max_error");
  refused("--dtype=f16", "f32,f64");
  refused("networks --format=xml", "text,csv");
  refused("--image=5 --benchmark_filter=net/vgg16/total", "--image=5 leaves out networks that need larger ones: ");
  refused("--image=5 --benchmark_filter=net/vgg16/total", "vgg16 (32)");
  refused("--math=fast", "strict");
  refused("--choices=none.json", "none.json");
  refused("--cudnn=no_such_place", "--cudnn=no_such_place: there is no such directory");
  refused("--cudnn=.,..", "bench/race/versions");
}

TEST_CASE("what a list names twice is refused") {
  refused("--backend=eigen,eigen", "--backend names eigen twice");
  refused("--batch=2,4,2", "--batch names 2 twice");
  refused("--dtype=f64,f64", "--dtype names f64 twice");
  refused("--layout=nchw,NCHW", "--layout names nchw twice");
  refused("describe alexnet,alexnet", "alexnet twice");
  const std::string sweep = "sweep mnist_mlp --benchmark_out=/dev/null ";
  refused(sweep + "--thread_counts=1,2,1", "--thread_counts names 1 twice");
  refused(sweep + "--images=28,28", "--images names 28 twice");
  refused(sweep + "--algorithms=gemm,direct,gemm", "--algorithms names gemm twice");
}

TEST_CASE("an amount of bytes is read with its unit, and an invalid one is refused with its flag") {
  const auto limit = [](const std::string& text) {
    return run_bench("--benchmark_list_tests --benchmark_filter=^net/mnist_mlp/total --workspace_limit=" + text).said;
  };
  CHECK_THAT(limit("0"), ContainsSubstring("/workspace_limit:0\n"));
  CHECK_THAT(limit("4096"), ContainsSubstring("/workspace_limit:4096\n"));
  CHECK_THAT(limit("2MB"), ContainsSubstring("/workspace_limit:2000000\n"));
  CHECK_THAT(limit("4GiB"), ContainsSubstring("/workspace_limit:4294967296\n"));
  for (const std::string wrong : {"-1", "lots", "4XB", "nan"}) {
    refused("--workspace_limit=" + wrong, "--workspace_limit");
    refused("--memory_limit=" + wrong, "--memory_limit");
  }
  refused("--memory_limit=0", "--memory_limit");
}

TEST_CASE("an invalid file of choices fails before anything is measured") {
  const Folder folder;
  const std::string file = folder.file("choices.json");
  std::ofstream(file) << "{\"format\": 1";
  for (const std::string flags : {"frontier resnet50 --choices_out=", "--benchmark_filter=net/resnet50/ --choices=",
                                  "--benchmark_filter=net/resnet50/ --measure --choice_cache="}) {
    const std::string flag = flags.substr(flags.rfind("--"));
    const Ended ended = run_bench(flags + file);
    CAPTURE(flags, ended.said);
    CHECK(ended.status == 1);
    CHECK_THAT(ended.said, ContainsSubstring(flag + file + ": "));
  }
  refused("--benchmark_filter=mnist_mlp --choice_cache=" + folder.file("none/c.json"),
          ": there is no folder " + folder.file("none") + "; make it first");
}

TEST_CASE("files that no picked row would look at are refused") {
  const Folder folder;
  const std::string weights = folder.file("w.safetensors"), choices = folder.file("c.json");
  std::ofstream(weights) << "no weights";
  lamina::ChoiceCache(choices).save();
  refused("--benchmark_filter=^layer/mnist_mlp/ --weights=" + weights, "rows layer/... and setup/... draw");
  refused("--benchmark_filter=^setup/mnist_mlp/ --weights=" + weights, "rows layer/... and setup/... draw");
  refused("--benchmark_filter=^layer/mnist_mlp/ --choices=" + choices, "rows layer/... name their algorithms");
}

TEST_CASE("a file of weights that cannot be read fails before anything is measured") {
  const Folder folder;
  const std::string weights = folder.file("w.safetensors");
  std::ofstream(weights) << "no weights";
  const Ended ended = run_bench("--benchmark_filter=net/mnist_mlp/total --backend=eigen --weights=" + weights);
  CAPTURE(ended.said);
  CHECK(ended.status == 1);
  CHECK_THAT(ended.said, ContainsSubstring(weights) && !ContainsSubstring("measurement"));
}

TEST_CASE("standard error says how many choices of a file hold for a network, and without any its rows fail") {
  const Folder folder;
  const std::string file = folder.file("c.json");
  const std::string small = " --backend=eigen --batch=2 --width_divisor=8 --passes=1";
  REQUIRE(run_bench("frontier mnist_mlp --choices_out=" + file + small).status == 0);
  const std::size_t its = lamina::ChoiceCache(file).entries().size();
  REQUIRE(run_bench("frontier mnist_cnn --choices_out=" + file + small).status == 0);
  const Ended some = run_bench("--benchmark_filter=net/mnist_mlp/inference --choices=" + file + small);
  CAPTURE(some.said);
  CHECK(some.status == 0);
  const std::size_t all = lamina::ChoiceCache(file).entries().size();
  REQUIRE(its < all);
  CHECK_THAT(some.said, ContainsSubstring(" " + std::to_string(its) + " of its " + std::to_string(all) +
                                          " choices hold for mnist_mlp on eigen, batch 2\n"));
  const Ended none =
      run_bench("--benchmark_filter=net/mnist_mlp/inference --backend=eigen --batch=3 --choices=" + file);
  CAPTURE(none.said);
  CHECK(none.status == 1);
  CHECK_THAT(none.said, ContainsSubstring("has no choice for mnist_mlp on eigen here"));
  const Ended ledger = run_bench("ledger mnist_mlp --backend=eigen --batch=3 --choices=" + file);
  CAPTURE(ledger.said);
  CHECK(ledger.status == 2);
  CHECK_THAT(ledger.said,
             ContainsSubstring("has no choice for mnist_mlp on eigen here") && !ContainsSubstring("Measuring"));
}
