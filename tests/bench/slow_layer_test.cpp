// A program against itself, and against one of whose layers takes 5 % longer, by the clock of this machine: in turns
// and for some minutes, while nothing else runs.

#include "ended.h"

using Catch::Matchers::ContainsSubstring;
using namespace lamina::test;

TEST_CASE("of rows by the same program at least 95 % are equal, and the layer that is slower by 5 % is named") {
  const Folder folder;
  const std::string out = folder.file("rows.json");
  for (const char* name : {"first", "same", "slow"})
    std::filesystem::create_symlink(LAMINA_SLOW_LAYER, folder.path() / name);
  ::setenv("LAMINA_SLOW_FILTERS", "64x64x3x3", 1);
  const Ended ended = run_program(
      LAMINA_VERSIONS, "--programs=" + folder.file("first") + "," + folder.file("same") + "," + folder.file("slow") +
                           " --backend=eigen --threads=1 --rounds=20 --passes=40 --batch=8 --image=112 "
                           "'--benchmark_filter=^layer/resnet18/.*conv./(forward|backward_params)/eigen/default/' "
                           "--out=" +
                           out);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  int rows = 0, equal = 0, slow_rows = 0, found = 0, elsewhere = 0;
  const nlohmann::json result = read(out);
  for (const auto& each : result.at("comparisons")) {
    const std::string row = each.at("name"), verdict = each.at("verdict"), label = each.at("regression");
    const bool slow = each.at("variant") == folder.file("slow");
    if (!slow) {
      ++rows;
      equal += verdict == "equal" ? 1 : 0;
    } else if (row.find("/layer1.0.conv1/") != std::string::npos) {
      ++slow_rows;
      found += verdict == "slower" && label == "kernel" ? 1 : 0;
    } else {
      elsewhere += verdict == "equal" ? 0 : 1;
    }
  }
  CHECK(rows >= 16);
  CHECK(equal >= 0.95 * rows);
  CHECK(slow_rows == 2);
  CHECK(found == slow_rows);
  CHECK(elsewhere <= 0.05 * rows);
}
