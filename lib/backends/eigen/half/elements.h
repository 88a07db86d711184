#pragma once
// Elements of a tensor for a kernel that computes in T. Their type is T or, if T is float, a half type.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "conversions.h"
#include "lib/backends/eigen/runtime/elements.h"
#include "lib/backends/eigen/runtime/non_temporal.h"

namespace lamina::eigen {

constexpr std::int64_t elements_of_room = 512;
constexpr std::int64_t least_run = 128;  // elements; shorter runs would split too many lines of memory

/// Room for some elements, in cache.
template <class T>
struct Room {
  alignas(line_bytes) T elements[elements_of_room];
};

/// The address of `count` elements from `at` on, at most elements_of_room: in the tensor or, for halves, widened in
/// `room`. With `ahead` the elements after them are prefetched.
template <class T>
const T* load(const Tensor& tensor, std::int64_t at, std::int64_t count, Room<T>& room, bool ahead = false) {
  if constexpr (std::is_same_v<T, float>)
    if (is_half(tensor.dtype)) {
      const auto* const halves = tensor.as<const std::uint16_t>() + at;
      if (ahead) prefetch_ahead(halves, count);
      widen(room.elements, halves, count, tensor.dtype);
      return room.elements;
    }
  const T* const from = tensor.as<const T>() + at;
  if (ahead) prefetch_ahead(from, count);
  return from;
}

/// Copies elements of a tensor, from `at` on, to numbers of T, or back; halves are widened, or rounded.
template <class T>
void take_numbers(T* to, const Tensor& from, std::int64_t at, std::int64_t count) {
  if constexpr (std::is_same_v<T, float>)
    if (is_half(from.dtype)) return widen(to, from.as<const std::uint16_t>() + at, count, from.dtype);
  std::copy_n(from.as<const T>() + at, count, to);
}
template <class T>
void put_numbers(const Tensor& to, std::int64_t at, const T* from, std::int64_t count) {
  if constexpr (std::is_same_v<T, float>)
    if (is_half(to.dtype)) return narrow(to.as<std::uint16_t>() + at, from, count, to.dtype);
  std::copy_n(from, count, to.as<T>() + at);
}

/// The elements that a kernel writes: in the tensor, or in a room. From the room they are narrowed, or copied by
/// non-temporal stores.
template <class T>
class Output {
 public:
  /// Stores are non-temporal if the tensor is large, shares no memory with a tensor in `reads`, and its old numbers are
  /// not needed (`reads_itself` is false). `run`: number of elements that are written one after another; stores of
  /// short runs are normal.
  Output(const Tensor& tensor, bool reads_itself, std::initializer_list<const Tensor*> reads,
         std::int64_t run = elements_of_room)
      : tensor_(tensor),
        non_temporal_(!reads_itself && run >= least_run &&
                      (is_half(tensor.dtype) ? wants_non_temporal<std::uint16_t>(tensor.shape)
                                             : wants_non_temporal<T>(tensor.shape)) &&
                      std::ranges::none_of(reads, [&](const Tensor* its) { return same_place(*its, tensor); })) {}
  ~Output() {
    if (non_temporal_) non_temporal_fence();
  }
  Output(const Output&) = delete;

  bool in_place() const { return !non_temporal_ && !is_half(tensor_.dtype); }

  /// The address to write elements to, from `at` on. `count` is at most elements_of_room, or more if the tensor's type
  /// is T and finish() gets the address of another room. With `adds` the address holds the present numbers.
  T* begin(std::int64_t at, std::int64_t count, bool adds) {
    at_ = at;
    count_ = count;
    if constexpr (std::is_same_v<T, float>)
      if (is_half(tensor_.dtype)) {
        if (!non_temporal_) prefetch_to_write(tensor_.as<std::uint16_t>() + at, count);
        if (adds) load(tensor_, at, count, room_);
        return room_.elements;
      }
    if (non_temporal_) return room_.elements;
    prefetch_to_write(tensor_.as<T>() + at, count);
    return tensor_.as<T>() + at;
  }

  /// Stores the elements that were written at `from`.
  void finish(const T* from) {
    if constexpr (std::is_same_v<T, float>)
      if (is_half(tensor_.dtype)) {
        auto* const halves = tensor_.as<std::uint16_t>() + at_;
        narrow(non_temporal_ ? narrowed_.elements : halves, from, count_, tensor_.dtype);
        if (non_temporal_) copy_non_temporal(halves, narrowed_.elements, count_);
        return;
      }
    if (non_temporal_) copy_non_temporal(tensor_.as<T>() + at_, from, count_);
  }

 private:
  Tensor tensor_;
  bool non_temporal_;
  std::int64_t at_ = 0, count_ = 0;
  Room<T> room_;
  Room<std::uint16_t> narrowed_;
};

/// Calls write(to, i, some) for each chunk of the `count` elements from `at` on. The call writes `some` elements, from
/// element i on, to `to`, or adds to the numbers there.
template <class T, class Write>
void write_chunks(Output<T>& output, std::int64_t at, std::int64_t count, bool adds, const Write& write) {
  for (std::int64_t i = 0; i < count; i += elements_of_room) {
    T* const to = output.begin(at + i, std::min(elements_of_room, count - i), adds);
    write(to, i, std::min(elements_of_room, count - i));
    output.finish(to);
  }
}

/// Element at + i = number(i), or += number(i).
template <class T, class Number>
void write_each(Output<T>& output, std::int64_t at, std::int64_t count, bool adds, const Number& number) {
  write_chunks(output, at, count, adds, [&](T* to, std::int64_t first, std::int64_t some) {
    put_each(to, some, adds, [first, number](std::int64_t i) { return number(first + i); });
  });
}

}  // namespace lamina::eigen
