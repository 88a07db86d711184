#pragma once
// Reads tables in CSV: the first line has the names of columns, and fields may be quoted.

#include <fstream>
#include <istream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamina::test {

using CsvRow = std::map<std::string, std::string>;

inline std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ',' && !quoted) {
      fields.emplace_back();
    } else if (letter != '\r') {
      fields.back() += letter;
    }
  }
  return fields;
}

/// The rows of a stream, as maps from column name to field. Throws an error with `origin` if a row has too few or too
/// many fields.
inline std::vector<CsvRow> read_csv(std::istream& file, const std::string& origin) {
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = csv_fields(line);

  std::vector<CsvRow> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = csv_fields(line);
    if (fields.size() != names.size()) throw std::runtime_error(origin + ": not as many fields as columns: " + line);
    CsvRow row;
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = fields[i];
    rows.push_back(row);
  }
  return rows;
}

/// The rows of a text.
inline std::vector<CsvRow> csv_rows(const std::string& text) {
  std::istringstream stream(text);
  return read_csv(stream, "the text");
}

/// The rows of a file.
inline std::vector<CsvRow> read_csv(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  return read_csv(file, path);
}

}  // namespace lamina::test
