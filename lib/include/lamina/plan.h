#pragma once
// A graph ready to run on a backend: memory laid out, pointers bound, all decisions made.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/api.h"
#include "lamina/backend.h"
#include "lamina/graph.h"
#include "lamina/optimiser.h"

namespace lamina {

class Plan;

/// What is kept until backward: everything that backward reads or, with `cheap`, only what is expensive to recompute.
enum class Keep : std::uint8_t { all, cheap };

struct Options {
  Mode mode = Mode::training;
  DType dtype = DType::f32;  ///< type of values and gradients; whole numbers and losses have parameter_dtype(dtype)
  Layout layout = Layout::nchw;
  Choice choice{};  ///< algorithms for all units: a named algorithm applies to the units that have it, the other units
                    ///< pick; a name that no unit has is a UsageError
  std::map<std::string, Choice> choice_of{};  ///< choices for single nodes, by name; an unknown name is a UsageError
  std::shared_ptr<Tuner> tuner{};             ///< tuner of choices with `measure`: make_tuner() of lamina/tuning.h
  bool fuse = true;
  Keep keep = Keep::all;
  bool keep_values = false;     ///< whether every value can be read afterwards (no packing, no aliasing): for tests
  bool input_gradient = false;  ///< whether to compute the gradient of every input except labels and ids
  bool accumulate_parameters = false;  ///< whether backward adds to parameter gradients instead of overwriting them
  std::uint64_t seed = 0;              ///< seed of the numbers that the constructor draws
  /// Index of this batch's first image in the global batch of all ranks: dropout's mask covers the global batch.
  std::int64_t batch_offset = 0;
  /// Number of ranks whose batches share the statistics of a batch norm in training. Above 1, the caller adds up sums
  /// over the ranks between calls (StepProperties::cross_rank_sums): a pass that gets no function throws UsageError.
  int sync_batch_norm_ranks = 1;
  std::optional<Optimiser> optimiser{};  ///< rule of update(), in training
  double clip_norm = 0;  ///< largest norm of all gradients together; update() scales them down to it. 0: no limit
  /// First scale of dynamic loss scaling (LossScale), in f32 or half precision, for a graph that ends in a loss; 0: no
  /// loss scaling. Until update() divides by it, gradients are those of the loss times the scale.
  double loss_scale = 0;
  TableUpdates table_updates = TableUpdates::dense;  ///< updates of the graph's embeddings; lazy excludes clip_norm
  /// In inference: a plan on the same backend whose parameters and state this plan uses, by name, in place of its own.
  /// They live until both plans are destroyed. After they change, call parameters_changed() of this plan, too.
  const Plan* share = nullptr;
};

/// Sizes of what a plan holds, in bytes.
struct MemoryReport {
  std::size_t parameters = 0;  ///< parameters and, in training, their gradients
  std::size_t state = 0;
  std::size_t optimiser = 0;  ///< the state of Options::optimiser
  std::size_t inputs = 0;     ///< inputs, output, and their wanted gradients
  std::size_t arena = 0;      ///< one block for everything below, packed by lifetime
  /// The blocks in the arena by kind, each counted once, and the largest workspace of a call. Their sum may exceed
  /// `arena`: blocks share memory.
  std::size_t values = 0, gradients = 0, saved = 0, scratch = 0, workspace = 0;
  std::size_t prepared = 0;
  bool workspace_exact = true;  ///< whether `workspace` is exact, or a bound (a library without device; measured picks)
  std::size_t total() const { return parameters + state + optimiser + inputs + arena + prepared; }
};

/// The memory that `Plan` would allocate. Touches no device. Throws what `Plan` throws, except for DeviceError.
LAMINA_API MemoryReport predict_memory(const Graph&, Backend&, const Options& = {});

/// Bytes in use while one unit runs, by kind. Parameters, state, inputs and prepared forms are outside the arena and
/// always there: MemoryReport has them.
struct LiveMemory {
  std::vector<int> nodes;  ///< nodes of the unit, in order
  bool backward = false;
  std::size_t values = 0, gradients = 0, saved = 0, scratch = 0, workspace = 0;
  std::size_t total() const { return values + gradients + saved + scratch + workspace; }
};

/// One entry for each step of the plan: its units forward and then, in training, backward. No total exceeds
/// MemoryReport::arena, which is larger where packing leaves gaps. Touches no device. Throws what predict_memory
/// throws.
LAMINA_API std::vector<LiveMemory> predict_live_memory(const Graph&, Backend&, const Options& = {});

/// By node: whether the gradient of its value is wanted. In inference no gradient is wanted. There are two conditions:
/// - the node or a node before it has a parameter that is not fixed, or is an input whose gradient is requested;
/// - the output depends on the value, not only through labels and ids.
LAMINA_API std::vector<bool> wanted_gradients(const Graph&, const Options& = {});

/// A unit of work: the nodes that run as one, and what a plan requests from its backend.
struct PlannedUnit {
  std::vector<int> nodes;  ///< nodes of the unit, in order
  Spec spec;
  Choice choice;
};

/// The units that `Plan` would lower, in forward order. Lowers nothing and touches no device.
/// Throws what predict_memory throws for the graph and the options.
LAMINA_API std::vector<PlannedUnit> planned_units(const Graph&, const Backend&, const Options& = {});

/// One bound call of a plan, with what its step declares.
struct Call : StepProperties {
  std::vector<int> nodes;            ///< nodes of the unit, in order
  std::shared_ptr<const Spec> spec;  ///< spec of the unit; its calls share it
  /// Lower bounds. Flops: the sum of `cost` over the unit's nodes and the call's passes, without unwanted gradients.
  /// Bytes: every tensor outside the unit that the call reads or writes, each once. A value between two nodes of a unit
  /// is not stored and does not count; nor does a gradient that shares the memory of dy. For one node and one pass both
  /// equal `cost`.
  Cost cost;
  std::size_t workspace_bytes = 0;
  std::vector<std::string> tied{};  ///< algorithms tied with the measured pick, for the call's first pass
};

/// A graph bound to memory of a backend's device.
///
/// The constructor fills parameters with normal numbers of variance 2 / fan-in (batch norm: scale 1, shift 0; biases 0;
/// running variance 1). Inputs that are read as labels or ids get valid whole numbers, equally likely (whole_numbers).
/// The output gradient of a loss gets {1, 0}. Other inputs and output gradients get standard normal numbers. A
/// counter-based generator, seeded by Options::seed and the name, gives the same numbers on every backend. Parameter
/// gradients start at zero. The plan copies what it needs of the graph, and shares ownership of its backend if a
/// shared_ptr owns the backend, as with make_backend. Any other backend must outlive the plan. On a moved-from plan
/// every function but assignment throws UsageError. One caller at a time: forward(), backward(), update() and
/// parameters_changed() throw UsageError, and run nothing, while another of them runs. Plans of one backend must not
/// run at the same time either: a caller with several threads makes a backend for each thread.
class LAMINA_API Plan {
 public:
  /// Throws OutOfMemory, DeviceError, and
  /// - ShapeError: in training batch norm over a single value; more than 2^58 bytes;
  /// - UsageError: a graph that computes nothing, a node that nobody reads, in training parameters that only labels or
  ///   ids depend on, unknown names, options out of range, a plan to share that lacks a parameter;
  /// - Unsupported: what the backend does not support.
  Plan(const Graph&, Backend&, const Options& = {});
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;

  void forward();   ///< enqueues; does not wait, does not allocate
  void backward();  ///< enqueues; throws UsageError in inference mode or without a forward since the last backward

  /// Applies the gradients to all parameters at once, by Options::optimiser. The gradients are multiplied by
  /// `gradient_scale` first (1 / k after k backward passes that were added up). With accumulate_parameters they are
  /// zero afterwards. Enqueues; does not wait, does not allocate. Throws UsageError without an optimiser, without a
  /// backward() since the last update(), for a rate below 0, and unless both numbers are finite.
  void update(double learning_rate, double gradient_scale = 1);
  std::uint64_t updates() const;  ///< number of updates so far; with loss scaling it includes those that were skipped
  void set_updates(std::uint64_t now);  ///< for a run that is resumed: Adam's correction depends on it

  /// The next three functions need Options::loss_scale; without it they throw UsageError. scale_loss() is called before
  /// backward() and sets the output's gradient to the present scale times `share`, which is 1 for the loss itself. With
  /// a share of 1 it enqueues, and does not wait. Otherwise it waits, as the other two do. None of the three allocates.
  void scale_loss(double share = 1);
  LossScale loss_scale() const;
  void set_loss_scale(const LossScale&);  ///< for a run that is resumed

  /// forward() and backward() with a function for timers: `before(i)` is called ahead of calls()[i], and once more with
  /// the next number after the last call.
  void forward(const std::function<void(std::size_t)>& before);
  void backward(const std::function<void(std::size_t)>& before);

  Tensor input(std::string_view name = {}) const;           ///< the input of that name; empty: the only input
  Tensor input_gradient(std::string_view name = {}) const;  ///< UsageError unless wanted
  Tensor output() const;                                    ///< the value of the last node
  Tensor output_gradient() const;
  Tensor value(std::string_view node) const;      ///< valid until a later step reuses its bytes; see keep_values
  Tensor gradient(std::string_view node) const;   ///< valid until a later step reuses its bytes; null if not wanted
  Tensor parameter(std::string_view name) const;  ///< "layer1.0.conv1.weight"; a shared parameter has several names
  Tensor parameter_gradient(std::string_view name) const;
  Tensor state(std::string_view name) const;         ///< "layer1.0.bn1.running_mean", "drop6.step"
  std::vector<std::string> parameter_names() const;  ///< in order of the graph; a shared parameter has its first name
  std::vector<std::string> state_names() const;
  Tensor optimiser_state(std::string_view name) const;  ///< "conv1.weight.velocity"
  std::vector<std::string> optimiser_state_names() const;

  /// Makes the prepared forms again. Call it after writing to parameters or state.
  void parameters_changed();

  const Graph& graph() const;
  Backend& backend() const;
  const Options& options() const;
  const MemoryReport& memory() const;
  const std::vector<Call>& calls() const;  ///< forward's, then backward's, in running order
  std::size_t forward_calls() const;       ///< number of calls that belong to forward
  /// The tensors that a call of calls() is bound to, as its kernel gets them. Lives as long as the plan. Throws
  /// UsageError for a number beyond the last call.
  const Args& args(std::size_t call) const;
  /// The nodes that run as one unit with `node`, in order; a value inside a unit does not exist.
  std::vector<std::string> unit_of(std::string_view node) const;

 private:
  struct Body;
  Body& body() const;
  std::unique_ptr<Body> body_;
};

/// Fills every input and, in training, the output's gradient with new numbers, as the constructor does with
/// Options::seed.
LAMINA_API void draw_inputs(const Plan&, std::uint64_t seed);

/// A block of memory and the steps between which it is needed, both included.
struct Lifetime {
  std::size_t bytes;
  int first, last;
};

/// The offset of each block, and the length of the whole.
struct Packing {
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
};

/// Places the largest block first, at the lowest offset that is free for the block's whole life.
/// Blocks that live at the same step do not overlap; every offset is a multiple of `alignment`, a power of two.
/// Throws UsageError for any other alignment, and if the sum of all blocks exceeds 64 bits.
LAMINA_API Packing pack(const std::vector<Lifetime>&, std::size_t alignment = 256);

}  // namespace lamina
