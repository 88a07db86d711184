// The folder of the tests' data.

#include "tests/support/data.h"

#include <cstdlib>

namespace lamina::test {

std::string data(const std::string& name) {
  const char* const named = std::getenv("LAMINA_TEST_DATA");
  return std::string(named == nullptr ? LAMINA_TEST_DATA : named) + "/" + name;
}

}  // namespace lamina::test
