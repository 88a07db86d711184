#pragma once
// A limit on how deeply JSON from others may be nested.

namespace lamina {

/// A callback for the JSON library's parse(): leaves out what is nested deeper than any file of ours. Such values need
/// stack for each level when they are copied, printed or destroyed.
template <class Json>
bool not_too_deep(int depth, typename Json::parse_event_t /*event*/, Json& /*value*/) {
  constexpr int deepest = 100;
  return depth <= deepest;
}

}  // namespace lamina
