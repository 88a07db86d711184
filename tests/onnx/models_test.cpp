// The models of tests/data/onnx_models.txt, which says how each is written and what is expected of it.

#include <fstream>
#include <sstream>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

Names split(const std::string& text, const std::string& separator) {
  Names parts;
  for (std::size_t begin = 0, end = 0; end != text.npos; begin = end + separator.size()) {
    end = text.find(separator, begin);
    std::string part = text.substr(begin, end == text.npos ? end : end - begin);
    part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
    part.erase(part.find_last_not_of(' ') + 1);
    parts.push_back(part);
  }
  return parts;
}

void check_numbers(const Values& numbers, const std::string& expected) {
  std::istringstream words(expected);
  std::string word;
  for (std::size_t i = 0; i < numbers.size() && words >> word; ++i) {
    const double wanted = std::stod(word);
    CHECK((numbers[i] == wanted || numbers[i] == Approx(wanted).epsilon(1e-14) ||
           (std::isnan(numbers[i]) && std::isnan(wanted))));
  }
  CHECK(std::ssize(split(expected, " ")) == std::ssize(numbers));
}

template <class Kind>
void check_error(const std::string& text, const std::string& says) {
  CHECK_THROWS_AS(read(text), Kind);
  CHECK_THROWS_WITH(read(text), ContainsSubstring(says));
}

void check(const std::string& text, const std::string& expected) {
  const std::string kind = expected.substr(0, expected.find(' ')), rest = expected.substr(expected.find(' ') + 1);
  if (kind == "refused:") return check_error<Unsupported>(text, rest);
  if (kind == "invalid:") return check_error<FileError>(text, rest);
  const OnnxModel model = read(text);
  std::string found;
  if (kind == "trains:") {
    for (const Stored& its : model.graph.parameters()) found += " " + its.name;
    CHECK("trains:" + found == expected);
  } else if (expected.starts_with('[')) {
    CHECK("[" + lamina::test::text(model.output.extents) + "]" == expected);
  } else if (kind == "=") {
    check_numbers(output_of(model), rest);
  } else if (rest.starts_with("= ")) {
    check_numbers(model.weights.at(kind).values, rest.substr(2));
  } else {
    for (const Node& node : model.graph.nodes())
      if (!std::holds_alternative<Input>(node.op)) found += "; " + node.name + " " + to_string(node.op);
    CHECK(found.substr(std::min<std::size_t>(found.size(), 2)) == expected);
  }
}

}  // namespace

TEST_CASE("each model of onnx_models.txt becomes what is said there, or is refused as it is said") {
  std::ifstream file(data("onnx_models.txt"));
  std::string line, what, model;
  bool is_told = true;  // whether the model has been used
  int checked = 0;
  while (std::getline(file, line) && !line.starts_with("----")) continue;
  while (std::getline(file, line)) {
    const std::size_t arrow = line.find("->");
    if (!line.starts_with(' ')) {
      what = line;
    } else if (arrow == line.npos) {
      model = (is_told ? "" : model) + line + "\n";
      is_told = false;
    } else {
      is_told = true;
      std::string text = model;
      for (const std::string& part : split(line.substr(0, arrow), "&"))
        if (const std::size_t at = text.find('@'); at != text.npos) text.replace(at, 1, part);
      CAPTURE(what, text);
      for (const std::string& expected : split(line.substr(arrow + 2), "|")) CHECK_NOTHROW(check(text, expected));
      ++checked;
    }
  }
  CHECK(checked > 150);
}
