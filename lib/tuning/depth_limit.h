#pragma once
// A limit of how deep JSON of others may be nested.

namespace lamina {

/// For the JSON library's parse(): leaves out what is nested deeper than any file of ours. Such values need the stack
/// for each level when they are copied, printed or destroyed.
template <class Json>
bool not_too_deep(int depth, typename Json::parse_event_t /*event*/, Json& /*value*/) {
  constexpr int deepest = 100;
  return depth <= deepest;
}

}  // namespace lamina
