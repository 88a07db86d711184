#pragma once
// The contract between plans and backends: a unit of work (Spec), how it may run (Choice), the result of lowering
// (Lowered, Kernel), and the interface that lowers (Backend).

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/api.h"
#include "lamina/device.h"
#include "lamina/graph.h"
#include "lamina/op.h"
#include "lamina/shape.h"

namespace lamina {

enum class Math : std::uint8_t { strict, tf32 };  ///< strict: full fp32 products; tf32 only on request
LAMINA_API std::string_view to_string(Math);

/// What a kernel knows of a tensor before memory is allocated.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::f32;
  Layout layout = Layout::nchw;
  std::int64_t pitch = 0;           ///< pitch of the value, as in Tensor
  std::int64_t gradient_pitch = 0;  ///< pitch of its gradient, as in Tensor
  bool operator==(const TensorSpec&) const = default;
};

/// One unit of work as a backend sees it: an op and the nodes fused into it. Equal specs may be lowered once and
/// shared.
struct Spec {
  Op op;                             ///< a Dropout's seed already holds the hash of its node's name
  std::vector<Op> tail;              ///< ops fused into `op`, in order
  std::vector<TensorSpec> x;         ///< inputs of op, then the further inputs of each op of the tail
  TensorSpec y;                      ///< the last op's value
  std::vector<TensorSpec> w, state;  ///< parameters and state of op, then those of the tail; always dense
  std::vector<bool> wants_dx;        ///< per x: whether its gradient is wanted
  std::vector<bool> adds_dx;  ///< per x: whether its gradient is added to the old contents (beta 1) or overwrites them
                              ///< (beta 0). One value may be two inputs of one op: its second gradient is added to its
                              ///< first
  bool adds_dw = false;       ///< whether every parameter gradient is added to the old contents (beta 1)
  bool masks_dx = false;      ///< whether dx[0] is set to 0 where x[0] is not positive; then adds_dx[0] is false
  bool dy_is_masked = false;  ///< whether the reader of y has masks_dx, so that the tail's ReLU need not mask dy
  Mode mode = Mode::training;
  bool operator==(const Spec&) const = default;
};

/// One line: "conv(64, 3x3, pad 1x1) + relu, x 16x64x56x56 f32 nchw, ...". Equal specs have equal lines, and different
/// specs have different lines.
LAMINA_API std::string to_string(const Spec&);

constexpr double no_bound = std::numeric_limits<double>::infinity();  ///< no bound on an error

/// The passes that have algorithms, in the order of Choice::algorithm.
inline constexpr std::array algorithm_passes = {Pass::forward, Pass::backward_params, Pass::backward_data};

/// Which algorithm to run, per pass. For an empty name, the backend picks an algorithm that respects every other field.
/// The choice cache and the rows of the benchmark record the algorithms that were picked.
struct Choice {
  std::array<std::string, 3> algorithm{};  ///< names for forward, backward_params, backward_data
  bool measure = false;                    ///< whether to pick by timing, with Options::tuner, and not by rule
  bool deterministic = false;              ///< whether to run only algorithms with the same bits on every run
  Math math = Math::strict;
  bool joins_gradients = true;  ///< whether one call may compute both dx and dw, if their algorithm can
  double max_error = no_bound;  ///< largest allowed relative error, as StepProperties defines it
  std::size_t workspace_limit = std::size_t{1} << 30;  ///< most bytes of workspace of a call
  bool operator==(const Choice&) const = default;
};

/// The answer of a Tuner: the choice with an algorithm named for each pass. `tied` has the algorithms that are as fast
/// within the noise. A choice cache does not store `tied`.
struct MeasuredChoice {
  Choice choice;
  std::array<std::vector<std::string>, 3> tied{};  ///< names by pass, in the order of Choice::algorithm
};

/// The tensors of one call; `d` marks a gradient of L = <y, dy>. A null gradient is not computed. Where the spec says
/// "adds", a gradient is added to the old contents; otherwise the old contents are never read (they may be NaN).
struct Args {
  std::vector<Tensor> x, w, state;
  std::vector<Tensor> dx, dw;
  Tensor y, dy;
  void* saved = nullptr;      ///< block of saved_bytes: written by forward, perhaps again by recompute
  void* scratch = nullptr;    ///< block of scratch_bytes: live during this unit's backward steps only
  void* prepared = nullptr;   ///< block of prepared_bytes: written by prepare
  void* workspace = nullptr;  ///< block of at least workspace_bytes() of the kernel, aligned to 256, undefined on entry
};

/// One launchable piece of work. It holds descriptors and an algorithm, but no memory.
class LAMINA_API Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::size_t workspace_bytes() const { return 0; }
  virtual void run(const Args&) = 0;  ///< enqueues on the backend's device; does not wait, does not allocate
  /// Makes a kernel for these arguments alone, if some work can be done before the first run. Default: null; then this
  /// kernel runs.
  virtual std::shared_ptr<Kernel> bind(const Args&) { return nullptr; }
};

/// The properties that a step of a lowered unit declares. A plan's call of that step repeats them.
struct StepProperties {
  std::vector<Pass> passes;  ///< passes that the step covers; a call that computes dx and dw together lists both
  std::string algorithm;
  bool deterministic = true;  ///< whether every run gives the same bits
  Math math = Math::strict;   ///< math of its products
  std::int64_t cross_rank_sums =
      0;                        ///< number of f64 values that the caller sums over all ranks after this call; they are
                                ///< the first values of the saved block or, in a backward pass, of the scratch block
  double max_error = no_bound;  ///< bound on |computed - exact| / (sum of |terms|)
  bool covers(Pass pass) const { return std::find(passes.begin(), passes.end(), pass) != passes.end(); }
};

/// A unit lowered for one device: the steps of all its passes, and what they need.
/// The steps that cover backward_params run before those that cover only backward_data. A recompute step reads every x.
struct Lowered {
  struct Step : StepProperties {
    std::shared_ptr<Kernel> kernel;
    std::string reason{};  ///< reason for picking this algorithm, in words: "named", or the rule's reason; empty: there
                           ///< is only one algorithm
    /// For backward_params: a kernel for this step and the next one, backward_data by the same algorithm, with equal
    /// bits. A plan runs it instead of both. Code that wraps `kernel` wraps or clears it, too. Null: none.
    std::shared_ptr<Kernel> with_dx{};
  };
  std::vector<Step> steps;
  std::size_t saved_bytes = 0, scratch_bytes = 0, prepared_bytes = 0;
  bool workspace_exact = true;         ///< whether workspaces are exact, or upper bounds (there is no device to ask)
  std::vector<bool> backward_reads_x;  ///< per x: whether backward steps read it
  bool backward_reads_y = false;
  std::vector<bool> y_may_alias_x;    ///< per x: whether y may have the address of x[i]
  std::vector<bool> dx_is_dy;         ///< per x: whether dx[i] equals dy; if they share memory, the step is not needed
  std::vector<bool> dx_may_alias_dy;  ///< per x: whether dx[i] may have the address of dy
};

/// The rule that updates parameters p from their gradients g, and its factors. First G = gradient_scale g. If clip_norm
/// is above 0, G is multiplied by min(1, clip_norm / (norm of all G + 1e-6)). Then G += weight_decay p, p *= shrink,
/// and:
///
///     sgd        v = decay v + gain G;  u = nesterov ? decay v + gain G : v;  p -= rate u
///     rmsprop    a = decay a + gain G^2;  p -= rate G / (sqrt(a) + epsilon)
///     adadelta   a = decay a + gain G^2;  u = G sqrt(d + epsilon) / sqrt(a + epsilon);  p -= rate u;
///                d = decay d + gain u^2
///     adam       m = decay m + gain G;  v = decay2 v + gain2 G^2;  p -= rate m / (sqrt(v) root_scale + epsilon)
///
/// The first state is v, a or m. The second is d, or v in adam. Without a first state, sgd is p -= rate gain G. Adagrad
/// is rmsprop with decay 1 and gain 1. No state may share memory with another tensor.
struct UpdateFactors {
  enum class Rule : std::uint8_t { sgd, rmsprop, adadelta, adam };
  /// What corrected() does to a rule's factors in update number T: nothing, or the bias correction of Adam or of
  /// KerasAdam.
  enum class Correction : std::uint8_t { none, adam, keras_adam };
  Rule rule = Rule::sgd;
  Correction correction = Correction::none;
  bool nesterov = false;
  bool clears_gradient = false;  ///< whether g becomes zero after it was read
  double gradient_scale = 1, clip_norm = 0, weight_decay = 0, shrink = 1;
  double rate = 0, decay = 0, gain = 1, decay2 = 0, gain2 = 0, epsilon = 0, root_scale = 1;
};

/// The factors of update number `number`, counted from 1, in the form that a rule takes.
LAMINA_API UpdateFactors corrected(UpdateFactors, std::uint64_t number);

/// Dynamic loss scaling. The device keeps and adapts the scale, so the host does not wait for it. Backward passes start
/// from `scale` instead of 1, so that small gradients do not underflow in f16. An update divides the gradients by the
/// scale. If a gradient overflowed, the update is skipped: parameters and the optimiser's state keep every bit, the
/// update does not count, and the scale is halved. After `growth` updates in a row the scale is doubled.
struct LossScale {
  float scale = 0x1p16F, zero = 0;  ///< the gradients of a loss op's two outputs, loss and accuracy: {scale, 0}
  double inverse = 1;               ///< 1 / (the scale of the gradients of the present update)
  std::uint64_t updates = 0;        ///< number of updates that were not skipped: the number in Adam's correction
  std::uint32_t good = 0;           ///< updates in a row without an overflow, since the scale last changed
  std::uint32_t skips = 0;          ///< 1 if the present update is skipped, else 0

  static constexpr std::uint32_t growth = 2000;
  /// Adapts the scale. `finite`: whether all gradients of the update are finite. The scale stays a normal number.
  LAMINA_API void next(bool finite);
  bool operator==(const LossScale&) const = default;
};

/// The tensors of an update: `count` parameters in a row, their gradients and their state.
struct UpdateTensors {
  /// Length of a row in a lazy update; 0: not lazy. A row whose gradients are all 0 keeps its parameters and state.
  std::int64_t lazy_row = 0;

  DType dtype = DType::f32;
  std::int64_t count = 0;  ///< number of parameters; without lazy_row a whole number of packs of 16 bytes, at addresses
                           ///< that are multiples of 16
  void* p = nullptr;
  void* g = nullptr;
  void* first = nullptr;
  void* second = nullptr;
  /// The loss scale on the device, at the start of a block of 256 bytes; the rest of the block is the backend's. Null:
  /// no loss scaling. If it is not null, the factors are not corrected yet: only the device knows the update's number.
  LossScale* loss_scale = nullptr;
  double* sums = nullptr;  ///< room for the sums of norm_slices slices and the factor, if clip_norm is above 0

  static constexpr int norm_slices = 1024;
  static constexpr std::size_t norm_sums = norm_slices + 1;
};

/// One update: `Update{factors, tensors}`.
struct Update : UpdateFactors, UpdateTensors {};

constexpr int most_backend_threads = 1024;

struct BackendOptions {
  int threads = 0;  ///< number of threads; 0: every core this process may use, within its quota of processor time
  int device = 0;   ///< number of the device, counted from 0
  std::size_t memory_limit = std::numeric_limits<std::size_t>::max();  ///< most bytes in use; more: OutOfMemory
  std::string instruction_set{};    ///< eigen: a name that docs/backends.md lists; empty: the widest that runs here
  std::filesystem::path plans{};    ///< cudnn-graph: folder in which plans are kept; empty: no plan is kept
  std::string device_properties{};  ///< cudnn-graph: properties of an absent device, as JSON (docs/cudnn-graph.md)
};

/// Translates units into kernels for one device. The constructor touches no device and opens no library. The first call
/// that needs them does so, and may throw.
/// Kernels use what the backend owns (device, threads, library handles). The backend must therefore outlive its kernels
/// and memory. If a shared_ptr owns the backend, a plan keeps a copy of that pointer.
class LAMINA_API Backend : public std::enable_shared_from_this<Backend> {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual std::string available() const = 0;  ///< empty, or why it cannot run here and what to do about it
  virtual std::string describe() = 0;  ///< versions and origin, for the context of a result file: "cuDNN 9.19.0, ..."
  virtual Device& device() = 0;

  /// The algorithms for this unit and pass, the best guess first. Touches no device, except in cudnn-graph, whose
  /// library looks at the device.
  virtual std::vector<std::string> algorithms(const Spec&, Pass) const = 0;

  /// Whether `next` may join the spec's tail. Operand number `operand` of `next` is the y of `spec`. Default: no.
  /// Plans do not ask for an Add of more than two values, or of one value twice.
  virtual bool fuses(const Spec& spec, const Node& next, int operand) const;

  /// Whether the unit of `reader` takes over the mask of the ReLU that ends `spec`: it gives 0 as the gradient of y
  /// where y is not positive. No other unit reads this y, which is x[0] of `reader`. Default: no.
  virtual bool masks_dx(const Spec& spec, const Spec& reader) const;

  /// Whether every x and y of the unit, and their gradients, may have a pitch that is not dense. Default: no.
  virtual bool takes_pitch(const Spec&) const;

  /// Makes the kernels, picked by rule or by name. Touches no device, allocates no tensor. Throws Unsupported
  /// (op, layout, type, algorithm, a workspace limit that is too low) and UsageError (an unknown algorithm; the message
  /// lists the known algorithms).
  virtual Lowered lower(const Spec&, const Choice&) = 0;

  /// Called while a plan is made or its inputs are drawn: before each unit is lowered, before each run that a Tuner
  /// times, and before each part of the numbers is drawn. It may throw, which ends the work.
  std::function<void()> while_planning{};

  /// Updates parameters, with the same bits on every run. Enqueues; does not wait, does not allocate. Default: throws
  /// Unsupported.
  virtual void update(const Update&);

  /// For loss scaling: checks whether all `count` elements of `g` are finite, and adapts `loss_scale`. A plan calls it
  /// before the updates of one step. Enqueues; does not wait, does not allocate. Default: throws Unsupported.
  virtual void check_overflow(const UpdateTensors& all);

  /// Peak operations per second of the device's units in strict math on operands in registers; a multiply-add counts as
  /// two. Measured at every call. 0: this backend cannot measure it. Throws Unsupported for a type that it lacks.
  /// Default: 0.
  virtual double peak_flops_per_second(DType);
};

/// Picks algorithms for plans whose choices ask for measurement (Choice::measure). See make_tuner() in lamina/tuning.h.
class LAMINA_API Tuner {
 public:
  virtual ~Tuner() = default;
  /// Times the algorithms that `choice` allows, in memory that the plan lends, and names the picks.
  virtual MeasuredChoice measure(Backend&, const Spec&, const Choice&, void* buffer, std::size_t buffer_bytes) = 0;
};

/// "eigen", "cuda", "cuda-host", "cudnn", "cudnn-graph"; the last two also with ":<directory>". Touches no device.
/// Throws UsageError for an unknown name or bad options, Unsupported for a backend that was not built (the message says
/// how to get it), LoadError if this process already uses the cuDNN of another directory.
LAMINA_API std::shared_ptr<Backend> make_backend(const std::string& name, const BackendOptions& = {});

/// Every name that make_backend accepts, built or not.
LAMINA_API std::vector<std::string> backend_names();

}  // namespace lamina
