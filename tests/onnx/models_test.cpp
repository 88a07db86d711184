// Reads the models of tests/data/onnx_models.txt. The head of that file describes its format.

#include <fstream>
#include <sstream>

#include "lamina/error.h"
#include "read_model.h"
#include "tests/io/allocations.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace lamina::test;

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

OnnxOptions options_of(const std::string& words) {
  OnnxOptions options;
  for (const std::string& word : split(words, " ")) {
    const std::string name = word.substr(0, word.find('=')), value = word.substr(word.find('=') + 1);
    if (name == "training") {
      options.training = true;
    } else if (name == "output") {
      options.output = value;
    } else if (value == "yes" || value == "no") {
      options.trains[name] = value == "yes";
    } else if (name == "batch") {
      options.batch = std::stoi(value);
    } else if (name == "numbers") {
      options.most_computed_numbers = std::stoi(value);
    } else if (name.ends_with(".batch")) {
      options.batch_axes[name.substr(0, name.size() - 6)] = std::stoi(value);
    } else {
      options.extents[name.substr(1, name.size() - 2)] = std::stoi(value);
    }
  }
  return options;
}

/// Reading `text` must fail with an error of this kind that has `says` and the file's path. Memory must be in
/// proportion to the file.
template <class Kind>
void check_error(const std::string& text, const std::string& says, const OnnxOptions& options) {
  const Folder folder;
  write(folder / "four.bin", "four");
  std::filesystem::create_symlink(std::filesystem::absolute(data("onnx_models.txt")), folder / "link.bin");
  const std::string bytes = bytes_of(text);
  write(folder / "net.onnx", bytes);
  largest_allocation_bytes = 0;
  const std::string said = said_by<Kind>([&] { read_onnx(folder / "net.onnx", options); });
  if (std::is_same_v<Kind, FileError>) CHECK(largest_allocation_bytes < 16 * bytes.size() + 65536);
  CHECK_THAT(said, ContainsSubstring(folder.path().string()));
  for (const std::string& each : split(says, "&")) {
    const bool lacks = each.starts_with("without ");
    CAPTURE(each, said);
    CHECK((said.find(lacks ? each.substr(8) : each) == said.npos) == lacks);
  }
}

/// Checks one expectation of a model. `with` makes the model with other parts.
template <class With>
void check(const std::string& text, std::string expected, With with) {
  OnnxOptions options;
  if (const std::size_t end = expected.find(": "); expected.starts_with("for ")) {
    options = options_of(expected.substr(4, end - 4));
    expected.erase(0, end + 2);
  }
  const std::size_t space = expected.find(' ');
  const std::string kind = expected.substr(0, space), rest = space == expected.npos ? "" : expected.substr(space + 1);
  if (kind == "refused:") return check_error<Unsupported>(text, rest, options);
  if (kind == "invalid:") return check_error<FileError>(text, rest, options);
  if (kind == "usage:") return check_error<UsageError>(text, rest, options);
  const OnnxModel model = read(text, options);
  const Graph& graph = model.graph;
  if (kind == "trains:") {
    CHECK("trains:" + names(graph.parameters()) == expected);
    CHECK(model.weights.size() == graph.parameters().size() + graph.states().size());
  } else if (kind == "states:") {
    CHECK("states:" + names(graph.states()) == expected);
  } else if (kind == "notes:") {
    const Names wanted = rest.empty() ? Names{} : split(rest, "&");
    REQUIRE(model.notes.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK_THAT(model.notes[i], ContainsSubstring(wanted[i]));
  } else if (kind == "takes:") {
    const OnnxValue& input = model.inputs.at(0);
    CHECK("[" + lamina::test::text(input.extents) + "] as " + to_string(graph.node(input.node).shape) == rest);
  } else if (expected.starts_with('[')) {
    CHECK("[" + lamina::test::text(model.output.extents) + "]" == expected);
  } else if (kind == "=") {
    check_numbers(output_of(model), rest);
  } else if (kind == "written") {
    check_written(graph);
  } else if (kind == "as:") {
    CHECK(output_of(model) == output_of(read(with(rest), options)));
  } else if (kind == "about:") {
    const Values y = output_of(model), wanted = output_of(read(with(rest), options));
    REQUIRE(y.size() == wanted.size());
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(wanted[i]).epsilon(1e-14));
  } else if (rest.starts_with("= ")) {
    check_numbers(model.weights.at(kind).values, rest.substr(2));
  } else {
    std::string found;
    for (const Node& node : graph.nodes())
      if (!std::holds_alternative<Input>(node.op)) found += "; " + node.name + " " + to_string(node.op);
    CHECK(found.substr(std::min<std::size_t>(found.size(), 2)) == expected);
  }
}

}  // namespace

TEST_CASE("each model of onnx_models.txt is read or refused as the file says") {
  std::ifstream file(data("onnx_models.txt"));
  std::string line, what, model;
  bool is_told = true;  // whether the lines so far have an expectation
  int checked = 0;
  const auto with = [&](const std::string& parts) {
    std::string text = model;
    std::size_t at = 0;
    for (const std::string& part : split(parts, "&")) {
      if (at = text.find('@', at); at == text.npos) break;
      text.replace(at, 1, part);
      at += part.size();
    }
    return text;
  };
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
      const std::string text = with(line.substr(0, arrow));
      CAPTURE(what, text);
      for (const std::string& expected : split(line.substr(arrow + 2), "|")) CHECK_NOTHROW(check(text, expected, with));
      ++checked;
    }
  }
  CHECK(checked > 400);
}
