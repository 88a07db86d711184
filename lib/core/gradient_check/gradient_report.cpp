// The result of a gradient check, and its text.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>

#include "lamina/gradient_check.h"

namespace lamina {
namespace {

/// "0.123457"
std::string text_of(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", number);
  return text.data();
}

}  // namespace

double GradientError::times() const {
  const double error = std::abs(difference - gradient);
  if (probes == 0 || !std::isfinite(error) || !std::isfinite(tolerance)) return std::numeric_limits<double>::infinity();
  return error == 0 ? 0 : error / tolerance;
}

bool GradientReport::passed() const { return !tensors.empty() && std::ranges::all_of(tensors, &GradientError::passed); }

const GradientError& GradientReport::worst() const {
  return *std::ranges::max_element(tensors, {}, &GradientError::times);
}

std::string to_string(const GradientReport& report) {
  std::string text;
  int probes = 0, skipped = 0, unseen = 0, failed = 0, wrong = 0;
  for (const GradientError& one : report.tensors) {
    probes += one.probes;
    skipped += one.skipped;
    unseen += one.seen || one.probes == 0 ? 0 : 1;
    failed += one.passed() ? 0 : 1;
    wrong += one.passed() || one.probes == 0 ? 0 : 1;
    if (one.passed()) continue;
    text += one.tensor + one.place + ": ";
    if (one.probes == 0)
      text += "every step meets a kink; give another seed or a smaller batch\n";
    else
      text += "gradient " + text_of(one.gradient) + ", by differences " + text_of(one.difference) + ", tolerance " +
              text_of(one.tolerance) + (one.place.empty() ? ", along a direction\n" : "\n");
  }
  const auto tensors = [](std::size_t count) { return std::to_string(count) + (count == 1 ? " tensor" : " tensors"); };
  text += report.passed() ? "passed: " + tensors(report.tensors.size())
                          : (wrong > 0 ? "failed: " : "undecided: ") + std::to_string(failed) + " of " +
                                tensors(report.tensors.size());
  text += ", " + std::to_string(probes) + " derivatives";
  if (skipped > 0) text += ", " + std::to_string(skipped) + " left out at kinks";
  if (report.passed())
    text += "; the worst: " + report.worst().tensor + ", " + text_of(report.worst().times()) + " times its tolerance";
  if (unseen > 0)
    text += "; " + tensors(static_cast<std::size_t>(unseen)) + " with a gradient below its tolerance: 0 would pass";
  return text + "\n";
}

}  // namespace lamina
