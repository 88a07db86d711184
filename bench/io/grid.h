#pragma once
// A table of texts, printed in columns, as CSV or as Markdown.

#include <string>
#include <vector>

namespace lamina::bench {

enum class Format { text, csv };

struct Grid {
  struct Column {
    std::string title;
    bool number = false;  ///< numbers stand to the right
  };
  std::vector<Column> columns{};
  std::vector<std::vector<std::string>> rows{};

  std::string text() const;
  std::string csv(bool titled = true) const;  ///< RFC 4180
  std::string markdown() const;
  std::string print(Format format) const { return format == Format::csv ? csv() : text(); }
};

}  // namespace lamina::bench
