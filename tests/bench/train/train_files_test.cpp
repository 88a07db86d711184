// Files that a training writes while it runs, and errors before it begins.

#include <filesystem>
#include <string>

#include "bench/train/train.h"
#include "tests/bench/ended.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a training goes on if a checkpoint cannot be written, and fails unless a later checkpoint is written") {
  for (const bool comes_back : {true, false}) {
    const test::Folder folder;
    const auto runs = folder / "runs";
    TrainOptions options;
    options.names = {"mnist_mlp"};
    options.epochs = 3;
    options.share = 0.002;
    options.json = folder / "run.json";
    options.checkpoint = runs / "run";
    std::string printed;
    const auto print = [&](const std::string& text) {
      printed += text;
      if (text.starts_with("epoch 1/")) std::filesystem::remove_all(runs);
      if (text.starts_with("epoch 2/") && comes_back) std::filesystem::create_directory(runs);
    };
    if (comes_back)
      CHECK(train_all(options, make_backend, print) == 0);
    else
      CHECK_THROWS_WITH(train_all(options, make_backend, print), ContainsSubstring("make the folder " + runs.string()));
    CHECK(std::filesystem::exists(options.checkpoint) == comes_back);
    CHECK_THAT(printed, ContainsSubstring("epoch 3/3") && ContainsSubstring("3 epochs: "));
    const nlohmann::json file = test::read(options.json.string());
    CHECK(file["benchmarks"].size() == 3);
    CHECK(file["context"]["interrupted"] == false);
  }
}

TEST_CASE("with --checkpoint_updates, a training that was stopped within an epoch goes on within the epoch") {
  const test::Folder folder;
  const std::string training = "train mnist_cnn --share=0.05 --epochs=1", file = folder.file("run.safetensors");
  const std::string kept = training + " --checkpoint_updates=2 --checkpoint=" + file;
  const std::string until_written = "while [ ! -e " + file + " ] && kill -0 $!; do sleep 0.05; done; ";
  const auto stopped =
      test::run_program("{ " LAMINA_BENCH " " + kept + " & " + until_written, "kill -TERM $!; wait $!; }");
  INFO(stopped.said);
  CHECK(stopped.status == 143);
  CHECK_THAT(stopped.said, ContainsSubstring("stopped after 0 of 1 epochs; the same command goes on from " + file));
  const std::string went_on = test::said_by(kept, 0, "goes on after 0 of 1 epochs"), whole = test::said_by(training);
  const auto numbers = [](const std::string& said) {
    const std::size_t at = said.find("  loss ", said.find("epoch 1/1"));
    return said.substr(at, said.find('\n', at) - at);
  };
  CHECK(numbers(went_on) == numbers(whole));
  CHECK(numbers(whole).find("accuracy") != std::string::npos);
  test::said_by(training + " --checkpoint_updates=2", 2);  // without --checkpoint
}
