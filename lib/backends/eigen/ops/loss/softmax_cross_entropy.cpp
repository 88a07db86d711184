// Mean of -log softmax(logits)[label], and the share of rows whose largest logit is the label. A row is a pixel. As in
// softmax, vectors are the adjacent channels of an image of one pixel, or chunks of pixels of a map.
//
// Saved: 1 / (number of rows that count); then, for each row, its largest logit and a factor, for the probability p =
// exp(logit - largest) * factor. The factor is 0 if the gradient is 0, and NaN if the label is invalid.

#include <cmath>
#include <limits>

#include "lib/backends/eigen/ops/exponentials.h"
#include "lib/backends/eigen/runtime/labels.h"
#include "loss.h"

namespace lamina::eigen {
namespace {

/// The numbers of a row that backward needs.
template <class T>
struct Row {
  T largest, factor;
};

/// The saved block; all null if nothing is saved.
template <class T>
struct Saved {
  T* inverse_count = nullptr;
  Row<T>* rows = nullptr;

  Saved() = default;
  explicit Saved(void* saved)
      : inverse_count(static_cast<T*>(saved)), rows(reinterpret_cast<Row<T>*>(inverse_count + 2)) {}
  static std::size_t bytes(std::int64_t rows) { return (2 + 2 * static_cast<std::size_t>(rows)) * sizeof(T); }
};

/// The loss of a row, and its saved factor. `earlier`: whether a logit before the label's is equally large.
template <class T>
RowLoss finish_row(const SoftmaxCrossEntropy& op, std::int64_t label, T logit, T largest, T sum, bool earlier,
                   T& factor) {
  factor = T(0);
  if (label == ignored_label) return {};
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  if (label == invalid_number) {
    factor = nan;
    return {nan, 0, 1};
  }
  factor = 1 / sum;
  RowLoss row{std::log(static_cast<double>(sum)) - (static_cast<double>(logit) - static_cast<double>(largest)),
              logit == largest && !earlier && sum == sum ? 1 : 0, 1};  // with a NaN no logit is the largest
  if (op.clip == 0) return row;
  const double most = -std::log(op.clip), least = -std::log1p(-op.clip);
  if (row.loss > most || row.loss < least) {
    row.loss = row.loss > most ? most : least;
    factor = T(0);
  }
  return row;
}

template <class T>
RowLoss forward_vector(const SoftmaxCrossEntropy& op, const T* x, T of_label, std::int64_t channels, Row<T>& saved) {
  const std::int64_t label = class_of(of_label, channels);
  const T largest = largest_element(x, channels);
  Chunk<T> part, sums = Chunk<T>::Zero();
  for (std::int64_t c = 0; c < channels; c += chunk) {
    const std::int64_t count = std::min(chunk, channels - c);
    exponentials(x + c, largest, count, part);
    sums += part;
  }
  const bool earlier = label > 0 && std::find(x, x + label, largest) != x + label;
  saved.largest = largest;
  return finish_row(op, label, x[std::max<std::int64_t>(label, 0)], largest, sums.sum(), earlier, saved.factor);
}

template <class T>
void forward_map(const SoftmaxCrossEntropy& op, const T* x, const T* labels, const Shape& shape, std::int64_t pixels,
                 RowLoss* rows, Row<T>* saved) {
  const std::int64_t plane = shape.plane();
  Chunk<T> part, largest = Chunk<T>::Zero(), sums = Chunk<T>::Zero();
  std::copy_n(x, pixels, largest.data());
  for (std::int64_t c = 1; c < shape.c; ++c) take_larger(largest.data(), x + c * plane, pixels);
  for (std::int64_t c = 0; c < shape.c; ++c) {
    exponentials(x + c * plane, largest, pixels, part);
    sums += part;
  }
  for (std::int64_t i = 0; i < pixels; ++i) {
    const std::int64_t label = class_of(labels[i], shape.c);
    bool earlier = false;
    for (std::int64_t c = 0; c < label && !earlier; ++c) earlier = x[c * plane + i] == largest[i];
    Row<T> row{largest[i], T(0)};
    rows[i] = finish_row(op, label, x[std::max<std::int64_t>(label, 0) * plane + i], largest[i], sums[i], earlier,
                         row.factor);
    if (saved != nullptr) saved[i] = row;
  }
}

template <class T>
void forward(ThreadPool& pool, const Args& args, const SoftmaxCrossEntropy& op, bool training) {
  const Shape& shape = args.x[0].shape;
  const std::int64_t plane = shape.plane();
  const Saved<T> saved = training ? Saved<T>(args.saved) : Saved<T>();
  auto* const rows = static_cast<RowLoss*>(args.workspace);
  split_chunks(pool, shape, [&](std::int64_t n, std::int64_t first, std::int64_t pixels) {
    const T* x = image<const T>(args.x[0], n) + first;
    const T* labels = image<const T>(args.x[1], n) + first;
    const std::int64_t row = n * plane + first;
    Row<T>* const kept = saved.rows == nullptr ? nullptr : saved.rows + row;
    if (plane > 1) return forward_map(op, x, labels, shape, pixels, rows + row, kept);
    Row<T> unused;
    rows[row] = forward_vector(op, x, labels[0], shape.c, kept == nullptr ? unused : *kept);
  });
  const T inverse_count = put_loss<T>(args.y, rows, shape.n * plane);
  if (saved.rows != nullptr) *saved.inverse_count = inverse_count;
}

/// dx = scale (p - one-hot), for a row of adjacent channels.
template <class T>
void backward_vector(const T* x, T of_label, T* dx, std::int64_t channels, T scale, const Row<T>& row, bool adds) {
  if (row.factor == 0) {  // also if exp is infinite
    if (!adds) std::fill_n(dx, channels, T(0));
    return;
  }
  const std::int64_t label = class_of(of_label, channels);
  Chunk<T> part;
  for (std::int64_t c = 0; c < channels; c += chunk) {
    const std::int64_t count = std::min(chunk, channels - c);
    exponentials(x + c, row.largest, count, part);
    part *= row.factor;
    if (label >= c && label < c + count) part[label - c] -= 1;
    put_each(dx + c, count, adds, [&](std::int64_t i) { return scale * part[i]; });
  }
}

template <class T>
void backward_map(const T* x, const T* labels, T* dx, const Shape& shape, std::int64_t pixels, T scale,
                  const Row<T>* rows, bool adds) {
  const std::int64_t plane = shape.plane();
  Chunk<T> part, largest = Chunk<T>::Zero();
  T factors[chunk];
  std::int64_t classes[chunk];
  for (std::int64_t i = 0; i < pixels; ++i) {
    largest[i] = rows[i].largest;
    factors[i] = rows[i].factor;
    classes[i] = class_of(labels[i], shape.c);
  }
  for (std::int64_t c = 0; c < shape.c; ++c) {
    exponentials(x + c * plane, largest, pixels, part);
    put_each(dx + c * plane, pixels, adds, [&](std::int64_t i) {
      return factors[i] == 0 ? T(0) : scale * (part[i] * factors[i] - (classes[i] == c ? T(1) : T(0)));
    });
  }
}

template <class T>
void backward_rows(ThreadPool& pool, const Args& args, bool adds) {
  if (!wanted(args, 0)) return;
  const Shape& shape = args.x[0].shape;
  const std::int64_t plane = shape.plane();
  const Saved<T> saved(args.saved);
  const T scale = args.dy.as<T>()[0] * *saved.inverse_count;
  split_chunks(pool, shape, [&](std::int64_t n, std::int64_t first, std::int64_t pixels) {
    const T* x = image<const T>(args.x[0], n) + first;
    const T* labels = image<const T>(args.x[1], n) + first;
    T* dx = image<T>(args.dx[0], n) + first;
    const Row<T>* rows = saved.rows + n * plane + first;
    if (plane > 1) return backward_map(x, labels, dx, shape, pixels, scale, rows, adds);
    backward_vector(x, labels[0], dx, shape.c, scale, *rows, adds);
  });
}

}  // namespace

Lowered lower(const SoftmaxCrossEntropy& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  const std::int64_t rows = spec.x[1].shape.count();
  const bool training = spec.mode == Mode::training;
  unit.backward_reads_x = {true, true};
  return with_type(spec.y.dtype, [&]<class T>() {
    if (training) unit.saved_bytes = Saved<T>::bytes(rows);
    return with_steps(
        unit, spec, [&pool = context.pool, op, training](const Args& args) { forward<T>(pool, args, op, training); },
        [&pool = context.pool, adds = adds_dx(spec, 0)](const Args& args) { backward_rows<T>(pool, args, adds); },
        static_cast<std::size_t>(rows) * sizeof(RowLoss));
  });
}

}  // namespace lamina::eigen
