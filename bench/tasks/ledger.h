#pragma once
// Where a network's time goes: every call of its plan timed by itself, and their sum against the whole.

#include <string>
#include <vector>

#include "io/print.h"
#include "io/text_table.h"
#include "measure/costs.h"
#include "measure/session.h"

namespace lamina::bench {

struct LedgerOptions : PlanningSettings {
  std::vector<std::string> networks{};
  Format format = Format::text;
  int passes = 0;  ///< 0: 10 on a GPU, 3 on a processor
};

struct LedgerEntry {
  std::string layers;  ///< "conv1", "bn1 + relu"
  std::string pass;
  std::string algorithm;
  double seconds = 0;           ///< median over the passes
  double flops = 0, bytes = 0;  ///< as Call::cost has them
};

struct Ledger {
  std::vector<LedgerEntry> entries;                  ///< biggest first
  double forward_seconds = 0, backward_seconds = 0;  ///< of the same plan, timed whole without stamps; medians
  GraphCost moved, alone;                            ///< by the plan's calls, and by each pass of each op alone
  int passes = 0;                                    ///< fewer than asked: interrupted; 0: there are no times
  double sum() const;
  double whole() const { return forward_seconds + backward_seconds; }
};

/// Interrupted, the pass that runs is the last.
Ledger make_ledger(Session&, const Config&, int passes);

/// Prints the ledgers of all networks, backends and batches that the options name, as text or CSV, each when it is
/// measured. Interrupted, prints what there is, and says on standard error what is missing.
void ledgers(Session&, const LedgerOptions&, const Print&);

}  // namespace lamina::bench
