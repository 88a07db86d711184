// Batches on their way into a plan, and scores on their way out.

#include "feed.h"

#include <algorithm>

#include "lamina/error.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::training {

Inputs inputs_of(const Graph& graph) {
  const auto fail = [&](const std::string& what) {
    throw UsageError("graph " + graph.name() + " cannot be trained by a Trainer: " + what);
  };
  if (graph.nodes().empty()) fail("it is empty");
  const Node& last = graph.nodes().back();
  if (!is_loss(last.op))
    fail("its last node is " + to_string(last.op) + "; it should be softmax_cross_entropy or sigmoid_cross_entropy");
  const Node& labels = graph.nodes()[static_cast<std::size_t>(last.inputs[1])];
  if (!std::holds_alternative<Input>(labels.op)) fail("its labels are not an Input; make them with graph.input()");
  if (labels.shape.image() != 1)
    fail("its labels are " + to_string(labels.shape) + "; there should be one label for each image");
  Inputs inputs{{}, labels.name};
  for (const Node& node : graph.nodes()) {
    if (!std::holds_alternative<Input>(node.op) || node.name == labels.name) continue;
    if (!inputs.samples.empty()) fail("it has the inputs " + inputs.samples + " and " + node.name + " for samples");
    if (node.shape.n != labels.shape.n)
      fail(std::to_string(node.shape.n) + " samples and " + std::to_string(labels.shape.n) + " labels in a batch");
    inputs.samples = node.name;
  }
  if (inputs.samples.empty()) fail("it has no input for samples");
  return inputs;
}

void check_fits(const Plan& plan, const Inputs& inputs, const Source& source) {
  Shape wanted = plan.input(inputs.samples).shape;
  wanted.n = 1;
  if (source.shape() != wanted)
    throw UsageError("graph " + plan.graph().name() + " takes samples of " + to_string(wanted) +
                     ", and the source has " + to_string(source.shape()));
  const Node& loss = plan.graph().nodes().back();
  const int classes = std::holds_alternative<SigmoidCrossEntropy>(loss.op)
                          ? 2
                          : plan.graph().nodes()[static_cast<std::size_t>(loss.inputs[0])].shape.c;
  if (source.classes() > classes)
    throw UsageError("graph " + plan.graph().name() + " distinguishes " + std::to_string(classes) +
                     " classes, and the source has " + std::to_string(source.classes()));
}

Uploads::Uploads(Device& device, const Tensor& samples, const Tensor& labels)
    : device_(&device), samples_(samples), labels_(labels) {
  if (!samples.dense() || !labels.dense()) return;
  for (std::unique_ptr<Staging>& staging : staging_)
    staging =
        device.staging(aligned(dense_bytes(samples.shape, samples.dtype)) + dense_bytes(labels.shape, labels.dtype));
}

void Uploads::give(std::span<const float> samples, std::span<const float> labels) {
  Staging* const staging = staging_[turn_].get();
  if (staging == nullptr) {
    upload(*device_, samples_, samples);
    upload(*device_, labels_, labels);
    return;
  }
  turn_ = (turn_ + 1) % staging_.size();
  auto* const host = static_cast<std::byte*>(staging->data());
  // Labels may be of a wider type.
  const std::size_t first_label = aligned(dense_bytes(samples_.shape, samples_.dtype));
  write_elements(host, samples_, samples);
  write_elements(host + first_label, labels_, labels);
  staging->upload(samples_.data, 0, dense_bytes(samples_.shape, samples_.dtype));
  staging->upload(labels_.data, first_label, dense_bytes(labels_.shape, labels_.dtype));
}

Feed::Feed(const Plan& plan, const Inputs& inputs)
    : uploads_(plan.backend().device(), plan.input(inputs.samples), plan.input(inputs.labels)),
      samples_(static_cast<std::size_t>(plan.input(inputs.samples).shape.count())),
      labels_(static_cast<std::size_t>(plan.input(inputs.labels).shape.n)) {}

void Feed::give(const Batch& batch) {
  std::span<const float> samples = batch.x, labels = batch.labels;
  if (labels.size() < labels_.size()) {
    std::fill(std::copy(samples.begin(), samples.end(), samples_.begin()), samples_.end(), 0.0F);
    std::fill(std::copy(labels.begin(), labels.end(), labels_.begin()), labels_.end(), -1.0F);
    samples = samples_;
    labels = labels_;
  }
  uploads_.give(samples, labels);
}

Scores::Scores(Device& device, DType dtype, std::int64_t batches)
    : dtype_(dtype), rows_(device, static_cast<std::size_t>(2 * batches) * size_of(dtype)) {
  clear(device);
}

void Scores::clear(Device& device) { device.fill(rows_.data(), 0, rows_.size_bytes()); }

void* Scores::row(std::int64_t batch) const {
  return static_cast<std::byte*>(rows_.data()) + static_cast<std::size_t>(2 * batch) * size_of(dtype_);
}

void Scores::keep(Device& device, const Tensor& output, std::int64_t batch) {
  device.copy(row(batch), output.data, 2 * size_of(dtype_));
}

Tensor Scores::rows(std::int64_t first, std::int64_t count) const {
  return {row(first), {static_cast<int>(count), 2, 1, 1}, dtype_, Layout::nchw, 2};
}

Score Scores::read_one(Device& device, std::int64_t batch) const {
  const auto of_type = [&]<class T>(std::array<T, 2> values) -> Score {
    download(device, std::span<T>(values), rows(batch, 1));
    return {static_cast<double>(values[0]), static_cast<double>(values[1])};
  };
  return dtype_ == DType::f64 ? of_type(std::array<double, 2>()) : of_type(std::array<float, 2>());
}

std::vector<Score> Scores::read(Device& device, std::int64_t batches) const {
  if (batches == 0) return {};
  std::vector<double> values(static_cast<std::size_t>(2 * batches));
  download(device, std::span<double>(values), rows(0, batches));
  std::vector<Score> scores;
  for (std::size_t i = 0; i < values.size(); i += 2) scores.push_back({values[i], values[i + 1]});
  return scores;
}

Score mean(const std::vector<Score>& scores, std::int64_t samples, int batch) {
  Score sum{0, 0};
  std::int64_t left = samples;
  for (const Score& score : scores) {
    const auto weight = static_cast<double>(std::min<std::int64_t>(left, batch));
    sum.loss += weight * score.loss;
    sum.accuracy += weight * score.accuracy;
    left -= batch;
  }
  return {sum.loss / static_cast<double>(samples), sum.accuracy / static_cast<double>(samples)};
}

}  // namespace lamina::training
