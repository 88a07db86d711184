// A table of texts, printed in columns, as CSV or as Markdown.

#include "grid.h"

#include <fmt/format.h>

#include <algorithm>

namespace lamina::bench {
namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

std::string escaped(const std::string& cell) {
  std::string text;
  for (const char c : cell) text += c == '|' ? "\\|" : std::string(1, c);
  return text;
}

std::vector<std::string> titles(const Grid& grid) {
  std::vector<std::string> row;
  for (const Grid::Column& column : grid.columns) row.push_back(column.title);
  return row;
}

}  // namespace

std::string Grid::text() const {
  std::vector<std::size_t> width;
  for (const Column& column : columns) width.push_back(column.title.size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string cells;
    for (std::size_t i = 0; i < row.size(); ++i)
      cells +=
          columns[i].number ? fmt::format("{:>{}}  ", row[i], width[i]) : fmt::format("{:<{}}  ", row[i], width[i]);
    cells.erase(cells.find_last_not_of(' ') + 1);
    text += cells + "\n";
  };
  line(titles(*this));
  for (const auto& row : rows) line(row);
  return text;
}

std::string Grid::csv(bool titled) const {
  std::string text;
  const auto line = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ",";
      text += quoted(row[i]);
    }
    text += "\n";
  };
  if (titled) line(titles(*this));
  for (const auto& row : rows) line(row);
  return text;
}

std::string Grid::markdown() const {
  std::string text;
  const auto line = [&](const std::vector<std::string>& row) {
    for (const std::string& cell : row) text += fmt::format("| {} ", escaped(cell));
    text += "|\n";
  };
  line(titles(*this));
  for (const Column& column : columns) text += column.number ? "|---:" : "|---";
  text += "|\n";
  for (const auto& row : rows) line(row);
  return text;
}

}  // namespace lamina::bench
