#pragma once
// The taps of a data gradient along one axis.

#include <map>
#include <vector>

namespace lamina::eigen {

/// A tap along one axis: its index in the kernel and what it reads, relative to a position.
struct AxisTap {
  int index, offset;
};

/// The taps of dy that reach the positions of x of each residue modulo the stride, by residue. Only residues below
/// `extent` that some tap reaches are listed. Position i of a residue reads dy at i + offset.
inline std::map<int, std::vector<AxisTap>> taps_of_residues(int extent, int kernel, int stride, int pad, int dilation) {
  std::map<int, std::vector<AxisTap>> taps;
  for (int i = 0; i < kernel; ++i) {
    const int first = i * dilation - pad, residue = first % stride + (first % stride < 0 ? stride : 0);
    if (residue < extent) taps[residue].push_back({i, (residue - first) / stride});
  }
  return taps;
}

}  // namespace lamina::eigen
