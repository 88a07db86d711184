// Recurrent by the library's calls for recurrent networks, from 9.0 on: 8 reads the lengths from the device's memory.
//
//   persist_small_h, persist_static, persist_dynamic   the recurrent weights stay on the chip
//   standard                                           a product per step
//
// The library takes no ids, so ids become one-hot vectors. It reads and writes sequences by steps, then images: our
// kernels transpose them, and reverse the steps where the op does. All passes have one algorithm, because backward
// reads the reserve space of forward. Every pass copies the weights to the places that the library names, never to
// computed offsets. The persist_ algorithms take no descriptor with one bias, so there are two: the op's bias, and a
// second bias beside the recurrent weights. The second bias is zero, except for the gate n of a GRU: there it is the
// op's fourth bias, m (lamina/ops/sequences.h).
//
// Only a run shows whether the library has persist_small_h for this device and these sizes. If the rule takes
// persist_small_h, lowering tries it on temporary memory, and takes standard if the library refuses.

#include <array>

#include "lib/backends/cudnn/library/common.h"
#include "lib/core/device/math_environment.h"
#include "lib/core/units/scratch_allocator.h"

namespace lamina::cudnn {
namespace {

struct Algorithm {
  const char* name;
  int number;
};
constexpr std::array<Algorithm, 4> all_algorithms = {{{"persist_small_h", rnn::persist_small_h},
                                                      {"standard", rnn::standard},
                                                      {"persist_static", rnn::persist_static},
                                                      {"persist_dynamic", rnn::persist_dynamic}}};

/// The largest number of hidden values for which the rule takes persist_small_h, as in PyTorch.
int small_hidden(Mode mode) { return mode == Mode::training ? 128 : 192; }

const Algorithm& rule(const Recurrent& op, const Spec& spec) {
  const bool small = spec.y.dtype != DType::f64 && op.hidden <= small_hidden(spec.mode);
  return all_algorithms[small ? 0 : 1];
}

/// The algorithm of all passes.
const Algorithm& taken(const Recurrent& op, const Spec& spec, const Choice& choice) {
  const Algorithm* found = nullptr;
  for (const std::string& name : choice.algorithm) {
    if (name.empty()) continue;
    const auto* const named = std::find_if(all_algorithms.begin(), all_algorithms.end(),
                                           [&](const Algorithm& algorithm) { return name == algorithm.name; });
    if (named == all_algorithms.end())
      throw UsageError("cudnn: " + to_string(Op(op)) + ": unknown algorithm '" + name +
                       "'; there are persist_small_h, standard, persist_static, persist_dynamic");
    if (found != nullptr && found != named)
      refuse(op, "all passes have one algorithm; name one, not " + std::string(found->name) + " and " + name);
    found = named;
  }
  return found == nullptr ? rule(op, spec) : *found;
}

void check(const Recurrent& op, const Spec& spec, const Choice& choice, Session& session) {
  if (op.gates != Gates::logistic) refuse(op, "the library has logistic gates only");
  if (choice.max_error < no_bound) refuse(op, "no bound on its error is documented; leave max_error out");
  check_math("cudnn: " + to_string(Op(op)), spec.y.dtype, choice.math);
  check_math_environment("cudnn: " + to_string(Op(op)), spec.y.dtype, choice.math, Products::of_cudnn);
  if (session.api().major() < 9)
    refuse(op, "cuDNN " + session.api().number() +
                   " reads the lengths of sequences from the device's memory; give 9.0 or later");
  if (!session.has_device()) refuse(op, "the library tells the sizes of its memory only for a device");
}

/// The descriptors and calls of a unit. Each pass brings the addresses.
class Sequence : Calls {
 public:
  Sequence(const Recurrent& op, const Spec& spec, const Algorithm& algorithm, Math math, Session& in)
      : Calls(in, spec.y.dtype),
        op_(op),
        training_(spec.mode == Mode::training),
        adds_dx_(lamina::adds_dx(spec, 0)),
        adds_dw_(spec.adds_dw),
        images_(spec.x[0].shape.n),
        channels_(op.vocabulary != 0 ? op.vocabulary : spec.x[0].shape.c),
        steps_(spec.x[0].shape.h),
        dropout_(api),
        rnn_(api),
        x_(describe_rows(channels_)),
        y_(describe_rows(op.hidden)),
        state_(describe_state()),
        of_matrix_(api),
        of_bias_(api) {
    HandleObject* const handle = session.handle();
    LAMINA_CUDNN(api, SetDropoutDescriptor, dropout_.get(), handle, 0.0F, nullptr, 0, 0);
    // For f64 the manual lists the standard math type only.
    const bool standard = math == Math::tf32 || dtype == DType::f64;
    LAMINA_CUDNN(api, SetRNNDescriptor_v8, rnn_.get(), algorithm.number, op.cell == Cell::gru ? rnn::gru : rnn::lstm,
                 rnn::both_biases, rnn::one_direction, rnn::linear_input, data_type_of(dtype), data_type_of(dtype),
                 standard ? math_type::standard : math_type::fma, channels_, op.hidden, op.hidden, 1, dropout_.get(),
                 rnn::takes_padding);
    if (algorithm.number == rnn::persist_dynamic) LAMINA_CUDNN(api, BuildRNNDynamic, handle, rnn_.get(), images_);
    LAMINA_CUDNN(api, GetRNNWeightSpaceSize, handle, rnn_.get(), &weight_bytes_);
    LAMINA_CUDNN(api, GetRNNTempSpaceSizes, handle, rnn_.get(), training_ ? rnn::training : rnn::inference, x_.get(),
                 &work_bytes_, &reserve_bytes_);
    for (std::size_t parameter = 0; parameter < 3 && training_; ++parameter)
      for (int count = 1; count <= gates(parameter); ++count) {
        const auto elements = static_cast<int>(count * gate_size(parameter));
        gradients_.push_back(describe(api, Shape{1, 1, 1, elements}, dtype, Layout::nchw, elements));
      }
  }

  /// Whether the library accepts a forward pass. Runs a pass and waits for it.
  bool works() const {
    Device& device = session.machine().device();
    const Buffer memory(device, bytes_of<Trial>());
    device.fill(memory.data(), 0, memory.size_bytes());
    ScratchAllocator allocator(memory.data());
    const Trial trial(*this, allocator);
    try {
      call_forward(trial.memory, trial.kept, trial.last);
      device.synchronize();
      return true;
    } catch (const Unsupported&) {
      return false;
    }
  }

  std::size_t saved_bytes() const { return bytes_of<Saved>(); }
  std::size_t forward_bytes() const { return bytes_of<ForwardMemory>() + (training_ ? 0 : bytes_of<Saved>()); }
  std::size_t backward_bytes() const { return bytes_of<BackwardMemory>(); }

  void forward(const Args& args) const {
    ScratchAllocator workspace(args.workspace), saved(args.saved);
    const ForwardMemory memory(*this, workspace);
    const Saved kept(*this, training_ ? saved : workspace);
    write_weights(args, memory.weights);
    session.machine().to_rows(args.x[0], op_.reverse, op_.vocabulary, memory.x);
    const bool last = op_.steps == Steps::last;
    call_forward(memory, kept, last ? args.y.data : nullptr);
    if (!last) session.machine().from_rows(kept.y, op_.reverse, args.y, false);
  }

  void backward(const Args& args) const {
    ScratchAllocator workspace(args.workspace), saved(args.saved);
    const BackwardMemory memory(*this, workspace);
    const Saved kept(*this, saved);
    HandleObject* const handle = session.handle();
    write_weights(args, memory.weights);
    // The first of the two calls changes the reserve. It gets a copy, because a pass may be repeated.
    copy(memory.reserve, kept.reserve, reserve_bytes_);
    session.machine().to_rows(args.x[0], op_.reverse, op_.vocabulary, memory.x);
    const bool last = op_.steps == Steps::last;
    if (last) {
      fill_with_zeros(memory.dy, rows_bytes(op_.hidden));
    } else {
      session.machine().to_rows(args.dy, op_.reverse, 0, memory.dy);
    }
    LAMINA_CUDNN(api, RNNBackwardData_v8, handle, rnn_.get(), nullptr, y_.get(), kept.y, memory.dy, x_.get(), memory.dx,
                 state_.get(), nullptr, last ? args.dy.data : nullptr, nullptr, state_.get(), nullptr, nullptr, nullptr,
                 weight_bytes_, memory.weights, work_bytes_, memory.work, reserve_bytes_, memory.reserve);
    session.check_parts(Use::backward_data);
    fill_with_zeros(memory.dweights, weight_bytes_);
    LAMINA_CUDNN(api, RNNBackwardWeights_v8, handle, rnn_.get(), rnn::add_gradient, nullptr, x_.get(), memory.x,
                 state_.get(), nullptr, y_.get(), kept.y, weight_bytes_, memory.dweights, work_bytes_, memory.work,
                 reserve_bytes_, memory.reserve);
    session.check_parts(Use::backward_params);
    read_gradients(args, memory.dweights);
    if (wanted(args, 0)) session.machine().from_rows(memory.dx, op_.reverse, args.dx[0], adds_dx_);
  }

 private:
  int gates(std::size_t parameter) const { return parameter == 2 ? 4 : op_.matrices(); }

  struct Saved {
    void *reserve, *y;
    Saved(const Sequence& s, ScratchAllocator& memory)
        : reserve(s.take(memory, s.reserve_bytes_)), y(s.take(memory, s.rows_bytes(s.op_.hidden))) {}
  };
  struct ForwardMemory {
    void *weights, *x, *work;
    ForwardMemory(const Sequence& s, ScratchAllocator& memory)
        : weights(s.take(memory, s.weight_bytes_)),
          x(s.take(memory, s.rows_bytes(s.channels_))),
          work(s.take(memory, s.work_bytes_)) {}
  };
  struct BackwardMemory : ForwardMemory {
    void *dweights, *dx, *dy, *reserve;
    BackwardMemory(const Sequence& s, ScratchAllocator& memory)
        : ForwardMemory(s, memory),
          dweights(s.take(memory, s.weight_bytes_)),
          dx(s.take(memory, s.rows_bytes(s.channels_))),
          dy(s.take(memory, s.rows_bytes(s.op_.hidden))),
          reserve(s.take(memory, s.reserve_bytes_)) {}
  };

  struct Trial {
    ForwardMemory memory;
    Saved kept;
    void* last;
    Trial(const Sequence& s, ScratchAllocator& allocator)
        : memory(s, allocator), kept(s, allocator), last(s.take(allocator, s.rows_bytes(s.op_.hidden))) {}
  };

  void call_forward(const ForwardMemory& memory, const Saved& kept, void* last) const {
    LAMINA_CUDNN(api, RNNForward, session.handle(), rnn_.get(), training_ ? rnn::training : rnn::inference, nullptr,
                 x_.get(), memory.x, y_.get(), kept.y, state_.get(), nullptr, last, state_.get(), nullptr, nullptr,
                 weight_bytes_, memory.weights, work_bytes_, memory.work, reserve_bytes_,
                 reserve_bytes_ == 0 ? nullptr : kept.reserve);
    session.check_parts(Use::forward);
  }

  template <class Memory>
  std::size_t bytes_of() const {
    return allocated_bytes([&](auto& memory) { Memory(*this, memory); });
  }
  static void* take(ScratchAllocator& memory, std::size_t bytes) {
    return memory.take<std::byte>(static_cast<std::int64_t>(aligned(bytes)));
  }
  std::size_t rows_bytes(int features) const {
    return static_cast<std::size_t>(std::int64_t{steps_} * images_ * features) * size_of(dtype);
  }

  RnnDataDescriptor describe_rows(int features) const {
    RnnDataDescriptor rows(api);
    const std::vector<int> lengths(static_cast<std::size_t>(images_), steps_);
    LAMINA_CUDNN(api, SetRNNDataDescriptor, rows.get(), data_type_of(dtype), rnn::steps_first, steps_, images_,
                 features, lengths.data(), nullptr);
    return rows;
  }
  TensorDescriptor describe_state() const {
    TensorDescriptor state(api);
    const int extents[] = {1, images_, op_.hidden}, strides[] = {images_ * op_.hidden, op_.hidden, 1};
    LAMINA_CUDNN(api, SetTensorNdDescriptor, state.get(), data_type_of(dtype), 3, extents, strides);
    return state;
  }
  /// Number of elements of one gate of weight_ih, weight_hh or bias.
  std::int64_t gate_size(std::size_t parameter) const {
    return std::int64_t{op_.hidden} * (parameter == 0 ? channels_ : parameter == 1 ? op_.hidden : 1);
  }

  /// Copies bytes. cudnnTransformTensor multiplies by 1, which may change bits, and the reserve need not hold numbers.
  void copy(void* to, const void* from, std::size_t bytes) const { session.machine().copy(to, from, bytes); }
  void fill_with_zeros(void* to, std::size_t bytes) const { session.machine().device().fill(to, 0, bytes); }

  /// Calls work(parameter, first element, elements, place) for each run of weights that the library keeps together.
  template <class Work>
  void for_each_place(const void* weights, const Work& work) const {
    for (std::size_t parameter = 0; parameter < 3; ++parameter) {
      const std::int64_t size = gate_size(parameter);
      char* run = nullptr;
      std::int64_t first = 0, count = 0;
      for (int gate = 0; gate < gates(parameter); ++gate) {
        char* const place = place_of(weights, parameter, gate);
        if (run != nullptr && place == run + static_cast<std::size_t>(count) * size_of(dtype)) {
          count += size;
          continue;
        }
        if (run != nullptr) work(parameter, first, count, run);
        run = place, first = gate * size, count = size;
      }
      work(parameter, first, count, run);
    }
  }
  char* place_of(const void* weights, std::size_t parameter, int gate) const {
    void *matrix = nullptr, *bias = nullptr;
    // cuDNN numbers products with x first, then with h. The fourth bias of a GRU, m, is beside the last product.
    const int beside = gate == op_.matrices() ? gate + 2 : gate;
    LAMINA_CUDNN(api, GetRNNWeightParams, session.handle(), rnn_.get(), 0, weight_bytes_, weights,
                 parameter == 1 ? gate + op_.matrices() : beside, of_matrix_.get(), &matrix, of_bias_.get(), &bias);
    void* const place = parameter == 2 ? bias : matrix;
    if (place == nullptr)
      throw DeviceError("cudnn: " + to_string(Op(op_)) + ": cudnnGetRNNWeightParams knows no place for " +
                        std::string(parameter_names(op_)[parameter]) + ", gate " + std::to_string(gate));
    return static_cast<char*>(place);
  }

  void write_weights(const Args& args, void* weights) const {
    fill_with_zeros(weights, weight_bytes_);  // also the second bias
    for_each_place(weights, [&](std::size_t parameter, std::int64_t first, std::int64_t count, void* place) {
      copy(place, static_cast<const char*>(args.w[parameter].data) + static_cast<std::size_t>(first) * size_of(dtype),
           static_cast<std::size_t>(count) * size_of(dtype));
    });
  }
  void read_gradients(const Args& args, const void* dweights) const {
    for_each_place(dweights, [&](std::size_t parameter, std::int64_t first, std::int64_t count, const void* place) {
      if (args.dw.size() <= parameter || !args.dw[parameter]) return;
      const auto before = static_cast<std::int64_t>(parameter) * gates(0), together = count / gate_size(parameter);
      const TensorDescriptor& all = gradients_[static_cast<std::size_t>(before + together - 1)];
      LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), all.get(), place, beta(dtype, adds_dw_),
                   all.get(),
                   static_cast<char*>(args.dw[parameter].data) + static_cast<std::size_t>(first) * size_of(dtype));
    });
  }

  Recurrent op_;
  bool training_, adds_dx_, adds_dw_;
  int images_, channels_, steps_;
  DropoutDescriptor dropout_;
  RnnDescriptor rnn_;
  RnnDataDescriptor x_, y_;
  TensorDescriptor state_;
  TensorDescriptor of_matrix_,
      of_bias_;  // outputs of cudnnGetRNNWeightParams; not read, but all known programs pass them
  std::vector<TensorDescriptor> gradients_;  // gradients by parameter, then by the number of joined gates
  std::size_t weight_bytes_ = 0, work_bytes_ = 0, reserve_bytes_ = 0;
};

}  // namespace

std::vector<std::string> recurrent_algorithms(const Spec& spec) {
  const char* const first = rule(std::get<Recurrent>(spec.op), spec).name;
  std::vector<std::string> names = {first};
  for (const Algorithm& algorithm : all_algorithms)
    if (algorithm.name != first) names.emplace_back(algorithm.name);
  return names;
}

Lowered lower(const Recurrent& op, const Spec& spec, const Choice& choice, Session& session) {
  const Algorithm* algorithm = &taken(op, spec, choice);
  check(op, spec, choice, session);
  const auto make = [&] { return std::make_shared<const Sequence>(op, spec, *algorithm, choice.math, session); };
  auto sequence = make();
  const bool named = std::ranges::any_of(choice.algorithm, [](const std::string& name) { return !name.empty(); });
  std::string reason = named ? "named" : "rule: by hidden values and type";
  if (!named && algorithm->number == rnn::persist_small_h && !sequence->works()) {
    reason = "rule: the library refuses persist_small_h here";
    algorithm = &all_algorithms[1];
    sequence = make();
  }
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = true;
  const auto emit = [&](std::vector<Pass> passes, auto run, std::size_t bytes) {
    unit.steps.push_back(step(std::move(passes), algorithm->name, std::move(run), bytes));
    check_workspace("cudnn: " + to_string(Op(op)), choice, unit.steps.back());
    unit.steps.back().math = choice.math;
    unit.steps.back().reason = reason;
  };
  emit(
      {Pass::forward}, [sequence](const Args& args) { sequence->forward(args); }, sequence->forward_bytes());
  if (spec.mode == Mode::inference) return unit;
  unit.saved_bytes = sequence->saved_bytes();
  emit(
      {Pass::backward_params, Pass::backward_data}, [sequence](const Args& args) { sequence->backward(args); },
      sequence->backward_bytes());
  return unit;
}

}  // namespace lamina::cudnn
