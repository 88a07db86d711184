#pragma once
// Losses from logits and labels.

namespace lamina {

/// The loss of a softmax, from logits, and its accuracy. A row is one pixel of one image.
///
/// x: logits N x C x H x W, labels N x 1 x H x W: the class of each row as a whole number     y: 1 x 2 x 1 x 1
/// y[0] = mean over the rows of -log p, where p = softmax(logits)[label];
/// y[1] = share of the rows whose largest logit (the first, if several are equal) is the label.
/// A row with the label -1 is ignored: neither y[0] nor y[1] counts it, and its gradient is 0. If all are ignored, y is
/// 0. With `clip`, p is limited to [clip, 1 - clip] in the loss, as Keras does, and a row whose p is outside has
/// gradient 0. The gradient follows from dy[0] alone: dlogits = dy[0] (softmax(logits) - one-hot(label)) / rows. Labels
/// have no gradient. A label that is neither -1 nor a class makes y[0] and the gradient of its row NaN. Its row counts
/// as wrong in y[1]. ShapeError: labels do not fit the logits; clip negative, or not below 0.5.
struct SoftmaxCrossEntropy {
  double clip = 0;
  bool operator==(const SoftmaxCrossEntropy&) const = default;
};

/// The loss of a sigmoid, from logits, and its accuracy. Every element is one decision.
///
/// x: logits, labels of the same shape: 0 or 1     y: 1 x 2 x 1 x 1
/// y[0] = mean of max(x, 0) - x label + log(1 + exp(-|x|)); y[1] = share of the elements with x > 0 and label 1, or x
/// <= 0 and label 0. The label -1, other labels and dy act as in SoftmaxCrossEntropy: dlogits = dy[0] (sigmoid(x) -
/// label) / decisions. With `clip`, the probability is limited to [clip, 1 - clip] in the loss, as Keras does: x is
/// limited to +-log((1 - clip) / clip), and has gradient 0 outside. ShapeError: the shapes differ; clip negative, or
/// not below 0.5.
struct SigmoidCrossEntropy {
  double clip = 0;
  bool operator==(const SigmoidCrossEntropy&) const = default;
};

}  // namespace lamina
