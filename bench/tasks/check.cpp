// Gradients of networks against differences, with the verdict of the library.

#include "check.h"

#include <fmt/format.h>

#include "bench/io/text.h"
#include "lamina/error.h"

namespace lamina::bench {

int check_networks(Session& session, const CheckOptions& options, const Print& print) {
  bool right = true;
  for (const Config& c : configs(session.backends, options.configs, options.net, options.networks)) try {
      GradientCheck how = options.how;
      how.progress = [&c](const std::string& next) { show_step(fmt::format("{}: {}", to_string(c), next)); };
      if (const TensorFile weights = session.plans.weights(c); !weights.empty())
        how.start = [weights](Plan& plan) { load_weights(plan, weights); };
      const GradientReport report = check_gradients(session.plans.graph(c), session.backends.usable(c.backend),
                                                    session.plans.options(c, Mode::training), how);
      clear_step();
      print(fmt::format("{}, {}:\n{}", to_string(c), to_string(c.dtype), to_string(report)));
      right = report.passed() && right;
    } catch (const Unsupported& error) {
      clear_step();
      print(fmt::format("{}: not supported: {}\n", to_string(c), error.what()));
      right = false;
    }
  return right ? 0 : 1;
}

}  // namespace lamina::bench
