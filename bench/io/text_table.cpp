// A table of texts, printed in columns or as CSV.

#include "text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lamina::bench {
namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

std::vector<std::string> titles(const TextTable& table) {
  std::vector<std::string> row;
  for (const TextTable::Column& column : table.columns) row.push_back(column.title);
  return row;
}

}  // namespace

std::string TextTable::text() const {
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

std::string TextTable::csv(bool titled) const {
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

TextTables::TextTables(Format format, std::vector<TextTable::Column> of, std::vector<TextTable::Column> columns)
    : csv_(format == Format::csv), table_{std::move(columns)} {
  if (csv_) table_.columns.insert(table_.columns.begin(), of.begin(), of.end());
}

void TextTables::add(const std::vector<std::string>& of, std::vector<std::string> cells) {
  if (csv_) cells.insert(cells.begin(), of.begin(), of.end());
  table_.rows.push_back(std::move(cells));
}

std::string TextTables::take() {
  std::string text = csv_ ? table_.csv(std::exchange(titled_, false)) : table_.text();
  table_.rows.clear();
  return text;
}

}  // namespace lamina::bench
