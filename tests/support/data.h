#pragma once
// The folder of the tests' data.

#include <string>

namespace lamina::test {

/// The path of `name` in tests/data. On a machine without the sources, the environment variable LAMINA_TEST_DATA is the
/// folder. Only data.cpp contains the path of the sources, so that a compiler cache works for build trees in any
/// folder.
std::string data(const std::string& name = {});

}  // namespace lamina::test
