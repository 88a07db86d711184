// The result of a gradient check, and its text.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <locale>
#include <sstream>

#include "lamina/gradient_check.h"

namespace lamina {

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
  std::ostringstream text;
  text.imbue(std::locale::classic());
  int probes = 0, skipped = 0, unseen = 0, failed = 0, wrong = 0;
  for (const GradientError& one : report.tensors) {
    probes += one.probes;
    skipped += one.skipped;
    unseen += one.seen || one.probes == 0 ? 0 : 1;
    failed += one.passed() ? 0 : 1;
    wrong += one.passed() || one.probes == 0 ? 0 : 1;
    if (one.passed()) continue;
    text << one.tensor << one.place << ": ";
    if (one.probes == 0)
      text << "every step meets a kink; give another seed or a smaller batch\n";
    else
      text << "gradient " << one.gradient << ", by differences " << one.difference << ", tolerance " << one.tolerance
           << (one.place.empty() ? ", along a direction\n" : "\n");
  }
  const auto tensors = [](std::size_t count) { return std::to_string(count) + (count == 1 ? " tensor" : " tensors"); };
  if (!report.passed()) text << (wrong > 0 ? "failed: " : "undecided: ") << failed << " of ";
  text << (report.passed() ? "passed: " : "") << tensors(report.tensors.size()) << ", " << probes << " derivatives";
  if (skipped > 0) text << ", " << skipped << " left out at kinks";
  if (report.passed())
    text << "; the worst: " << report.worst().tensor << ", " << report.worst().times() << " times its tolerance";
  if (unseen > 0)
    text << "; " << tensors(static_cast<std::size_t>(unseen)) << " with a gradient below its tolerance: 0 would pass";
  text << "\n";
  return text.str();
}

}  // namespace lamina
