// A backend around another one. What it adds is done on the host, with copies of what is on the device.

#include "support/wrapped_backend.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "support/numbers/values.h"

namespace lamina::test {
namespace {

/// Does something before and after another kernel.
template <class Before, class After>
class Around final : public Kernel {
 public:
  Around(std::shared_ptr<Kernel> inner, Before before, After after)
      : inner_(std::move(inner)), before_(std::move(before)), after_(std::move(after)) {}
  std::size_t workspace_bytes() const override { return inner_ ? inner_->workspace_bytes() : 0; }
  void run(const Args& args) override {
    before_(args);
    if (inner_) inner_->run(args);
    after_(args);
  }

 private:
  std::shared_ptr<Kernel> inner_;
  Before before_;
  After after_;
};

template <class Before, class After>
std::shared_ptr<Kernel> around(std::shared_ptr<Kernel> inner, Before before, After after) {
  return std::make_shared<Around<Before, After>>(std::move(inner), std::move(before), std::move(after));
}

void nothing(const Args&) {}

/// Per channel: the sum, then the sum of squares, {2, channels}.
std::vector<double> channel_sums(Device& device, const Tensor& x) {
  const Shape& shape = x.shape;
  const Values values = read(device, x);
  std::vector<double> sums(static_cast<std::size_t>(2 * shape.c), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto c = i / static_cast<std::size_t>(shape.plane()) % static_cast<std::size_t>(shape.c);
    sums[c] += values[i];
    sums[c + static_cast<std::size_t>(shape.c)] += values[i] * values[i];
  }
  return sums;
}

/// What is on the device from there on.
std::vector<std::byte> bytes_at(Device& device, const void* data, std::size_t count) {
  std::vector<std::byte> bytes(count);
  device.download(bytes.data(), data, count);
  return bytes;
}

bool covers(const Lowered::Step& step, Pass pass) {
  return std::find(step.covers.begin(), step.covers.end(), pass) != step.covers.end();
}

}  // namespace

Lowered WrappedBackend::lower(const Spec& spec, const Choice& choice) {
  Spec plain = spec;
  plain.sums_given = plain.sums_wanted = false;
  Lowered lowered = inner_.lower(plain, choice);

  for (Lowered::Step& step : lowered.steps) {
    if (!covers(step, Pass::forward)) continue;
    if (spec.sums_given)
      step.kernel = around(
          step.kernel,
          [this](const Args& args) {
            ++sums_compared;
            const auto expected = channel_sums(device(), args.x[0]);
            std::vector<double> given(expected.size());
            if (args.sums != nullptr) device().download(given.data(), args.sums, given.size() * sizeof(double));
            if (args.sums == nullptr || given != expected) faults.emplace_back("sums differ");
          },
          nothing);
    if (spec.sums_wanted)
      step.kernel = around(step.kernel, nothing, [this](const Args& args) {
        ++sums_written;
        const auto sums = channel_sums(device(), args.y);
        if (args.sums == nullptr) return faults.emplace_back("no room for sums"), void();
        device().upload(args.sums, sums.data(), sums.size() * sizeof(double));
      });
  }
  if (prepare && !spec.w.empty()) {
    const std::size_t bytes = static_cast<std::size_t>(spec.w[0].shape.count()) * size_of(spec.w[0].dtype);
    const std::size_t behind = (lowered.prepared_bytes + 63) / 64 * 64;  // what the backend itself prepares
    for (Lowered::Step& step : lowered.steps) {
      if (covers(step, Pass::prepare)) continue;
      step.kernel = around(
          step.kernel,
          [this, bytes, behind](const Args& args) {
            ++prepared_compared;
            if (args.prepared == nullptr || bytes_at(device(), static_cast<std::byte*>(args.prepared) + behind,
                                                     bytes) != bytes_at(device(), args.w[0].data, bytes))
              faults.emplace_back("prepared parameters are stale");
          },
          nothing);
    }
    lowered.prepared_bytes = behind + bytes;
    lowered.steps.push_back({{Pass::prepare},
                             "copy",
                             around(
                                 nullptr,
                                 [this, bytes, behind](const Args& args) {
                                   ++prepared;
                                   device().upload(static_cast<std::byte*>(args.prepared) + behind,
                                                   bytes_at(device(), args.w[0].data, bytes).data(), bytes);
                                 },
                                 nothing)});
  }
  return lowered;
}

Choice WrappedBackend::measure(const Spec& spec, const Choice& choice, void* lent, std::size_t lent_bytes) {
  ++measurements;
  if (lent == nullptr || lent_bytes == 0) faults.emplace_back("nothing was lent to measure in");
  Choice picked = choice;
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data}) {
    const auto known = inner_.algorithms(spec, pass);
    if (std::find(known.begin(), known.end(), measured) != known.end())
      picked.algorithm[static_cast<std::size_t>(pass)] = measured;
  }
  return picked;
}

}  // namespace lamina::test
