// Recurrent: the choice of kernels, and the products over all steps.
//
//   persistent  all steps in one launch, a block for some images; for LSTMs of at most 128 hidden values, the default
//   steps       a launch per step; for any number of hidden values
//   steps+gemm  the same, with our own products: needs no cuBLAS
//
// Forward copies x to rows, multiplies them by the input weights (for ids: takes columns of the weights) and runs the
// steps. Backward is one call for weights and x. Its steps write the gradients of the gates' arguments as rows.
// Products of these rows with x, h and the input weights give the other gradients. cuBLAS computes the products if it
// can be opened and the limit allows its workspace; else our own kernels do.

#include "kernels/recurrent/recurrent.h"

#include <limits>

#include "by_cublas.h"
#include "kernels/bias.h"
#include "lib/core/units/scratch_allocator.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr const char *persistent_name = "persistent", *own_products_name = "steps+gemm";

struct Layer {
  RecurrentExtent extent;
  int channels;    ///< channels of x; for ids the vocabulary's size, as if one-hot
  int vocabulary;  ///< size of the vocabulary; 0: x is not ids
  bool training, persistent, wants_dx, add_dx, add_dw;
  Machine* blas;  ///< machine whose blas() makes the products; null: our own kernels do

  int gates() const { return 4 * extent.hidden; }
  int products() const { return extent.matrices() * extent.hidden; }  ///< rows of weights
  /// Number of rows of weight_hh, from the first, whose gates are neighbours in `dgates`: all; in a GRU those of r, z.
  int together() const { return (extent.gru ? 2 : 4) * extent.hidden; }
  int rows() const { return extent.images * extent.steps; }
};

/// The arguments of the gates: the input weights times the rows of x.
template <class T>
GemmProblem<T> forward_product(const Layer& l, const T* w, const T* rows, T* gates) {
  return {l.products(), l.rows(), l.channels, w, l.channels, 1, rows, 1, l.channels, gates, 1, l.gates(), false};
}

/// The gradient of the weights of `gates` neighbouring gates: dgates^T times rows of `columns` numbers.
template <class T>
GemmProblem<T> weight_product(const Layer& l, int gates, const T* dgates, const T* rows, int columns, T* dw) {
  return {gates, columns, l.rows(), dgates, 1, l.gates(), rows, columns, 1, dw, columns, 1, l.add_dw};
}

template <class T>
GemmProblem<T> data_product(const Layer& l, const T* dgates, const T* w, T* dx) {
  return {l.rows(), l.channels, l.products(), dgates, l.gates(), 1, w, l.channels, 1, dx, l.channels, 1, false};
}

/// The numbers that forward keeps for backward. In inference they are in the workspace.
template <class T>
struct Saved {
  T* gates;
  T* cells;
  Saved(const Layer& l, ScratchAllocator& memory)
      : gates(memory.take<T>(std::int64_t{l.rows()} * l.gates())),
        cells(memory.take<T>(std::int64_t{l.rows()} * l.extent.hidden)) {}
};

template <class T>
struct ForwardMemory {
  T* turned;  // the recurrent weights, transposed
  T* rows;    // rows of x
  T* state;
  void* product;  // workspace of the product
  ForwardMemory(const Layer& l, ScratchAllocator& memory)
      : turned(memory.take<T>(l.persistent ? std::int64_t{l.gates()} * l.extent.hidden : 0)),
        rows(memory.take<T>(l.vocabulary != 0 ? 0 : std::int64_t{l.rows()} * l.channels)),
        state(memory.take<T>(l.persistent ? 0 : recurrent_steps_state(l.extent))),
        product(memory.take<char>(
            l.vocabulary != 0 ? 0
                              : static_cast<std::int64_t>(product_bytes(l.blas, forward_product<T>(l, {}, {}, {}))))) {}
};

template <class T>
struct BackwardMemory {
  T* dgates;
  T* h;     // h of the previous step
  T* rows;  // rows of x, then of dx
  T* state;
  void* product;  // workspace of the product or of the bias gradient
  BackwardMemory(const Layer& l, ScratchAllocator& memory)
      : dgates(memory.take<T>(std::int64_t{l.rows()} * l.gates())),
        h(memory.take<T>(std::int64_t{l.rows()} * l.extent.hidden)),
        rows(memory.take<T>(l.vocabulary != 0 ? 0 : std::int64_t{l.rows()} * l.channels)),
        state(memory.take<T>(l.persistent ? 0 : recurrent_steps_state(l.extent))),
        product(memory.take<char>(static_cast<std::int64_t>(std::max(
            {bias_gradient_bytes(l.gates(), l.rows()),
             product_bytes(l.blas, weight_product<T>(l, l.products(), {}, {}, l.channels, {})),
             product_bytes(l.blas, weight_product<T>(l, l.together(), {}, {}, l.extent.hidden, {})),
             l.extent.gru ? product_bytes(l.blas, weight_product<T>(l, l.extent.hidden, {}, {}, l.extent.hidden, {}))
                          : 0,
             product_bytes(l.blas, data_product<T>(l, {}, {}, {}))})))) {}
};

/// Bytes of all members of `Memory`, each aligned like a workspace of cuBLAS.
template <class Memory>
std::size_t bytes_of(const Layer& l) {
  return allocated_bytes([&](auto& memory) { Memory(l, memory); }, block_alignment);
}

template <class T>
void forward(Stream stream, const Layer& l, const Args& args) {
  ScratchAllocator workspace(args.workspace, block_alignment), saved(args.saved, block_alignment);
  const ForwardMemory<T> memory(l, workspace);
  const Saved<T> kept(l, l.training ? saved : workspace);
  const View<const T> x = view<const T>(args.x[0]);
  const T* const w = args.w[0].as<const T>();
  if (l.vocabulary != 0) {
    recurrent_choose(stream, l.extent, w, l.vocabulary, x, kept.gates);
  } else {
    recurrent_to_rows(stream, x, {l.extent.reverse}, memory.rows);
    multiply(l.blas, stream, forward_product<T>(l, w, memory.rows, kept.gates), memory.product);
  }
  RecurrentForwardProblem<T> p;
  p.extent = l.extent;
  p.w = args.w[1].as<const T>();
  p.turned = memory.turned;
  p.bias = args.w[2].as<const T>();
  p.gates = kept.gates;
  p.cells = kept.cells;
  p.y = view<T>(args.y);
  if (!l.persistent) return recurrent_forward_steps(stream, p, memory.state);
  recurrent_to_rows(stream, View<const T>{p.w, 1, l.gates(), l.extent.hidden, 1, 0}, {}, memory.turned);
  lstm_forward_persistent(stream, p);
}

template <class T>
void backward(Stream stream, const Layer& l, const Args& args) {
  ScratchAllocator workspace(args.workspace, block_alignment), saved(args.saved, block_alignment);
  const BackwardMemory<T> memory(l, workspace);
  const Saved<T> kept(l, saved);
  const View<const T> x = view<const T>(args.x[0]);
  RecurrentBackwardProblem<T> p;
  p.extent = l.extent;
  p.w = args.w[1].as<const T>();
  p.gates = kept.gates;
  p.cells = kept.cells;
  p.dy = view<const T>(args.dy);
  p.dgates = memory.dgates;
  p.h = memory.h;
  if (l.persistent) {
    lstm_backward_persistent(stream, p);
  } else {
    recurrent_backward_steps(stream, p, memory.state);
  }
  const auto dw = [&](std::size_t i) { return args.dw.size() > i ? args.dw[i].as<T>() : nullptr; };
  if (dw(0) != nullptr && l.vocabulary != 0) {
    recurrent_choose_gradient(stream, l.extent, x, l.vocabulary, memory.dgates, dw(0), l.add_dw);
  } else if (dw(0) != nullptr) {
    recurrent_to_rows(stream, x, {l.extent.reverse}, memory.rows);
    multiply(l.blas, stream, weight_product<T>(l, l.products(), memory.dgates, memory.rows, l.channels, dw(0)),
             memory.product);
  }
  const int hidden = l.extent.hidden, together = l.together();
  if (dw(1) != nullptr)
    multiply(l.blas, stream, weight_product<T>(l, together, memory.dgates, memory.h, hidden, dw(1)), memory.product);
  if (dw(1) != nullptr && l.extent.gru)
    multiply(l.blas, stream,
             weight_product<T>(l, hidden, memory.dgates + 3 * hidden, memory.h, hidden,
                               dw(1) + std::int64_t{together} * hidden),
             memory.product);
  if (dw(2) != nullptr)
    bias_gradient(stream, Masked<T>{{memory.dgates, l.rows(), l.gates(), 1, 1, l.gates()}, {}}, dw(2), l.add_dw,
                  memory.product);
  if (!l.wants_dx || !wanted(args, 0)) return;
  multiply(l.blas, stream, data_product<T>(l, memory.dgates, args.w[0].as<const T>(), memory.rows), memory.product);
  recurrent_from_rows(stream, static_cast<const T*>(memory.rows), {l.extent.reverse}, view<T>(args.dx[0]), l.add_dx);
}

/// The algorithm of a step for these passes: named by the choice, or the best. A step has only one name.
std::string algorithm_of(const std::string& unit, const Recurrent& op, const Choice& choice,
                         const std::vector<Pass>& passes) {
  const std::vector<std::string> known = recurrent_algorithms(op);
  std::string named;
  for (const Pass pass : passes) {
    const std::string& name = choice.algorithm[static_cast<std::size_t>(pass)];
    if (name.empty()) continue;
    if (!named.empty() && name != named)
      throw Unsupported(unit + ": the gradients of weights and x are one call; name one algorithm for both, not " +
                        named + " and " + name);
    named = name;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (name == persistent_name)
      throw Unsupported(unit + ": persistent is for LSTMs of at most " + std::to_string(lstm_persistent_hidden) +
                        " hidden values; use steps");
    throw UsageError(unit + ": no algorithm '" + name + "'; there are: persistent, steps, steps+gemm");
  }
  return named.empty() ? known.front() : named;
}

}  // namespace

std::vector<std::string> recurrent_algorithms(const Recurrent& op) {
  if (op.cell == Cell::gru || op.hidden > lstm_persistent_hidden) return {"steps", own_products_name};
  return {persistent_name, "steps", own_products_name};
}

Lowered lower(const Recurrent& op, const Spec& spec, const Choice& choice, Machine& machine) {
  const std::string unit = machine.backend + ": " + to_string(Op(op));
  const Shape& x = spec.x.at(0).shape;
  // The grid of gemm() limits the rows: 65535 tiles of 64. Ids need no product; only the type of rows() limits them.
  const std::int64_t most_rows = op.vocabulary == 0 ? 65535 * 64 : std::numeric_limits<int>::max();
  if (const std::int64_t rows = std::int64_t{x.n} * x.h; rows > most_rows)
    throw Unsupported(unit + " takes up to " + std::to_string(most_rows) + " steps of all images, not " +
                      std::to_string(rows) + "; use a smaller batch");
  Layer l{};
  l.extent = {
      x.n, x.h, op.hidden, op.reverse, op.gates == Gates::hard_sigmoid, op.steps == Steps::last, op.cell == Cell::gru};
  l.channels = op.vocabulary == 0 ? x.c : op.vocabulary;
  l.vocabulary = op.vocabulary;
  l.training = spec.mode == Mode::training;
  l.wants_dx = op.vocabulary == 0 && spec.wants_dx.at(0);
  l.add_dx = adds_dx(spec, 0);
  l.add_dw = spec.adds_dw;
  Lowered lowered = empty_unit(spec);
  lowered.backward_reads_x[0] = true;
  with_type(machine.backend, spec.y.dtype, [&]<class T>() {
    const auto add = [&](std::vector<Pass> passes, auto function, auto bytes) {
      const std::string algorithm = algorithm_of(unit, op, choice, passes);
      l.persistent = algorithm == persistent_name;
      l.blas = machine.has_blas() && algorithm != own_products_name ? &machine : nullptr;
      if (l.blas != nullptr && bytes(l) > choice.workspace_limit) l.blas = nullptr;
      if (l.blas != nullptr) machine.make_blas(spec.y.dtype);
      lowered.steps.push_back(launches(
          machine, std::move(passes), algorithm,
          [l, function](Stream stream, const Args& args) { function(stream, l, args); }, bytes(l)));
      check_workspace(unit, choice, lowered.steps.back());
    };
    add({Pass::forward}, forward<T>, [](const Layer& layer) {
      return bytes_of<ForwardMemory<T>>(layer) + (layer.training ? 0 : bytes_of<Saved<T>>(layer));
    });
    if (!l.training) return;
    lowered.saved_bytes = bytes_of<Saved<T>>(l);
    add(gradient_passes(spec), backward<T>, bytes_of<BackwardMemory<T>>);
  });
  return lowered;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
