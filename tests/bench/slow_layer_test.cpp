// Compares a program with itself, and with a variant in which one layer takes 5 % longer. The programs take turns on
// this machine for some minutes. Nothing else may run in this time.

#include "ended.h"

using Catch::Matchers::ContainsSubstring;
using namespace lamina::test;

TEST_CASE("at most 5 % of the rows of equal programs are called slower or faster, and a layer slower by 5 % is named") {
  const Folder folder;
  const std::string out = folder.file("rows.json");
  for (const char* name : {"first", "same", "slow"})
    std::filesystem::create_symlink(LAMINA_SLOW_LAYER, folder.path() / name);
  ::setenv("LAMINA_SLOW_FILTERS", "64x64x3x3", 1);
  const Ended ended = run_program(
      LAMINA_VERSIONS, "--programs=" + folder.file("first") + "," + folder.file("same") + "," + folder.file("slow") +
                           " --backend=eigen --threads=1 --rounds=20 --passes=40 --batch=8 --image=112 "
                           "'--benchmark_filter=^layer/resnet18/.*conv./(forward|backward_params)/eigen/default/' "
                           "--benchmark_out=" +
                           out);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  // Noise of the machine may make a row inconclusive instead of equal. Noise must not cause a false difference.
  int rows = 0, wrong = 0, slow_rows = 0, found = 0, faster = 0, others = 0, wrong_others = 0;
  const nlohmann::json result = read(out);
  for (const auto& each : result.at("comparisons")) {
    const std::string row = each.at("name"), verdict = each.at("verdict");
    const bool slow = each.at("second") == folder.file("slow");
    const int differs = verdict == "equal" || verdict == "inconclusive" ? 0 : 1;
    if (!slow) {
      ++rows;
      wrong += differs;
    } else if (row.find("/layer1.0.conv1/") != std::string::npos) {
      ++slow_rows;
      found += verdict == "slower" ? 1 : 0;
      faster += verdict == "faster" ? 1 : 0;
    } else {
      ++others;
      wrong_others += differs;
    }
  }
  CHECK(rows >= 16);
  CHECK(wrong <= 0.05 * rows);
  CHECK(slow_rows == 2);
  CHECK(found >= 1);  // one of the layer's two passes is enough: 20 rounds may not decide both
  CHECK(faster == 0);
  CHECK(others == rows - slow_rows);
  CHECK(wrong_others <= 0.05 * others);
}
