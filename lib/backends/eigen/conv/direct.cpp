// Convolution by its definition: loops over outputs, sums in double. Needs no workspace and takes every shape.
//
// Forward and the data gradient make a row of outputs at a time, in blocks that stay in registers and in the
// first-level cache. The weight gradient makes a number at a time.

#include <algorithm>

#include "conv.h"
#include "conv_tail.h"

namespace lamina::eigen {
namespace {

constexpr int row_block = 128;  // outputs of a row that are summed together

template <class T>
void forward(const ConvUnit& c, const ConvTail<T>& tail, const Args& args, ThreadPool& pool) {
  const T *const x = args.x[0].as<T>(), *const w = args.w[0].as<T>();
  const Epilogue<T> epilogue = epilogue_of(c, args, tail);
  place_addend(c, args, pool);
  const Size size = c.op.kernel;
  pool.each(std::int64_t{c.y.n} * c.y.c, 1, [&](std::int64_t plane) {
    double sum[row_block];
    const std::int64_t n = plane / c.y.c, k = plane % c.y.c;
    const T* const image = x + n * args.x[0].pitch + k / c.group_filters() * c.group_channels() * c.x.plane();
    const T* const filter = w + k * c.group_channels() * size.h * size.w;
    T* const out = args.y.as<T>() + n * args.y.pitch + k * c.y.plane();
    for (int p = 0; p < c.y.h; ++p) {
      for (int q0 = 0; q0 < c.y.w; q0 += row_block) {
        const int count = std::min(row_block, c.y.w - q0);
        T* const to = out + std::int64_t{p} * c.y.w + q0;
        std::fill(sum, sum + count, 0.0);
        for (int channel = 0; channel < c.group_channels(); ++channel) {
          for (int r = 0; r < size.h; ++r) {
            const int h = p * c.op.stride.h - c.op.pad.h + r * c.op.dilation.h;
            if (h < 0 || h >= c.x.h) continue;
            const T* const row = image + channel * c.x.plane() + std::int64_t{h} * c.x.w;
            for (int s = 0; s < size.w; ++s) {
              const auto weight = static_cast<double>(filter[(std::int64_t{channel} * size.h + r) * size.w + s]);
              const int offset = q0 * c.op.stride.w - c.op.pad.w + s * c.op.dilation.w;
              const Range inside = range_within(count, c.op.stride.w, offset, 0, c.x.w);
              for (int q = inside.first; q < inside.last; ++q) {
                sum[q] += weight * static_cast<double>(row[q * c.op.stride.w + offset]);
              }
            }
          }
        }
        for (int q = 0; q < count; ++q) {
          double value = epilogue.scale == nullptr ? sum[q] : sum[q] * static_cast<double>(epilogue.scale[k]);
          if (epilogue.bias != nullptr) value += static_cast<double>(epilogue.bias[k]);
          if (epilogue.add) value += static_cast<double>(to[q]);
          to[q] = epilogue.bounded(static_cast<T>(value));
        }
        activate(epilogue, to, 0, 1, count);
      }
    }
  });
}

/// dy, or 0 where the ReLU masks it.
template <class T>
double masked(const T* dy, const T* y, std::int64_t at) {
  return y == nullptr || y[at] > 0 ? static_cast<double>(dy[at]) : 0.0;
}

template <class T>
void backward_data(const ConvUnit& c, const Args& args, ThreadPool& pool) {
  if (!args.dx[0]) return;
  const T* const w = args.w[0].as<T>();
  const Size size = c.op.kernel, stride = c.op.stride;
  pool.each(std::int64_t{c.x.n} * c.x.c, 1, [&](std::int64_t plane) {
    double sum[row_block];
    const std::int64_t n = plane / c.x.c, channel = plane % c.x.c;
    const std::int64_t group = channel / c.group_channels();
    T* const out = args.dx[0].as<T>() + n * args.dx[0].pitch + channel * c.x.plane();
    for (int h = 0; h < c.x.h; ++h) {
      for (int w0 = 0; w0 < c.x.w; w0 += row_block) {
        const int count = std::min(row_block, c.x.w - w0);
        std::fill(sum, sum + count, 0.0);
        for (std::int64_t k = group * c.group_filters(); k < (group + 1) * c.group_filters(); ++k) {
          const T* const filter = w + (k * c.group_channels() + channel % c.group_channels()) * size.h * size.w;
          for (int r = 0; r < size.h; ++r) {
            const int above = h + c.op.pad.h - r * c.op.dilation.h;
            if (above < 0 || above % stride.h != 0 || above / stride.h >= c.y.h) continue;
            const std::int64_t row = k * c.y.plane() + std::int64_t{above / stride.h} * c.y.w;
            const T* const dy = args.dy.as<T>() + n * args.dy.pitch + row;
            const T* const y = c.relu ? args.y.as<T>() + n * args.y.pitch + row : nullptr;
            for (int s = 0; s < size.w; ++s) {
              const auto weight = static_cast<double>(filter[r * size.w + s]);
              const int offset = s * c.op.dilation.w - c.op.pad.w - w0;
              const Range inside = range_within(c.y.w, stride.w, offset, 0, count);
              for (int q = inside.first; q < inside.last; ++q) sum[q * stride.w + offset] += weight * masked(dy, y, q);
            }
          }
        }
        T* const to = out + std::int64_t{h} * c.x.w + w0;
        for (int i = 0; i < count; ++i) to[i] = static_cast<T>(c.add_dx ? sum[i] + static_cast<double>(to[i]) : sum[i]);
      }
    }
  });
}

template <class T>
void backward_params(const ConvUnit& c, const Args& args, ThreadPool& pool) {
  bias_gradient<T>(c, args, pool);
  if (args.dw.empty() || !args.dw[0]) return;
  T* const dw = args.dw[0].as<T>();
  const Size size = c.op.kernel;
  pool.each(std::int64_t{c.y.c} * c.group_channels(), 1, [&](std::int64_t pair) {
    const std::int64_t k = pair / c.group_channels();
    const std::int64_t channel = k / c.group_filters() * c.group_channels() + pair % c.group_channels();
    for (int r = 0; r < size.h; ++r) {
      for (int s = 0; s < size.w; ++s) {
        const int down = r * c.op.dilation.h - c.op.pad.h, right = s * c.op.dilation.w - c.op.pad.w;
        const Range rows = range_within(c.y.h, c.op.stride.h, down, 0, c.x.h);
        const Range cols = range_within(c.y.w, c.op.stride.w, right, 0, c.x.w);
        double sum = 0;
        for (std::int64_t n = 0; n < c.y.n; ++n) {
          for (int p = rows.first; p < rows.last; ++p) {
            const std::int64_t row = k * c.y.plane() + std::int64_t{p} * c.y.w;
            const T* const dy = args.dy.as<T>() + n * args.dy.pitch + row;
            const T* const y = c.relu ? args.y.as<T>() + n * args.y.pitch + row : nullptr;
            const T* const x = args.x[0].as<T>() + n * args.x[0].pitch + channel * c.x.plane() +
                               std::int64_t{p * c.op.stride.h + down} * c.x.w;
            for (int q = cols.first; q < cols.last; ++q) {
              sum += masked(dy, y, q) * static_cast<double>(x[q * c.op.stride.w + right]);
            }
          }
        }
        T& to = dw[(pair * size.h + r) * size.w + s];
        to = static_cast<T>(c.add_dw ? sum + static_cast<double>(to) : sum);
      }
    }
  });
}

}  // namespace

template <class T>
void bias_gradient(const ConvUnit& c, const Args& args, ThreadPool& pool) {
  if (args.dw.size() < 2 || !args.dw[1]) return;
  T* const db = args.dw[1].as<T>();
  pool.each(c.y.c, 1, [&](std::int64_t k) {
    double sum = c.add_dw ? static_cast<double>(db[k]) : 0.0;
    for (std::int64_t n = 0; n < c.y.n; ++n) {
      const T* const dy = args.dy.as<T>() + n * args.dy.pitch + k * c.y.plane();
      const T* const y = c.relu ? args.y.as<T>() + n * args.y.pitch + k * c.y.plane() : nullptr;
      for (std::int64_t i = 0; i < c.y.plane(); ++i) sum += masked(dy, y, i);
    }
    db[k] = static_cast<T>(sum);
  });
}

template void bias_gradient<float>(const ConvUnit&, const Args&, ThreadPool&);
template void bias_gradient<double>(const ConvUnit&, const Args&, ThreadPool&);

Lowered::Step direct_step(const ConvUnit& c, Pass pass, const Choice&, const Context& context) {
  return with_type(c.dtype, [&]<class T>() {
    return step({pass}, "direct",
                [c, pass, tail = ConvTail<T>(c, context.set), &pool = context.pool](const Args& args) {
                  switch (pass) {
                    case Pass::forward: return forward<T>(c, tail, args, pool);
                    case Pass::backward_params: return backward_params<T>(c, args, pool);
                    default: return backward_data<T>(c, args, pool);
                  }
                });
  });
}

}  // namespace lamina::eigen
