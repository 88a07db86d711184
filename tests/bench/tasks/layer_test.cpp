// Single layers, given by the fields of their ops.

#include <map>
#include <set>

#include "bench/tasks/frontier.h"
#include "tests/bench/doubles/odd_backend.h"
#include "tests/bench/ended.h"
#include "tests/support/csv.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a layer has one table of every algorithm of every backend, with costs, the picks and the reasons") {
  FrontierOptions options;
  options.net.layers = {
      {.name = "a layer", .op = Conv{.channels = 6, .kernel = 3, .stride = 2, .groups = 2}, .x = {2, 8, 9, 9}}};
  options.networks = {"a layer"};
  options.backends.names = {"eigen", "cuda-host"};
  options.format = Format::csv;
  options.passes = 1;
  Session session(options);
  for (const std::string& name : options.backends.names) {
    auto odd = std::make_unique<test::Odd>();
    odd->workspace = name == "eigen" ? 1 << 20 : 1 << 21;
    odd->deterministic = false;
    session.backends.put(name, std::move(odd));
  }
  std::vector<std::string> tables;
  frontiers(session, options, [&tables](const std::string& text) { tables.push_back(text); });
  REQUIRE(tables.size() == 1);
  std::map<std::string, int> picked, by_rule, refused;
  for (const test::CsvRow& row : test::csv_rows(tables[0])) {
    CAPTURE(row.at("backend"), row.at("pass"), row.at("algorithm"));
    const std::string place = row.at("backend") + " " + row.at("pass"), remark = row.at("remark");
    picked[place] += remark.starts_with("picked");
    by_rule[place] += remark.find("by rule: ") != std::string::npos;
    refused[place] += remark.starts_with("not supported: ");
    if (row.at("algorithm") != "odd") continue;
    CHECK(row.at("workspace MiB") == (row.at("backend") == "eigen" ? "1.00" : "2.00"));
    CHECK(row.at("deterministic") == "no");
    // "not compared" if the machine was so busy that "odd" ran only once
    CHECK_THAT(row.at("same bits"), !ContainsSubstring("no in "));
    CHECK(std::stod(row.at("error")) < std::stod(row.at("guaranteed")));
  }
  CHECK(picked.size() == 6);
  for (const auto& [place, count] : picked) CHECK((count == 1 && by_rule[place] == 1 && refused[place] == 2));
}

TEST_CASE("each layer of a file is measured in all of its passes, and each result has the command that repeats it") {
  const test::Folder folder;
  const std::string out = folder.file("out.json");
  const std::set<std::string> both = {"forward", "backward_data"},
                              all = {"forward", "backward_data", "backward_params"};
  const std::vector<std::pair<std::string, std::set<std::string>>> layers = {
      {"conv --input=2x8x9x9 --channels=6 --kernel=3x1 --pad=1x0 --dilation=1x2 --groups=2 --bias=false", all},
      {"fully_connected --input=2x8x3x3 --outputs=5", all},
      {"max_pool --input=2x8x9x9 --window=3 --stride=2 --rounding=up", both},
      {"average_pool --input=2x8x9x9 --window=3x2 --stride=2 --pad=1 --count_padding=true", both},
      {"batch_norm --input=2x8x9x9 --epsilon=1e-3", all},
      {"lstm --input=2x4x5x1 --hidden=3 --steps=last --reverse=true", all}};
  std::string lines = "# of all ops\n\n";
  for (const auto& [line, passes] : layers) lines += line + "  # as typed\n";
  test::write(folder / "layers.txt", lines);
  const std::string arguments = "layers " + folder.file("layers.txt") + " --backend=eigen --passes=1 --format=csv";
  std::map<std::string, std::set<std::string>> found;
  for (const test::CsvRow& row :
       test::csv_rows(test::run_bench(arguments + " --benchmark_out=" + out, test::Outputs::standard).said))
    found[row.at("layer")].insert(row.at("pass"));
  const nlohmann::json written = test::read(out)["frontiers"];
  REQUIRE(written.size() == layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    CHECK(written[i]["rerun"] == "lamina_bench " + layers[i].first + " --backend=eigen --passes=1");
    CHECK(written[i]["key"]["batch"] == 2);
    CHECK(found[written[i]["key"]["network"]] == layers[i].second);
  }
}
