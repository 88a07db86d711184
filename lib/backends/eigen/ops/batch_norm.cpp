// Batch normalisation, alone or followed by an Add, an Add and a ReLU, or a function. It works channel by channel: the
// planes of a channel are read from memory once and stay in cache for the second pass. Sums are in double, in an order
// that does not depend on the number of threads. f32 results may be stored in half precision: each tensor has its own
// type. If several ranks share a batch, each pass is two calls. The first leaves sums that the caller adds up over the
// ranks; the second computes with them.

#include <utility>

#include "lib/backends/eigen/ops/norm/backward.h"
#include "lib/backends/eigen/ops/norm/forward.h"

namespace lamina::eigen {

Lowered lower(const BatchNorm& op, const Spec& spec, const Choice&, const Context& context) {
  using namespace batch_norm;  // NOLINT(google-build-using-namespace): this op's own
  Lowered unit = norm_unit(spec, norm_tail(spec));
  const int channels = spec.y.shape.c;
  with_type(spec.y.dtype, [&]<class T>() {
    const Tail<T> tail = tail_of<T>(spec, context.set);
    /// Adds a step that calls work(args, c) for every channel.
    const auto emit = [&](std::vector<Pass> passes, const auto& work) {
      unit.steps.push_back(step(std::move(passes), "direct", [&pool = context.pool, channels, work](const Args& args) {
        pool.each(channels, 1, [&](std::int64_t c) { work(args, c); });
      }));
    };
    /// The same for a step that leaves sums, which the caller adds up over all ranks before the next step.
    const auto emit_sums = [&](Pass pass, const auto& work) {
      emit({pass}, work);
      unit.steps.back().cross_rank_sums = 2 * std::int64_t{channels};
    };
    if (spec.mode == Mode::inference) {
      unit.prepared_bytes = static_cast<std::size_t>(channels) * sizeof(Affine<T>);
      emit({Pass::prepare}, [op](const Args& args, std::int64_t c) {
        static_cast<Affine<T>*>(args.prepared)[c] = running_affine<T>(args, op, c);
      });
      emit({Pass::forward}, [tail](const Args& args, std::int64_t c) {
        write_channel(args, tail, static_cast<const Affine<T>*>(args.prepared)[c], whole_channel(args.y.shape, c));
      });
      return;
    }
    const bool of_ranks = op.ranks > 1;
    unit.saved_bytes = static_cast<std::size_t>(channels) * sizeof(Statistics);
    if (of_ranks) {
      unit.scratch_bytes = static_cast<std::size_t>(channels) * sizeof(Pair);
      emit_sums(Pass::forward, [op](const Args& args, std::int64_t c) { leave_statistics<T>(args, op, c); });
      emit({Pass::forward}, [op, tail](const Args& args, std::int64_t c) {
        const auto [mean, square] = joint_pair(args.saved, c);
        normalise<T>(args, op, tail, c, {mean, std::max(0.0, square - mean * mean)});
      });
    } else {
      emit({Pass::forward}, [op, tail](const Args& args, std::int64_t c) {
        normalise<T>(args, op, tail, c, mean_and_variance<T>(args.x[0], whole_channel(args.y.shape, c)));
      });
    }
    emit({Pass::recompute}, [tail](const Args& args, std::int64_t c) {
      write_channel(args, tail, affine_of<T>(args, saved_statistics(args, c), c), whole_channel(args.y.shape, c));
    });
    const How<T> how{{adds_dx(spec, 0), adds_dx(spec, 1)}, spec.adds_dw, tail.activation};
    const auto emit_backward = [&]<Mask mask>() {
      if (of_ranks) {
        emit_sums(Pass::backward_params, [how](const Args& args, std::int64_t c) {
          joint_pair(args.scratch, c) = parameter_gradients<T, mask>(args, how, c);
        });
        emit({Pass::backward_data}, [how, ranks = op.ranks](const Args& args, std::int64_t c) {
          data_gradients<T, mask>(args, how, c, joint_pair(args.scratch, c), count_of(args.dy.shape, ranks));
        });
        return;
      }
      emit({Pass::backward_params, Pass::backward_data}, [how](const Args& args, std::int64_t c) {
        data_gradients<T, mask>(args, how, c, parameter_gradients<T, mask>(args, how, c), count_of(args.dy.shape, 1));
      });
    };
    switch (mask_of(tail)) {
      case Mask::none: emit_backward.template operator()<Mask::none>(); break;
      case Mask::from_y: emit_backward.template operator()<Mask::from_y>(); break;
      case Mask::from_x: emit_backward.template operator()<Mask::from_x>(); break;
      case Mask::by_rows: emit_backward.template operator()<Mask::by_rows>(); break;
    }
  });
  return unit;
}

}  // namespace lamina::eigen
