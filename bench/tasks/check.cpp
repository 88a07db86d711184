// Gradients of networks against differences, with the verdict of the library.

#include "check.h"

#include <fmt/format.h>

#include "bench/io/step_line.h"

namespace lamina::bench {

bool check_graph(const std::string& title, const Graph& graph, Backend& backend, const Options& options,
                 const GradientCheck& how, const Print& print) {
  const GradientReport report = check_gradients(graph, backend, options, how);
  clear_step();
  print(fmt::format("{}, {}:\n{}", title, to_string(options.dtype), to_string(report)));
  return report.passed();
}

int check_networks(Session& session, const CheckOptions& options, const Print& print) {
  bool right = true;
  for (const Config& c : configs(session.backends, options.configs, options.net, options.networks)) {
    GradientCheck how = options.how;
    how.progress = [&c](const std::string& next) { show_step(fmt::format("{}: {}", to_string(c), next)); };
    if (const TensorFile weights = session.plans.weights(c); !weights.empty())
      how.start = [weights](Plan& plan) { load_weights(plan, weights); };
    right = check_graph(to_string(c), session.plans.graph(c), session.backends.usable(c.backend),
                        session.plans.options(c, Mode::training), how, print) &&
            right;
  }
  return right ? 0 : 1;
}

}  // namespace lamina::bench
