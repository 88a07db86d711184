// An optimiser's update of all parameters of a plan. lamina/backend.h has the formulas.

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "lib/backends/eigen/runtime/elements.h"
#include "lib/backends/eigen/runtime/lanes.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t grain = 4096;  // elements; less is not worth waking a thread

/// The factors of the update in the type that it is computed in.
template <class T>
struct Factors {
  T scale, weight_decay, shrink, rate, decay, gain, decay2, gain2, epsilon, root_scale;

  Factors(const Update& u, double clip)
      : scale(static_cast<T>(u.gradient_scale * clip)),
        weight_decay(static_cast<T>(u.weight_decay)),
        shrink(static_cast<T>(u.shrink)),
        rate(static_cast<T>(u.rate)),
        decay(static_cast<T>(u.decay)),
        gain(static_cast<T>(u.gain)),
        decay2(static_cast<T>(u.decay2)),
        gain2(static_cast<T>(u.gain2)),
        epsilon(static_cast<T>(u.epsilon)),
        root_scale(static_cast<T>(u.root_scale)) {}
};

/// Elements [begin, end) of the parameters, with their gradients and state.
template <class T>
struct Part {
  Factors<T> k;
  T *p, *g, *first, *second;
  std::int64_t begin, end;

  T gradient(std::int64_t i) const { return k.scale * g[i] + k.weight_decay * p[i]; }

  void plain_sgd() const {
    const T rate = k.rate * k.gain;
    LAMINA_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) p[i] = k.shrink * p[i] - rate * gradient(i);
  }

  template <bool nesterov>
  void sgd() const {
    LAMINA_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      const T gained = k.gain * gradient(i);
      const T v = k.decay * first[i] + gained;
      first[i] = v;
      p[i] = k.shrink * p[i] - k.rate * (nesterov ? k.decay * v + gained : v);
    }
  }

  void rmsprop() const {
    LAMINA_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      const T G = gradient(i);
      const T a = k.decay * first[i] + k.gain * (G * G);
      first[i] = a;
      p[i] = k.shrink * p[i] - k.rate * G / (std::sqrt(a) + k.epsilon);
    }
  }

  void adadelta() const {
    LAMINA_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      const T G = gradient(i);
      const T a = k.decay * first[i] + k.gain * (G * G);
      const T u = G * (std::sqrt(second[i] + k.epsilon) / std::sqrt(a + k.epsilon));
      first[i] = a;
      second[i] = k.decay * second[i] + k.gain * (u * u);
      p[i] = k.shrink * p[i] - k.rate * u;
    }
  }

  void adam() const {
    LAMINA_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      const T G = gradient(i);
      const T m = k.decay * first[i] + k.gain * G;
      const T v = k.decay2 * second[i] + k.gain2 * (G * G);
      first[i] = m;
      second[i] = v;
      p[i] = k.shrink * p[i] - k.rate * (m / (std::sqrt(v) * k.root_scale + k.epsilon));
    }
  }
};

template <class T>
void run_rule(const Update& u, const Part<T>& part) {
  switch (u.rule) {
    case Update::Rule::sgd:
      if (part.first == nullptr) return part.plain_sgd();
      return u.nesterov ? part.template sgd<true>() : part.template sgd<false>();
    case Update::Rule::rmsprop: return part.rmsprop();
    case Update::Rule::adadelta: return part.adadelta();
    case Update::Rule::adam: return part.adam();
  }
}

/// The factor that limits the norm of all gradients. Slices, and so the bits of the sum, depend only on the count.
template <class T>
double clip_factor(const Update& u, ThreadPool& pool) {
  constexpr std::int64_t least = 1024;  // numbers of a slice
  const std::int64_t slices = std::clamp<std::int64_t>(u.count / least, 1, Update::norm_slices);
  const T* g = static_cast<const T*>(u.g);
  pool.each(slices, 1, [&](std::int64_t slice) {
    const std::int64_t begin = u.count * slice / slices, end = u.count * (slice + 1) / slices;
    TwoSums sums;
    sums.add(end - begin, [&](const auto& load_at, std::int64_t i, auto& sum, auto&) {
      const auto value = load_at(g + begin + i);
      sum += value * value;
    });
    u.sums[slice] = sums.first();
  });
  double sum = 0;
  for (std::int64_t slice = 0; slice < slices; ++slice) sum += u.sums[slice];
  const double wanted = u.clip_norm / (std::sqrt(sum) * std::abs(u.gradient_scale) + 1e-6);
  return wanted > 1 ? 1 : wanted;  // a NaN stays
}

template <class T>
bool has_gradient(const Part<T>& row) {
  bool any = false;
  for (std::int64_t i = row.begin; i < row.end; ++i) any |= !(row.g[i] == T(0));  // a NaN counts
  return any;
}

}  // namespace

void check_overflow(const UpdateTensors& all, ThreadPool& pool) {
  with_type(all.dtype, [&]<class T>() {
    using Bits = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;
    constexpr Bits infinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
    std::atomic<bool> finite{true};
    pool.split(all.count, grain, [&](std::int64_t begin, std::int64_t end) {
      Bits largest = 0;
      for (std::int64_t i = begin; i < end; ++i)
        largest = std::max<Bits>(largest, std::bit_cast<Bits>(static_cast<const T*>(all.g)[i]) << 1);
      if (largest >= infinity << 1) finite = false;
    });
    all.loss_scale->next(finite);
  });
}

void update(const Update& given, ThreadPool& pool) {
  Update u = given;
  if (u.loss_scale != nullptr) {
    static_cast<UpdateFactors&>(u) = corrected(given, u.loss_scale->updates);
    u.gradient_scale *= u.loss_scale->inverse;
  }
  const bool skips = u.loss_scale != nullptr && u.loss_scale->skips != 0;
  with_type(u.dtype, [&]<class T>() {
    const Factors<T> factors(u, u.clip_norm > 0 && !skips ? clip_factor<T>(u, pool) : 1);
    const auto row = [](void* data) { return static_cast<T*>(data); };
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      return Part<T>{factors, row(u.p), row(u.g), row(u.first), row(u.second), begin, end};
    };
    pool.split(u.count, u.lazy_row > 0 ? round_up(grain, u.lazy_row) : grain,
               [&](std::int64_t begin, std::int64_t end) {
                 if (u.lazy_row == 0 && !skips) run_rule<T>(u, part(begin, end));
                 for (std::int64_t at = begin; u.lazy_row > 0 && !skips && at < end; at += u.lazy_row)
                   if (const Part<T> one = part(at, at + u.lazy_row); has_gradient(one)) run_rule<T>(u, one);
                 if (u.clears_gradient) std::fill(row(u.g) + begin, row(u.g) + end, T(0));
               });
  });
}

}  // namespace lamina::eigen
