// Frontiers whose networks cannot be planned: that is reported, and nothing else is lost.

#include "bench/tasks/frontier.h"
#include "lamina/choice_cache.h"
#include "lamina/error.h"
#include "tests/bench/doubles/odd_backend.h"
#include "tests/bench/ended.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a layer that fails with any workspace is reported with the reason, and the next network is measured") {
  const bool unsupported = GENERATE(true, false);
  FrontierOptions options;
  options.networks = {"mnist_cnn", "cifar10_cnn"};
  options.backends.names = {"eigen"};
  options.configs.batches = {2};
  options.net.width_divisor = 8;
  options.passes = 1;
  Session session(options);
  auto odd = std::make_unique<Odd>();
  odd->refuse = [unsupported](const Spec& spec) {
    if (!std::holds_alternative<MaxPool>(spec.op)) return;
    if (unsupported) throw Unsupported("no maxima here");
    throw DeviceError("no device any more");
  };
  session.backends.put("eigen", std::move(odd));
  std::vector<std::string> refusals;
  frontiers(session, options, [&refusals](const std::string& text) {
    if (text.starts_with("But ")) refusals.push_back(text);
  });
  REQUIRE(refusals.size() == 2);
  CHECK_THAT(refusals[0], ContainsSubstring("But mnist_cnn on eigen, batch 2 cannot be planned"));
  CHECK_THAT(refusals[1], ContainsSubstring("But cifar10_cnn on eigen, batch 2 cannot be planned") &&
                              ContainsSubstring(unsupported ? "no maxima here" : "no device any more") &&
                              ContainsSubstring(". Failed with any workspace: max_pooling2d_1"));
}

TEST_CASE("with CSV, standard error says that a network's choices are kept although it cannot be planned with them") {
  const Folder folder;
  const std::string file = folder.file("choices.json");
  const std::string arguments =
      "frontier cifar10_cnn --backend=eigen --batch=2 --width_divisor=8 --passes=1 "
      "--workspace_limit=0 --format=csv --choices_out=" +
      file;
  const Ended ended = run_bench(arguments);
  CAPTURE(ended.said);
  CHECK(ended.status == 0);
  const std::string choices = std::to_string(ChoiceCache(file).entries().size());
  CHECK_THAT(ended.said,
             ContainsSubstring("\nBut cifar10_cnn on eigen, batch 2 cannot be planned with these limits: ") &&
                 ContainsSubstring(" need: max_pooling2d_1 ") &&
                 ContainsSubstring("\n" + choices + " choices of cifar10_cnn on eigen, batch 2 added to " + file +
                                   "; this network cannot be planned with them\n"));
  CHECK_THAT(run_bench(arguments, Outputs::standard).said, !ContainsSubstring("cannot be planned"));
}
