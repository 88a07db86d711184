// Batch normalisation, alone or with an Add and a ReLU or another function after it, channel by channel: the planes of
// a channel are read from memory once and stay in cache for the second pass. Sums are in double, in an order that does
// not depend on the number of threads. f32 results may be stored in half precision: each tensor has its own type. If
// several ranks share a batch, each pass is two calls. The first leaves sums that the caller adds up over the ranks;
// the second computes with them.

#include <utility>

#include "lib/backends/eigen/ops/norm/backward.h"
#include "lib/backends/eigen/ops/norm/forward.h"

namespace lamina::eigen {

Lowered lower(const BatchNorm& op, const Spec& spec, const Choice&, const Context& context) {
  using namespace batch_norm;
  Lowered unit = norm_unit(spec, norm_tail(spec));
  with_type(spec.y.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    const Tail<T> tail = tail_of<T>(spec, context.set);
    const auto emit = [&](std::vector<Pass> passes, auto function) {
      unit.steps.push_back(step(std::move(passes), "direct", function));
    };
    if (spec.mode == Mode::inference) {
      unit.prepared_bytes = static_cast<std::size_t>(spec.y.shape.c) * sizeof(Affine<T>);
      emit({Pass::prepare}, [op](const Args& args) { prepare<T>(args, op); });
      emit({Pass::forward}, [&pool, tail](const Args& args) { forward_inference<T>(pool, args, tail); });
      return;
    }
    /// Adds a step whose sums the caller adds up before the next step.
    const auto emit_sums = [&](Pass pass, auto function) {
      emit({pass}, function);
      unit.steps.back().cross_rank_sums = 2 * std::int64_t{spec.y.shape.c};
    };
    const bool of_ranks = op.ranks > 1;
    unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.c) * sizeof(Statistics);
    if (of_ranks) {
      unit.scratch_bytes = static_cast<std::size_t>(spec.y.shape.c) * sizeof(Pair);
      emit_sums(Pass::forward, [&pool, op](const Args& args) { leave_statistics<T>(pool, args, op); });
      emit({Pass::forward}, [&pool, op, tail](const Args& args) { forward_of_ranks<T>(pool, args, op, tail); });
    } else {
      emit({Pass::forward}, [&pool, op, tail](const Args& args) { forward_training<T>(pool, args, op, tail); });
    }
    emit({Pass::recompute}, [&pool, tail](const Args& args) {
      split_channels(pool, args.y.shape, [&](std::int64_t c) {
        write_channel(args, tail, affine_of<T>(args, saved_statistics(args, c), c), whole_channel(args.y.shape, c));
      });
    });
    const How<T> how{{adds_dx(spec, 0), adds_dx(spec, 1)}, spec.adds_dw, tail.activation};
    const auto emit_backward = [&]<Mask mask>() {
      if (of_ranks) {
        emit_sums(Pass::backward_params, [&pool, how](const Args& args) { leave_gradients<T, mask>(pool, args, how); });
        emit({Pass::backward_data},
             [&pool, how, ranks = op.ranks](const Args& args) { backward_of_ranks<T, mask>(pool, args, how, ranks); });
        return;
      }
      emit({Pass::backward_params, Pass::backward_data},
           [&pool, how](const Args& args) { backward<T, mask>(pool, args, how); });
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
