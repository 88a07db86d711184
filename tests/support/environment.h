#pragma once
// Sets an environment variable during a test.

#include <cstdlib>
#include <string>

namespace lamina::test {

/// Sets the variable, or unsets it if the value is null. The destructor restores the old state.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name); before != nullptr) had_ = true, before_ = before;
    set(value);
  }
  ~Variable() { set(had_ ? before_.c_str() : nullptr); }
  Variable(const Variable&) = delete;  // each object restores the state that it replaced
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) {
    if (value == nullptr)
      ::unsetenv(name_);
    else
      ::setenv(name_, value, 1);
  }
  const char* name_;
  bool had_ = false;
  std::string before_;
};

}  // namespace lamina::test
