// Catch's own code, and the function that runs the cases of a test binary. main() is in another file, so that programs
// with their own main() can link this file.

#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // Catch2 2 needs it for listeners
#include "tests/support/catch.h"

#include <chrono>
#include <cstdio>

namespace {

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

/// After a run of more than ten cases, prints the ten slowest.
class Slowest final : public Listener {
 public:
  using Listener::Listener;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    name_ = info.name;
    start_ = Clock::now();
  }
  void testCaseEnded(const Catch::TestCaseStats&) override {
    cases_.emplace_back(std::chrono::duration<double>(Clock::now() - start_).count(), name_);
  }
  void testRunEnded(const Catch::TestRunStats&) override {
    constexpr std::size_t most = 10;
    if (cases_.size() <= most) return;
    std::partial_sort(cases_.begin(), cases_.begin() + most, cases_.end(), std::greater<>());
    std::fprintf(stderr, "the slowest of %zu cases:\n", cases_.size());
    for (std::size_t i = 0; i < most; ++i)
      std::fprintf(stderr, "%8.2f s  %s\n", cases_[i].first, cases_[i].second.c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string name_;
  Clock::time_point start_;
  std::vector<std::pair<double, std::string>> cases_;
};

CATCH_REGISTER_LISTENER(Slowest)

}  // namespace

int run_cases(int argc, char* argv[]);  // only main.cpp calls it
int run_cases(int argc, char* argv[]) { return Catch::Session().run(argc, argv); }
