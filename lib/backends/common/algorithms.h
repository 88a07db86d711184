#pragma once
// Tables of algorithms for convolutions and fully connected ops, and their only chooser. A table is in the file of its
// op. The rule takes the first row that can run the pass within the limits of the Choice.

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "conv_unit.h"
#include "lamina/error.h"
#include "lowering.h"
#include "on_copies.h"

namespace lamina {

/// Memory that an algorithm wants prepared for its forward pass, and the step that fills it. 0 bytes: none.
struct Prepared {
  std::size_t bytes = 0;
  Lowered::Step step{};
};

/// The place of a row that the rule never takes: only a name or a measurement selects it.
constexpr int by_name_only = 100;

/// Whether the backends eigen and cuda have a table for the op.
inline bool has_table(const Op& op) { return holds<Conv, FullyConnected>(op); }

/// Whether kernels that take only f32 and f64 in nchw can read and write the unit's values directly, without copies.
inline bool takes_plain(const Spec& spec, Pass) { return !has_halves(spec) && spec.y.layout == Layout::nchw; }

/// A row of a table: one algorithm. `On` is the type of the GPU or thread pool that runs the backend's kernels.
template <class On>
struct Algorithm {
  const char* name;
  /// Whether the algorithm's kernels read and write the unit's values directly in this pass. If not, they run on
  /// copies, chunk by chunk, and the functions below get the unit of one chunk.
  bool (*takes)(const Spec&, Pass) = takes_plain;
  /// Reason why the algorithm cannot run the pass: a sentence that begins with the algorithm's name. Empty: it can.
  std::string (*refusal)(const ConvUnit&, Pass, On&) = [](const ConvUnit&, Pass, On&) { return std::string(); };
  /// Place in the rule: the lowest number comes first, by_name_only last. Rows with equal numbers keep their order.
  int (*place)(const ConvUnit&, Pass, On&);
  /// Bound on |computed - exact| over the sum of |terms|.
  double (*max_error)(const ConvUnit&, Pass, On&) = [](const ConvUnit&, Pass, On&) { return no_bound; };
  Lowered::Step (*lower)(const ConvUnit&, Pass, const Choice&, On&);
  Prepared (*prepare)(const ConvUnit&, On&) = nullptr;  ///< null: AlgorithmTable::prepare
};

/// A table. `reason` says why the rule prefers the row `first`; null: the place of that row is the only reason.
template <class On>
struct AlgorithmTable {
  std::span<const Algorithm<On>> rows;
  std::string (*reason)(const std::string& first, const ConvUnit&, Pass, On&) = nullptr;
  Prepared (*prepare)(const ConvUnit&, On&) = [](const ConvUnit&, On&) { return Prepared(); };
};

/// A row of a table for one pass of one unit, as pick() reads it.
struct Alternative {
  std::string algorithm;
  double max_error;
  /// Makes the step. A step without a kernel cannot run; its reason says why.
  std::function<Lowered::Step()> make_step;
  std::string reason{};   ///< reason why the rule puts it first, if it does
  std::string refusal{};  ///< reason why it cannot run; empty: it can
  int place = 0;
};

/// The reason why the limits of a choice exclude an alternative. Empty: they do not.
std::string excess(const Alternative&, const Lowered::Step&, const Choice&);

inline bool is_by_rule(const Alternative& alternative) { return alternative.place != by_name_only; }

/// The reason why the rule takes `taken`. `excluded`: reasons why limits exclude earlier alternatives, or empty.
std::string reason_of(const Alternative& taken, const std::vector<Alternative>& all, const std::string& excluded);

/// Throws UsageError for the name of an algorithm that is not among `all`. `where` starts the message.
[[noreturn]] void refuse_name(const std::string& where, const std::string& name, const std::vector<Alternative>& all);

/// Makes the step of the alternative that the choice names or, without a name, of the rule's first alternative that
/// fits. An alternative fits if it respects the choice's limits of error and workspace, and is deterministic where the
/// choice demands it. Throws UsageError for an unknown name, Unsupported if nothing fits. `unit` starts the messages.
inline Lowered::Step pick(const std::string& unit, Pass pass, const Choice& choice,
                          const std::vector<Alternative>& all) {
  const std::string where = unit + ", " + std::string(to_string(pass)) + ": ";
  const std::string& named = choice.algorithm[static_cast<std::size_t>(pass)];
  std::string reasons;  // why alternatives are passed over
  for (const Alternative& each : all) {
    if (named.empty() ? !is_by_rule(each) : each.algorithm != named) continue;
    std::string reason = each.refusal;
    if (reason.empty()) {
      Lowered::Step step = each.make_step();
      reason = step.kernel == nullptr ? step.reason : excess(each, step, choice);
      if (reason.empty()) {
        step.max_error = each.max_error;
        step.reason = named.empty() ? reason_of(each, all, reasons) : "named";
        return step;
      }
    }
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  if (!reasons.empty()) throw Unsupported(where + reasons);
  if (named.empty()) throw Unsupported(where + "the rule offers no algorithm");
  refuse_name(where, named, all);
}

/// One unit and the rows of its op's table.
template <class On>
class Chooser {
 public:
  /// `spec`, `on` and `halves` must outlive this object.
  Chooser(AlgorithmTable<On> table, const Spec& spec, On& on, const MixedPrecisionLowering& halves)
      : table_(table), spec_(spec), on_(on), halves_(halves), whole_(conv_unit(spec)), part_(whole_) {
    if (takes_plain(spec, Pass::forward)) return;
    copies_ = std::make_unique<OnCopies>(spec, halves);
    part_ = conv_unit(copies_->part());
  }

  /// The names of the rows that can run a pass, best guess first.
  std::vector<std::string> names(Pass pass) const {
    std::vector<std::string> can;
    if (std::ranges::find(algorithm_passes, pass) == algorithm_passes.end()) return can;
    for (const Alternative& row : alternatives(pass, {}))
      if (row.refusal.empty()) can.push_back(row.algorithm);
    return can;
  }

  /// The rows for a pass, best guess first. Rows that refuse the pass come last.
  std::vector<Alternative> alternatives(Pass pass, const Choice& choice) const {
    std::vector<Alternative> found;
    for (const Algorithm<On>& row : table_.rows) {
      const bool as_it_is = takes(row, pass);
      const ConvUnit& unit = as_it_is ? whole_ : part_;
      Alternative next{row.name, no_bound, {}};
      next.refusal = row.refusal(unit, pass, on_);
      const bool can = next.refusal.empty();
      next.place = can ? row.place(unit, pass, on_) : by_name_only;
      next.make_step = [&, pass, as_it_is] {
        Lowered::Step first = row.lower(unit, pass, choice, on_);
        if (as_it_is) return first;
        if (pass != Pass::backward_params || !copies_->sums_chunks()) return copies_->step(part_unit(), first, first);
        ConvUnit later = part_;
        later.add_dw = true;
        return copies_->step(part_unit(), first, row.lower(later, pass, choice, on_));
      };
      const bool named = choice.algorithm[static_cast<std::size_t>(pass)] == row.name;
      if (can && (named || next.place != by_name_only)) {
        const double error = row.max_error(unit, pass, on_);
        next.max_error = as_it_is ? error : copies_->error(error, pass);
      }
      found.push_back(std::move(next));
    }
    std::ranges::stable_sort(found, {}, &Alternative::place);
    const Algorithm<On>& first = *row_of(found.front().algorithm);
    if (table_.reason != nullptr)
      found.front().reason = table_.reason(first.name, takes(first, pass) ? whole_ : part_, pass, on_);
    return found;
  }

  /// Lowers the unit. pick() takes the row for each pass.
  Lowered lower(const Choice& choice) const {
    const std::string unit = unit_text(spec_, halves_);
    const Choice left = copies_ ? copies_->left_of(choice) : choice;
    Lowered lowered = product_flags(spec_);
    for (const Pass pass : product_passes(spec_))
      lowered.steps.push_back(pick(unit, pass, choice, alternatives(pass, left)));
    allow_add_in_place(lowered, spec_);
    if (!whole_.inference) return lowered;
    const Algorithm<On>& forward = *row_of(lowered.steps[0].algorithm);
    const bool as_it_is = takes(forward, Pass::forward);
    const auto prepare = forward.prepare != nullptr ? forward.prepare : table_.prepare;
    Prepared prepared = prepare(as_it_is ? whole_ : part_, on_);
    if (prepared.bytes == 0) return lowered;
    prepared.step.algorithm = forward.name;
    lowered.prepared_bytes = prepared.bytes;
    lowered.steps.push_back(as_it_is ? prepared.step : copies_->step(part_unit(), prepared.step, prepared.step));
    check_workspace(unit, choice, lowered.steps.back());
    return lowered;
  }

 private:
  bool takes(const Algorithm<On>& row, Pass pass) const { return !copies_ || row.takes(spec_, pass); }

  const Algorithm<On>* row_of(const std::string& name) const {
    return &*std::ranges::find(table_.rows, name, &Algorithm<On>::name);
  }

  /// The unit of one chunk, without steps.
  Lowered part_unit() const {
    Lowered part = product_flags(copies_->part());
    allow_add_in_place(part, copies_->part());
    return part;
  }

  void allow_add_in_place(Lowered& unit, const Spec& spec) const {
    if (whole_.add) unit.y_may_alias_x[1] = same_pitch(spec, 1) && spec.x[1].dtype == spec.y.dtype;
  }

  AlgorithmTable<On> table_;
  const Spec& spec_;
  On& on_;
  const MixedPrecisionLowering& halves_;
  std::unique_ptr<const OnCopies> copies_;
  ConvUnit whole_, part_;
};

}  // namespace lamina
