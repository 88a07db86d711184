// Tables: their cells, and samples in cells.

#include "bench/rows/runner.h"

#include "bench/io/text.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The rows of a network's training, and their outcome.
struct Measured {
  explicit Measured(const char* network) {
    outcome.samples = {{{0.1, 0.2}, {0.3, 0.6}}, {{0.2, 0.4}, {0.2, 0.4}}, {{0.3, 0.6}, {0.5, 1.0}}};
    outcome.memory.arena = 3 << 20;
    group.config = {network, "eigen"};
    group.parts = {"forward", "backward", "total"};
  }
  Row row(std::size_t part) const { return {group.parts[part], shared, part}; }

  Group group;
  Outcome outcome;
  std::shared_ptr<const Group> shared{&group, [](const Group*) {}};
};

}  // namespace

TEST_CASE("a line of the table has the mean of its passes, and appears with the total") {
  Measured its("resnet50");
  REQUIRE(table_line(its.row(0), its.outcome).empty());
  REQUIRE(table_line(its.row(1), its.outcome).empty());
  const std::string line = table_line(its.row(2), its.outcome);
  for (const char* cell : {"resnet50", "200.00", "400.00", "141.42", "40.0", " 3"})
    REQUIRE_THAT(line, ContainsSubstring(cell));
}

TEST_CASE("the line of a network that failed says why") {
  Measured its("resnet50");
  for (auto& samples : its.outcome.samples) samples.clear();
  its.outcome.failure = "OutOfMemory: 7 bytes | wanted";
  REQUIRE_THAT(table_line(its.row(2), its.outcome), ContainsSubstring("7 bytes"));
}

TEST_CASE("special characters in cells are escaped in CSV, and columns are aligned in text") {
  const TextTable table{{"name", ">n"}, {{"a,b", "1"}, {"c\"d", "23"}}};
  REQUIRE(table.csv() == "name,n\n\"a,b\",1\n\"c\"\"d\",23\n");
  REQUIRE(table.text() == "name   n\na,b    1\nc\"d   23\n");
}

TEST_CASE("as text each network has its own table, and as CSV one table names the network in its first columns") {
  TextTables text(Format::text, {"of"}, {"n"}), csv(Format::csv, {"of"}, {"n"});
  for (TextTables* tables : {&text, &csv}) tables->add({"a"}, {"1"});
  CHECK(text.take("a:", "end\n") == "a:\n\nn\n1\nend\n");
  CHECK(csv.take("a:", "end\n") == "of,n\na,1\n");
  for (TextTables* tables : {&text, &csv}) tables->add({"b"}, {"2"});
  CHECK(text.take("b:") == "\nb:\n\nn\n2\n");
  CHECK(csv.take("b:") == "b,2\n");
}

TEST_CASE("the mean and deviation of samples") {
  REQUIRE(mean({1, 2, 6}) == 3);
  REQUIRE(deviation({1, 3}) == Approx(std::sqrt(2)));
  REQUIRE(deviation({1}) == 0);
}
