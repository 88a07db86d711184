// Values in files of the system.

#include "system_file.h"

#include <cstdlib>
#include <fstream>

namespace lamina {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<double> number_in(const std::filesystem::path& path) {
  const std::string line = first_line(path);
  char* end = nullptr;
  const double value = std::strtod(line.c_str(), &end);
  return end == line.c_str() ? std::nullopt : std::optional(value);
}

}  // namespace lamina
