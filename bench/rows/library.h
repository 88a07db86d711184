#pragma once
// Where versions of Google Benchmark differ: 1.7 knows one kind of failed row, later ones tell skipped from failed.

#include <benchmark/benchmark.h>

#include <string>

namespace lamina::bench {

template <class Run>
bool failed(const Run& run) {
  if constexpr (requires { run.error_occurred; })
    return run.error_occurred;
  else
    return run.skipped != decltype(run.skipped){};
}

template <class Run>
const std::string& failure_text(const Run& run) {
  if constexpr (requires { run.error_message; })
    return run.error_message;
  else
    return run.skip_message;
}

template <class Run>
void set_failed(Run& run, const std::string& text) {
  if constexpr (requires { run.error_occurred; }) {
    run.error_occurred = true;
    run.error_message = text;
  } else {
    run.skipped = static_cast<decltype(run.skipped)>(2);  // internal::SkippedWithError, a name that 1.7 lacks
    run.skip_message = text;
  }
}

/// Ends a row that rightly cannot run. Where the library has one kind of failure only, the text alone tells.
template <class State>
void skip(State& state, const std::string& text) {
  if constexpr (requires { state.SkipWithMessage(text); })
    state.SkipWithMessage(text);
  else
    state.SkipWithError(text.c_str());
}

}  // namespace lamina::bench
