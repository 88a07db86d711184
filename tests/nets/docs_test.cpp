// The table in docs/networks.md is compared with the networks.

#include <fstream>
#include <sstream>

#include "lamina/nets.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace lamina;

namespace {

/// The cells of a line "| a | b |", without spaces, backquotes and commas in numbers.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  std::istringstream stream(line.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) {
    std::erase_if(cell, [](char letter) { return letter == ' ' || letter == '`' || letter == ','; });
    result.push_back(cell);
  }
  return result;
}

}  // namespace

TEST_CASE("the table in docs/networks.md describes the networks") {
  std::ifstream page(test::data("../../docs/networks.md"));
  REQUIRE(page);
  std::vector<std::vector<std::string>> table;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| `")) table.push_back(cells(line));

  REQUIRE(table.size() == nets::list().size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    const nets::Info& info = nets::list()[i];
    const Graph graph = nets::build(info.name, {.batch = 1});
    const std::string image = std::to_string(info.image);
    CAPTURE(std::string(info.name));
    REQUIRE(table[i].size() == 7);
    CHECK(table[i][0] == info.name);
    CHECK(table[i][2] == std::to_string(info.channels) + 'x' + image + 'x' + image);
    CHECK(table[i][3] == std::to_string(info.smallest_image));
    CHECK(table[i][4] == std::to_string(info.classes));
    CHECK(table[i][5] == std::to_string(graph.parameter_count()));
    CHECK(table[i][6] == std::to_string(graph.multiply_adds()));
  }
}
