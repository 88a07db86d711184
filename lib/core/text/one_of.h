#pragma once
// A concept: the type is one of several. With it, one function body serves all of them.

#include <concepts>

namespace lamina {

template <class Type, class... Types>
concept OneOf = (std::same_as<Type, Types> || ...);

}  // namespace lamina
