#pragma once
// One of several types: a concept for functions that serve all of them, and a test of a variant.

#include <concepts>
#include <variant>

namespace lamina {

template <class Type, class... Types>
concept OneOf = (std::same_as<Type, Types> || ...);

/// Whether the op is one of these.
template <class... Ops, class Variant>
bool holds(const Variant& op) {
  return (std::holds_alternative<Ops>(op) || ...);
}

}  // namespace lamina
