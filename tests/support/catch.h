#pragma once
// The header that every test includes. It has Catch2 2 or 3 with the names of Catch2 3, the headers of the standard
// library that most tests use, the library's errors, and matchers for their texts.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamina/error.h"

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>

namespace Catch::Matchers {
inline auto ContainsSubstring(const std::string& text) { return Contains(text); }
template <class T>
using MatcherBase = Catch::MatcherBase<T>;
}  // namespace Catch::Matchers
#endif

namespace lamina {

using Catch::Matchers::ContainsSubstring;

/// Matches an error whose text has all of these parts: CHECK_THROWS_MATCHES(plan.run(), UsageError, Says("a", "b")).
class Says final : public Catch::Matchers::MatcherBase<std::exception> {
 public:
  template <class... Part>
  explicit Says(const Part&... parts) : parts_{std::string(parts)...} {}
  bool match(const std::exception& error) const override {
    const std::string text = error.what();
    return std::ranges::all_of(parts_, [&](const std::string& part) { return text.find(part) != std::string::npos; });
  }
  std::string describe() const override { return "says " + Catch::Detail::stringify(parts_); }

 private:
  std::vector<std::string> parts_;
};

namespace test {

using namespace lamina;  // a test that uses this namespace has the library's names, too

/// Whether a call throws an error of this kind. An error of another kind is not caught.
template <class Error, class Call>
bool throws(const Call& call) {
  try {
    call();
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// The text of the error that a call throws. An error of another kind is not caught.
template <class Error, class Call>
std::string said_by(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace test
}  // namespace lamina
