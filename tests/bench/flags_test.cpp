// Which flags go together, and what is said of those that do not.

#include <fstream>

#include "bench/ended.h"
#include "lamina/choice_cache.h"
#include "support/catch.h"

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

TEST_CASE("a flag that what was asked for would not look at is refused") {
  for (const std::string task : {"--ledger=mnist_mlp", "--frontier=mnist_mlp", "--networks", "--describe=mnist_mlp"}) {
    const std::string name = task.substr(0, task.find('='));
    refused(task + " --benchmark_out=rows.json",
            "--benchmark_out belongs to timed rows, --cudnn_engines; " + name + " would not look at it");
    refused(task + " --benchmark_filter=mlp", "--benchmark_filter belongs to timed rows; " + name);
    refused(task + " --weights=/dev/null", "--weights belongs to timed rows; " + name);
  }
  refused("--networks --batch=2", "--batch belongs to timed rows, --memory, --ledger, --frontier, --cudnn_engines; ");
  refused("--describe=alexnet --backend=eigen", "--backend belongs to timed rows, --memory, --ledger, --frontier; ");
  refused("--devices --image=64", "--devices would not look at it");
  refused("--memory=alexnet --passes=3", "--memory would not look at it");
  refused("--frontier=alexnet --choices=/dev/null",
          "--choices belongs to timed rows, --memory, --ledger; --frontier would not look at it");
  refused("--format=csv", "--format belongs to --networks, --describe, ");
  refused("--benchmark_list_tests --format=csv", "give one of them too");
  refused("--choices_out=c.json", "--choices_out belongs to --frontier; give that too");
  refused("--device=h200", "--device belongs to --cudnn_engines; give that too");
  refused("--results=folder", "--results belongs to --table; give that too");
  refused("--describe=alexnet --measure",
          "--measure belongs to timed rows, --memory, --ledger; --describe would not look at it");
  refused("--frontier=alexnet --measure",
          "--measure belongs to timed rows, --memory, --ledger; --frontier would not look at it");
}

TEST_CASE("a flag of one backend needs that backend") {
  refused("--backend=cuda-host --instruction_set=x86-64-v3", "--instruction_set is of eigen, which --backend does not");
}

TEST_CASE("what a list names twice is refused") {
  refused("--backend=eigen,eigen", "--backend names eigen twice");
  refused("--batch=2,4,2", "--batch names 2 twice");
  refused("--dtype=f64,f64", "--dtype names f64 twice");
  refused("--layout=nchw,NCHW", "--layout names nchw twice");
  refused("--describe=alexnet,alexnet", "--describe names alexnet twice");
}

TEST_CASE("an amount of bytes that is none is told with its flag") {
  refused("--workspace_limit=-1", "--workspace_limit: \"-1\" is no number of bytes");
  refused("--memory_limit=lots", "--memory_limit: \"lots\" is no number of bytes");
}

TEST_CASE("a file of choices that is none is refused before anything is measured") {
  const Folder folder;
  const std::string file = folder.file("choices.json");
  std::ofstream(file) << "{\"format\": 1";
  for (const std::string flags : {"--frontier=resnet50 --choices_out=", "--benchmark_filter=net/resnet50/ --choices=",
                                  "--benchmark_filter=net/resnet50/ --measure --choice_cache="}) {
    const std::string flag = flags.substr(flags.rfind("--"));
    const Ended ended = run_bench(flags + file);
    CAPTURE(flags, ended.said);
    CHECK(ended.status == 1);
    CHECK(ended.said ==
          "lamina_bench: " + flag + file + ": not JSON, or cut off; make the file anew, or name another\n");
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

TEST_CASE("how many choices of a file hold for a network is told, and that none does fails its rows") {
  const Folder folder;
  const std::string file = folder.file("c.json");
  const std::string small = " --backend=eigen --batch=2 --passes=1";
  REQUIRE(run_bench("--frontier=mnist_mlp --choices_out=" + file + small).status == 0);
  const std::size_t its = lamina::ChoiceCache(file).entries().size();
  REQUIRE(run_bench("--frontier=mnist_cnn --choices_out=" + file + small).status == 0);
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
}
