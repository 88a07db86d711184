#pragma once
// Convolutions whose groups have one channel, as sums over taps along the rows of planes.
//
// forward           y at (p, q) = sum over taps of w[r][s] * what the tap reads of x
// backward_data     the same of dy, for one residue of the positions of x modulo the stride after the other
// backward_params   dw[r][s] = sum over positions of dy * what the tap reads of x
//
// A band of rows of a plane is copied with its border of zeros, sorted by residues modulo the stride, into memory that
// stays in the first-level cache. There a tap is an offset, for any pad, stride and dilation.

#include <string>
#include <vector>

#include "conv.h"
#include "lib/backends/eigen/gemm/gemm.h"

namespace lamina::eigen {

constexpr const char* depthwise_name = "depthwise";

std::string depthwise_refusal(const ConvUnit&);
Lowered::Step depthwise_step(const ConvUnit&, Pass, const Choice&, const Context&);
double depthwise_error(const ConvUnit&, Pass, const Context&);

/// Rows of a grid of positions, and what the taps read for them.
struct Band {
  std::int64_t rows;
  std::int64_t plane, ld;             ///< of the copy: elements from channel to channel, from row to row
  std::vector<std::int64_t> offsets;  ///< into the copy: of the taps of residue 0, then of residue 1, ...: each those
                                      ///< of all channels
};

/// The bands of a grid, from copies of planes.
class Bands {
 public:
  /// At most `most_rows` rows each. `residues` has the first tap of each residue, and then the number of taps.
  Bands(Columns columns, std::int64_t rows, std::int64_t cols, std::vector<std::int64_t> residues, int lanes,
        std::size_t element_bytes, std::int64_t most_rows);

  static constexpr std::int64_t copied_bytes = 16 * 1024;  ///< of planes that are copied at once: half a cache

  std::int64_t count() const { return divide_up(rows_, whole_.rows); }
  std::int64_t first_row(std::int64_t band) const { return band * whole_.rows; }
  const Band& operator[](std::int64_t band) const { return band + 1 < count() ? whole_ : last_; }
  const Band& largest() const { return whole_; }

  /// Copies the planes [0, planes) of `source` as far as a band reads them.
  template <class T>
  void copy(std::int64_t band, const Source<T>& source, std::int64_t planes, const MicroKernels<T>& kernels,
            T* to) const {
    columns_.stage({first_row(band) * cols_, (*this)[band].rows * cols_}, source, 0, planes, kernels, to);
  }

 private:
  Band band_of(std::int64_t first, std::int64_t rows, int lanes) const;

  Columns columns_;
  std::int64_t rows_, cols_;
  std::vector<std::int64_t> residues_;
  Band whole_, last_;
};

/// dw and db.
template <class T>
class TapGradients {
 public:
  TapGradients(const ConvUnit&, const MicroKernels<T>&);
  std::size_t workspace_bytes(int threads) const;
  void run(const Args&, ThreadPool&) const;
  /// The roundings of a term in its own type, and in double.
  struct Roundings {
    std::int64_t own, in_double;
  };
  Roundings roundings() const;

 private:
  /// Of some groups of one thread.
  struct Sums {
    T* copy;
    T* sums;         // a vector for each weight, then for each bias
    double* totals;  // of each of them
    T* ones;
  };
  Sums allocate(ScratchAllocator&) const;
  std::int64_t group_weights() const { return c_.group_filters() * c_.filter_weights(); }
  std::int64_t group_sums() const { return group_weights() + (c_.op.bias ? c_.group_filters() : 0); }
  void add_band(const Args&, std::int64_t image, std::int64_t band, std::int64_t first, std::int64_t last,
                const Sums&) const;
  void flush(std::int64_t groups, const Sums&) const;
  void store(const Args&, std::int64_t first, std::int64_t last, const Sums&) const;

  ConvUnit c_;
  const MicroKernels<T>* kernels_;
  Bands bands_;
  std::int64_t groups_at_once_, bands_at_once_;
};

extern template class TapGradients<float>;
extern template class TapGradients<double>;

}  // namespace lamina::eigen
