#pragma once
// Normalisations.

namespace lamina {

/// y = scale[c] * (x - mean[c]) / sqrt(variance[c] + epsilon) + shift[c].
///
/// Training: mean and biased variance of the batch over n,h,w; then running = (1 - momentum) running + momentum batch,
/// where the running variance uses the unbiased variance (times count / (count - 1)). Inference: mean and variance are
/// the running statistics. Parameters: scale, shift (weight and bias by name). State: running_mean, running_var.
/// ShapeError: in training (when a plan is made) fewer than two values per channel; epsilon not positive; momentum
/// outside 0 to 1; ranks below 1.
/// Ioffe, Szegedy: Batch Normalization, 2015, algorithm 1.
struct BatchNorm {
  double epsilon = 1e-5;
  double momentum = 0.1;
  int ranks = 1;  ///< number of ranks whose batches share their statistics in training (Options::sync_batch_norm_ranks)
  bool operator==(const BatchNorm&) const = default;
};

/// y = scale[c] * (x - mean) / sqrt(variance + epsilon) + shift[c], with the mean and the biased variance of the values
/// of an image in a group of C / groups neighbouring channels. `groups` = C is InstanceNorm.
///
/// With `affine`, scale and shift are parameters (weight and bias by name); without it they are 1 and 0.
/// dx = (g - mean of g - xh * mean of g xh) / sqrt(variance + epsilon), where xh is the normalised value, g = scale[c]
/// dy and the means are over the group. dscale[c] = sum of dy xh, dshift[c] = sum of dy. ShapeError: C is not divisible
/// by groups; epsilon not positive. Wu, He: Group Normalization, 2018, section 3.1.
struct GroupNorm {
  int groups;
  double epsilon = 1e-5;
  bool affine = true;
  bool operator==(const GroupNorm&) const = default;
};

/// As GroupNorm, but with the mean and the variance over the channels of one pixel, as in ConvNeXt's LayerNorm2d. For
/// vectors it is the usual LayerNorm. ShapeError: epsilon not positive. Ba and others: Layer Normalization, 2016.
struct LayerNorm {
  double epsilon = 1e-5;
  bool affine = true;
  bool operator==(const LayerNorm&) const = default;
};

/// y[c] = x[c] / (k + alpha/size * sum of x[i]^2 over i in [c - size/2, c - size/2 + size - 1])^beta, across channels;
/// the window is clipped at the ends but still divided by `size`. An even size has one channel more below c than above.
/// ShapeError: size below 1, k not positive, alpha or beta negative.
/// Krizhevsky et al. 2012, section 3.3, with alpha divided by size as Caffe, Torch, cuDNN and PyTorch do.
struct Lrn {
  int size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
  bool operator==(const Lrn&) const = default;
};

}  // namespace lamina
