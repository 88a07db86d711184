#pragma once
// The place of the tests' data.

#include <string>

namespace lamina::test {

/// The path of `name` in tests/data: in the source tree, or in the folder that the variable LAMINA_TEST_DATA names on a
/// machine without the sources. The path is compiled into one file, so that a compiler cache serves build trees in all
/// places.
std::string data(const std::string& name = {});

}  // namespace lamina::test
