// A ledger as an entry of a result file.

#include "ledger.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

void set_known(Json& json, const char* name, double value) {
  if (value > 0) json[name] = value;
}

}  // namespace

Json ledger_json(const RowKey& key, const Ledger& ledger, const Rates& rates, int asked) {
  Json json = {{"key", fields_of(key)},
               {"passes", ledger.passes},
               {"passes_asked", asked},
               {"forward_seconds", ledger.forward_seconds},
               {"backward_seconds", ledger.backward_seconds},
               {"forward_samples", ledger.forward_samples},
               {"backward_samples", ledger.backward_samples},
               {"bytes",
                {{"forward", ledger.moved.forward.bytes},
                 {"backward", ledger.moved.backward.bytes},
                 {"forward_alone", ledger.alone.forward.bytes},
                 {"backward_alone", ledger.alone.backward.bytes}}}};
  if (rates.units.flops_per_second > 0) json["peak_is"] = rates.units.description();
  set_known(json, "peak_flops_per_second", rates.units.flops_per_second);
  for (const Moment& moment : ledger.moments) {
    json["peak_samples"].push_back(moment.flops_per_second);
    json["core_mhz_samples"].push_back(moment.clock_mhz);
  }
  set_known(json, "product_flops_per_second", rates.product_flops_per_second);
  set_known(json, "memory_bytes_per_second", rates.memory);
  json["calls"] = Json::array();
  for (const LedgerEntry* entry : ledger.in_order()) {
    Json call = {{"call", entry->call},
                 {"layers", entry->layers},
                 {"node", entry->nodes.front()},
                 {"nodes", entry->nodes},
                 {"op", entry->op},
                 {"pass", entry->passes.size() > 1 ? "backward" : to_string(entry->passes.front())},
                 {"algorithm", entry->algorithm},
                 {"seconds", entry->seconds},
                 {"samples", entry->samples},
                 {"flops", entry->flops},
                 {"bytes", entry->bytes},
                 {"workspace_bytes", entry->workspace_bytes},
                 {"live_bytes", entry->live_bytes}};
    set_known(call, "share_of_peak", entry->share_of_peak);
    set_known(call, "predicted_seconds", rates.least_seconds(entry->flops, entry->bytes));
    json["calls"].push_back(std::move(call));
  }
  return json;
}

}  // namespace lamina::bench
