// Runs one unit of work on a backend without a plan.

#include "tests/support/cases/unit.h"

#include <sstream>

#include "lib/core/units/unit_memory.h"
#include "tests/support/catch.h"
#include "tests/support/guarded.h"

namespace lamina::test {
namespace {

using Tensors = std::vector<std::unique_ptr<GuardedTensor>>;

/// Whether all numbers are equal. A NaN equals a NaN.
bool same(const Values& a, const Values& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double p, double q) { return p == q || (std::isnan(p) && std::isnan(q)); });
}

/// One run of a unit, with its memory.
class Run {
 public:
  Run(Backend& backend, const Spec& spec, const Choice& choice, const Feed& feed, const Sharing& sharing)
      : device_(backend.device()),
        spec_(spec),
        feed_(feed),
        lowered_(backend.lower(spec, choice)),
        training_(spec.mode == Mode::training) {
    check_sizes();
    share(sharing);
    lend();
  }

  Result all() {
    run_covering(Pass::prepare);
    run_covering(Pass::forward);
    Result result;
    result.y = y().get();
    read(result.state, state_);
    if (training_) {
      check_recompute(result.y);
      forget_what_backward_does_not_read();
      run_backward();
      for (std::size_t i = 0; i < feed_.x.size(); ++i) result.dx.push_back(wanted(i) ? dx(i).get() : Values{});
      read(result.dw, dw_);
      check_with_dx(result);
      check_claims(result);
    }
    check_guards(result);
    return result;
  }

 private:
  bool recomputes() const { return find_step(lowered_, Pass::recompute) != nullptr; }
  bool wanted(std::size_t i) const { return training_ && spec_.wants_dx[i]; }
  GuardedTensor& y() { return y_in_x_ < 0 ? *y_ : *x_[static_cast<std::size_t>(y_in_x_)]; }
  GuardedTensor& dx(std::size_t i) { return dx_in_dy_ == static_cast<int>(i) ? *dy_ : *dx_[i]; }

  static void read(std::vector<Values>& to, const Tensors& from) {
    for (const auto& tensor : from) to.push_back(tensor->get());
  }

  void check_sizes() {
    const std::size_t inputs = spec_.x.size();
    REQUIRE(feed_.x.size() == inputs);
    REQUIRE(feed_.w.size() == spec_.w.size());
    REQUIRE(lowered_.backward_reads_x.size() == inputs);
    REQUIRE(lowered_.y_may_alias_x.size() == inputs);
    REQUIRE(lowered_.dx_is_dy.size() == inputs);
    REQUIRE(lowered_.dx_may_alias_dy.size() == inputs);
  }

  void share(const Sharing& sharing) {
    if (sharing.y_in_x >= 0) {
      const auto i = static_cast<std::size_t>(sharing.y_in_x);
      const bool read_later = training_ && (lowered_.backward_reads_x[i] || recomputes());
      if (lowered_.y_may_alias_x[i] && !read_later && spec_.x[i].pitch == spec_.y.pitch) y_in_x_ = sharing.y_in_x;
    }
    if (sharing.dx_in_dy >= 0 && training_) {
      const auto i = static_cast<std::size_t>(sharing.dx_in_dy);
      const bool fits = spec_.x[i].shape == spec_.y.shape && spec_.x[i].gradient_pitch == spec_.y.gradient_pitch;
      if (lowered_.dx_may_alias_dy[i] && wanted(i) && !spec_.adds_dx[i] && fits) dx_in_dy_ = sharing.dx_in_dy;
    }
  }

  std::unique_ptr<GuardedTensor> make(const TensorSpec& spec, bool gradient, const Values* values) {
    const std::int64_t pitch = gradient ? spec.gradient_pitch : spec.pitch;
    const Tensor like{nullptr, spec.shape, spec.dtype, spec.layout, pitch};
    // A pitched tensor is a slice of a larger tensor, so its address may be unaligned.
    auto tensor = std::make_unique<GuardedTensor>(device_, like, salt_++, like.dense() ? 0 : 3);
    if (values != nullptr) tensor->set(*values);
    return tensor;
  }

  void lend() {
    for (std::size_t i = 0; i < feed_.x.size(); ++i) {
      x_.push_back(make(spec_.x[i], false, &feed_.x[i]));
      dx_.push_back(wanted(i) ? make(spec_.x[i], true, spec_.adds_dx[i] ? &feed_.dx[i] : nullptr) : nullptr);
    }
    for (std::size_t i = 0; i < feed_.w.size(); ++i) {
      w_.push_back(make(spec_.w[i], false, &feed_.w[i]));
      if (training_) dw_.push_back(make(spec_.w[i], false, spec_.adds_dw ? &feed_.dw[i] : nullptr));
    }
    for (std::size_t i = 0; i < feed_.state.size(); ++i) state_.push_back(make(spec_.state[i], false, &feed_.state[i]));
    if (y_in_x_ < 0) y_ = make(spec_.y, false, nullptr);
    if (training_) dy_ = make(spec_.y, true, &feed_.dy);
    saved_ = block(lowered_.saved_bytes);
    scratch_ = block(lowered_.scratch_bytes);
    prepared_ = block(lowered_.prepared_bytes);
  }

  std::unique_ptr<GuardedBlock> block(std::size_t bytes) {
    return std::make_unique<GuardedBlock>(device_, bytes, salt_++);
  }

  Tensor tensor(Operand operand, std::size_t i) {
    switch (operand) {
      case Operand::x: return x_[i]->tensor();
      case Operand::dx: return dx(i).tensor();
      case Operand::w: return w_[i]->tensor();
      case Operand::dw: return dw_[i]->tensor();
      case Operand::state: return state_[i]->tensor();
      case Operand::dy: return dy_->tensor();
      case Operand::y: break;
    }
    Tensor tensor = y().tensor();
    tensor.shape = spec_.y.shape;  // y may alias x
    return tensor;
  }

  /// The unit's arguments, with `workspace` and the memory of `run`.
  struct UnitTensors {
    Run& run;
    const GuardedBlock& workspace;

    Tensor tensor(Operand operand, std::size_t i, const TensorSpec&, std::int64_t) { return run.tensor(operand, i); }
    void* block(Block block, std::size_t) const {
      switch (block) {
        case Block::saved: return run.saved_->data();
        case Block::scratch: return run.scratch_->data();
        case Block::prepared: return run.prepared_->data();
        case Block::workspace: break;
      }
      return workspace.data();
    }
  };

  void run(const Lowered::Step& step) {
    INFO("step " << to_string(step.passes.front()) << " by " << step.algorithm);
    const GuardedBlock workspace(device_, step.kernel->workspace_bytes(), salt_++);
    step.kernel->run(bind_unit(spec_, lowered_, UnitTensors{*this, workspace}));
    device_.synchronize();
    CHECK(workspace.damage() == "");
  }

  void run_covering(Pass pass) {
    for (const Lowered::Step& step : lowered_.steps)
      if (step.covers(pass)) run(step);
  }

  void run_backward() {
    bool any = false;
    for (std::size_t i = 0; i < x_.size(); ++i) any = any || wanted(i);
    if (!w_.empty()) run_covering(Pass::backward_params);
    if (!any) return;
    for (const Lowered::Step& step : lowered_.steps)
      if (step.covers(Pass::backward_data) && (w_.empty() || !step.covers(Pass::backward_params))) run(step);
  }

  void forget_what_backward_does_not_read() {
    for (std::size_t i = 0; i < x_.size(); ++i)
      if (static_cast<int>(i) != y_in_x_ && !lowered_.backward_reads_x[i]) x_[i]->poison();
    forgotten_ = true;
    if (!lowered_.backward_reads_y) y().poison();
  }

  void check_recompute(const Values& first) {
    if (!recomputes()) return;
    std::vector<Values> state_before, state_after;
    read(state_before, state_);
    y().poison();
    run_covering(Pass::recompute);
    CHECK(same(y().get(), first));
    read(state_after, state_);
    CHECK(state_before == state_after);
  }

  /// Checks that a kernel that computes both gradients has the same bits as the two steps.
  void check_with_dx(const Result& apart) {
    const Lowered::Step* const data = find_step(lowered_, Pass::backward_data);
    for (Lowered::Step step : lowered_.steps) {
      if (step.with_dx == nullptr || data == nullptr || step.algorithm != data->algorithm) continue;
      spec_.adds_dx[0] ? dx(0).set(feed_.dx[0]) : dx(0).poison();
      for (std::size_t i = 0; i < dw_.size(); ++i) spec_.adds_dw ? dw_[i]->set(feed_.dw[i]) : dw_[i]->poison();
      step.kernel = step.with_dx;
      run(step);
      CHECK(same(dx(0).get(), apart.dx[0]));
      for (std::size_t i = 0; i < dw_.size(); ++i) CHECK(same(dw_[i]->get(), apart.dw[i]));
    }
  }

  void check_claims(const Result& result) {
    for (std::size_t i = 0; i < x_.size(); ++i)
      if (lowered_.dx_is_dy[i] && wanted(i) && !spec_.adds_dx[i]) CHECK(result.dx[i] == feed_.dy);
  }

  void check_guards(const Result&) {
    for (std::size_t i = 0; i < x_.size(); ++i) {
      INFO("x and dx number " << i);
      CHECK(x_[i]->damage() == "");
      if (static_cast<int>(i) != y_in_x_) CHECK(x_[i]->untouched());
      if (dx_[i]) CHECK(dx_[i]->damage() == "");
    }
    for (std::size_t i = 0; i < w_.size(); ++i) {
      INFO("parameter number " << i);
      CHECK(w_[i]->untouched());
      if (training_) CHECK(dw_[i]->damage() == "");
    }
    for (const auto& state : state_) {
      CHECK(state->damage() == "");
      if (!training_) CHECK(state->untouched());
    }
    CHECK(y().damage() == "");
    if (forgotten_ && y_in_x_ < 0 && !lowered_.backward_reads_y) CHECK(y().untouched());
    if (training_) {
      CHECK(dy_->damage() == "");
      if (dx_in_dy_ < 0) CHECK(dy_->untouched());
    }
    for (const GuardedBlock* bytes : {saved_.get(), scratch_.get(), prepared_.get()}) CHECK(bytes->damage() == "");
  }

  Device& device_;
  const Spec& spec_;
  const Feed& feed_;
  Lowered lowered_;
  bool training_;
  bool forgotten_ = false;
  int y_in_x_ = -1, dx_in_dy_ = -1;
  std::uint64_t salt_ = 1;
  Tensors x_, w_, state_, dx_, dw_;
  std::unique_ptr<GuardedTensor> y_, dy_;
  std::unique_ptr<GuardedBlock> saved_, scratch_, prepared_;
};

TensorSpec tensor_spec(const Shape& shape, DType dtype, const Conditions& conditions, int extra) {
  TensorSpec spec{shape, dtype, conditions.layout, 0, 0};
  spec.pitch = dense_pitch(shape, conditions.layout) + (conditions.pitched ? extra : 0);
  spec.gradient_pitch = dense_pitch(shape, conditions.layout) + (conditions.pitched ? extra + 2 : 0);
  return spec;
}

void append_parameters(Spec& spec, const Op& op, const Inferred& inferred, const Conditions& conditions) {
  Conditions dense = conditions;
  dense.pitched = false;
  for (const Shape& shape : inferred.params)
    spec.w.push_back(tensor_spec(shape, parameter_dtype(conditions.dtype), dense, 0));
  for (const Shape& shape : inferred.state)
    spec.state.push_back(tensor_spec(shape, state_dtype(op, conditions.dtype), dense, 0));
}

}  // namespace

std::string to_string(const Case& c) {
  std::ostringstream text;
  text << c.name << ": " << to_string(c.op);
  for (const Link& link : c.tail) text << " + " << to_string(link.op);
  for (const Shape& shape : c.x) text << ' ' << to_string(shape);
  text << (c.mode == Mode::training ? " training" : " inference");
  return text.str();
}

std::string to_string(const Conditions& c) {
  std::string text = std::string(to_string(c.dtype)) + " " + std::string(to_string(c.layout));
  text += c.pitched ? " pitched" : " dense";
  text += c.adds ? " beta 1" : " beta 0";
  for (const bool wants : c.wants) text += wants ? " dx" : " no dx";
  return text;
}

std::optional<Spec> make_spec(const Backend& backend, const Case& c, const Conditions& conditions) {
  Spec spec;
  spec.op = c.op;
  spec.mode = c.mode;
  spec.adds_dw = conditions.adds;
  int extra = 3;
  const auto append_input = [&](const Shape& shape, DType dtype, bool has_gradient) {
    spec.x.push_back(tensor_spec(shape, dtype, conditions, extra));
    extra += 4;
    const std::size_t i = spec.wants_dx.size();
    const bool wants = has_gradient && c.mode == Mode::training && (conditions.wants.empty() || conditions.wants[i]);
    spec.wants_dx.push_back(wants);
    spec.adds_dx.push_back(wants && conditions.adds);
  };
  for (std::size_t i = 0; i < c.x.size(); ++i)
    append_input(c.x[i], input_dtype(c.op, c.x, i, conditions.dtype), whole_numbers(c.op, c.x, i) == 0);
  const Inferred inferred = infer(c.op, c.x);
  const DType y_type = output_dtype(c.op, conditions.dtype);
  spec.y =
      tensor_spec(inferred.y, y_type, conditions, 3);  // the pitch of the first x, so that y and x may share memory
  append_parameters(spec, c.op, inferred, conditions);
  for (const Link& link : c.tail) {
    std::vector<Shape> shapes{spec.y.shape};
    if (std::holds_alternative<Add>(link.op)) shapes.push_back(spec.y.shape);
    const Inferred next = infer(link.op, shapes);
    Node node{"tail", link.op, std::vector<int>(shapes.size()), next.y, next.params, next.state};
    std::iota(node.inputs.begin(), node.inputs.end(), 0);
    if (!backend.fuses(spec, node, link.operand)) return std::nullopt;
    for (std::size_t i = 1; i < shapes.size(); ++i) append_input(shapes[i], conditions.dtype, true);
    spec.tail.push_back(link.op);
    spec.y = tensor_spec(next.y, conditions.dtype, conditions, 3);
    append_parameters(spec, link.op, next, conditions);
  }
  return spec;
}

Result run_unit(Backend& backend, const Spec& spec, const Choice& choice, const Feed& feed, const Sharing& sharing) {
  return Run(backend, spec, choice, feed, sharing).all();
}

}  // namespace lamina::test
