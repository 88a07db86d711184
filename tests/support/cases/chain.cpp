// Chains of ops: their stages, and the oracle's results and bounds over all stages.

#include "tests/support/cases/chain.h"

#include "lib/backends/common/lowering.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

namespace lamina::test {
namespace {

/// The terms of a batch norm in inference, from the terms of its x: |f| |x| + |f mean| + |shift|.
void scale_terms(Values& terms, const Stage& stage, const Feed& feed) {
  const Shape& x = stage.c.x[0];
  const double epsilon = std::get<BatchNorm>(stage.c.op).epsilon;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto k = static_cast<std::size_t>(static_cast<std::int64_t>(i) / x.plane() % x.c);
    const double scale = feed.w[stage.first_w][k], shift = feed.w[stage.first_w + 1][k];
    const double mean = feed.state[stage.first_state][k], variance = feed.state[stage.first_state + 1][k];
    const double factor = std::abs(scale) / std::sqrt(variance + epsilon);
    terms[i] = factor * (terms[i] + std::abs(mean)) + std::abs(shift);
  }
}

}  // namespace

Result by_oracle(const Case& c, const Feed& feed) {
  return run_unit(oracle(), *make_spec(oracle(), c, {}), direct(), feed);
}

std::vector<Stage> stages_of(const Case& c) {
  std::vector<Stage> stages;
  std::size_t extra = 0, w = 0, state = 0;
  const auto add = [&](const Link& link, const std::vector<Shape>& x) {
    const Inferred its = infer(link.op, x);
    const auto operand = static_cast<std::size_t>(link.operand);
    stages.push_back({{"", link.op, x, {}, c.mode}, operand, extra, w, state, its.params.size(), its.state.size()});
    extra += x.size() - (stages.size() > 1 ? 1 : 0);
    w += its.params.size();
    state += its.state.size();
    return its.y;
  };
  Shape y = add({c.op}, c.x);
  for (const Link& link : c.tail) y = add(link, std::vector<Shape>(std::holds_alternative<Add>(link.op) ? 2U : 1U, y));
  return stages;
}

Feed feed_of(const Stage& stage, const Feed& all, const Values* value, const Values& dy) {
  Feed feed;
  for (std::size_t i = 0, extra = stage.first_extra; i < stage.c.x.size(); ++i)
    feed.x.push_back(value != nullptr && i == stage.value_operand ? *value : all.x[extra++]);
  for (std::size_t i = 0; i < stage.params; ++i) feed.w.push_back(all.w[stage.first_w + i]);
  for (std::size_t i = 0; i < stage.states; ++i) feed.state.push_back(all.state[stage.first_state + i]);
  feed.dy = dy;
  return feed;
}

std::vector<Values> forward_values(const std::vector<Stage>& stages, const Feed& feed) {
  std::vector<Values> values;
  for (const Stage& stage : stages) {
    const Values* value = values.empty() ? nullptr : &values.back();
    values.push_back(by_oracle(stage.c, feed_of(stage, feed, value, zeros(infer(stage.c.op, stage.c.x).y))).y);
  }
  return values;
}

Result reference(const Case& c, const Feed& feed) {
  const std::vector<Stage> stages = stages_of(c);
  const std::vector<Values> values = forward_values(stages, feed);
  Result result;
  result.dx.resize(feed.x.size());
  result.dw.resize(feed.w.size());
  result.state.resize(feed.state.size());
  result.y = values.back();
  Values dy = feed.dy;
  for (std::size_t s = stages.size(); s-- > 0;) {
    const Stage& stage = stages[s];
    const Result own = by_oracle(stage.c, feed_of(stage, feed, s == 0 ? nullptr : &values[s - 1], dy));
    for (std::size_t i = 0; i < own.state.size(); ++i) result.state[stage.first_state + i] = own.state[i];
    for (std::size_t i = 0; i < own.dw.size(); ++i) result.dw[stage.first_w + i] = own.dw[i];
    for (std::size_t i = 0, extra = stage.first_extra; i < own.dx.size(); ++i) {
      if (s > 0 && i == stage.value_operand)
        dy = own.dx[i];
      else
        result.dx[extra++] = own.dx[i];
    }
  }
  return result;
}

Bounds chain_bounds(const Case& c, const Feed& feed, const Algorithms& algorithms) {
  const std::vector<Stage> stages = stages_of(c);
  if (stages.size() == 1) return bounds_of(c, feed, algorithms);
  Case head = c;
  head.tail.clear();
  // ReLU and Add pass gradients on exactly, so the head gets the exact dy of the rest of the chain.
  const std::vector<Values> values = forward_values(stages, feed);
  Values dy = feed.dy;
  std::vector<Bound> further;
  for (std::size_t s = stages.size(); s-- > 1;) {
    const Stage& stage = stages[s];
    if (std::holds_alternative<Relu>(stage.c.op))
      for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = values[s - 1][i] > 0 ? dy[i] : 0;
    else if (std::holds_alternative<GlobalAveragePool>(stage.c.op))
      dy = c.mode == Mode::training ? by_oracle(stage.c, feed_of(stage, feed, &values[s - 1], dy)).dx[0]
                                    : Values(values[s - 1].size());
    else if (std::holds_alternative<Add>(stage.c.op))
      further.insert(further.begin(), {absolute(dy), 0});
    else if (is_activation(stage.c.op) && std::holds_alternative<Add>(c.op) && c.mode == Mode::training)
      dy = by_oracle(stage.c, feed_of(stage, feed, &values[s - 1], dy)).dx[0];
    else if (c.mode == Mode::training || !(std::holds_alternative<BatchNorm>(stage.c.op) || is_activation(stage.c.op)))
      FAIL("no bound for a tail of " << to_string(stage.c.op));
  }
  Bounds bounds = bounds_of(head, feed_of(stages[0], feed, nullptr, dy), algorithms);
  for (std::size_t s = 1; s < stages.size(); ++s) {
    if (std::holds_alternative<Add>(stages[s].c.op))
      bounds.y.terms = plus(bounds.y.terms, absolute(feed.x[stages[s].first_extra]));
    if (std::holds_alternative<GlobalAveragePool>(stages[s].c.op)) {
      const Values no_dy = zeros(infer(stages[s].c.op, stages[s].c.x).y);
      bounds.y.terms = by_oracle(stages[s].c, {{bounds.y.terms}, {}, {}, no_dy, {}, {}}).y;
      bounds.y.count = static_cast<double>(stages[s].c.x[0].plane()) + 8;
    }
    if (is_activation(stages[s].c.op) && !std::holds_alternative<Relu>(stages[s].c.op)) {
      // No slope of a function exceeds 1.5, and its own error is at most 8 u of y.
      bounds.y.terms = plus(bounds.y.terms, absolute(values[s]));
      bounds.y.count *= 1.5;
      // A slope that is computed from y has an error of at most 16 u.
      if (c.mode == Mode::training) std::ranges::fill(bounds.dx, Bound{absolute(feed.dy), 16});
    }
    if (!std::holds_alternative<BatchNorm>(stages[s].c.op)) continue;
    scale_terms(bounds.y.terms, stages[s], feed);
    for (std::size_t i = 0; i < stages[s].states; ++i)
      bounds.state.push_back({absolute(feed.state[stages[s].first_state + i]), 0});
  }
  bounds.y.count = std::max(bounds.y.count, 8.0);
  if (c.mode == Mode::training) bounds.dx.insert(bounds.dx.end(), further.begin(), further.end());
  return bounds;
}

}  // namespace lamina::test
