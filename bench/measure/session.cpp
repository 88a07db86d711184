// What a subcommand measures with: one network on one backend, its graph and plans, and what backends reach.

#include "session.h"

#include <utility>

#include "lamina/tuning.h"

namespace lamina::bench {

Plans::Plans(NetSettings net, PlanSettings settings) : net_(std::move(net)), settings_(std::move(settings)) {
  if (settings_.choice.measure) tuner_ = make_tuner(settings_.choice_cache);
}

nets::Protocol Plans::protocol(const std::string& network) const {
  nets::Protocol protocol = bench::network(network, net_).protocol;
  protocol.softmax = net_.softmax.value_or(protocol.softmax);
  protocol.input_gradient = settings_.input_gradient.value_or(protocol.input_gradient);
  protocol.accumulate = settings_.accumulate.value_or(protocol.accumulate);
  return protocol;
}

Options Plans::options(const Config& c, Mode mode) const {
  Options plan;
  plan.mode = mode;
  plan.dtype = c.dtype;
  plan.layout = c.layout;
  plan.fuse = settings_.fuse;
  plan.choice = settings_.choice;
  plan.tuner = tuner_;
  if (mode == Mode::training) {
    const nets::Protocol its = protocol(c.network);
    plan.keep = settings_.keep;
    plan.input_gradient = its.input_gradient;
    plan.accumulate_parameters = its.accumulate;
  }
  return plan;
}

}  // namespace lamina::bench
