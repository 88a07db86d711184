#pragma once
// A concept for a function of several types: one body for all of them.

#include <concepts>

namespace lamina {

template <class Type, class... Types>
concept OneOf = (std::same_as<Type, Types> || ...);

}  // namespace lamina
