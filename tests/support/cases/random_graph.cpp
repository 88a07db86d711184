// Random networks.

#include "tests/support/cases/random_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "lamina/error.h"
#include "tests/support/cases/random_case.h"

namespace lamina::test {
namespace {

class Builder {
 public:
  explicit Builder(Dice& dice) : dice_(dice), graph_("random") {
    const int n = dice(1, 3);
    keep(graph_.input({n, dice(2, 5), dice(3, 6), dice(3, 6)}, "x0"));
    if (dice.chance(0.3)) keep(graph_.input({n, dice(2, 5), dice(3, 6), dice(3, 6)}, "x1"));
    if (dice.chance(0.3)) words(n);
  }

  void step() {
    switch (dice_(0, 20)) {
      case 0:
      case 1:
      case 2: return normalisation();
      case 3: return keep(relu(read(), name("relu")));
      case 4: return keep(dropout(read(), name("dropout"), {.rate = 0.25, .seed = 7}));
      case 5:
      case 6: return sum();
      case 7: return join();
      case 8: return part();
      case 9: return sequence();
      case 10: return product();
      case 11: return residual();
      default: return any();
    }
  }

  Graph finish() && {
    // Values without a reader are reduced to three numbers per image and summed.
    std::vector<Value> loose;
    for (const Entry& entry : values_)
      if (entry.reads == 0) loose.push_back(entry.value);
    std::vector<Value> heads;
    for (const Value x : loose) heads.push_back(fully_connected(x, name("fc"), {.outputs = 3}));
    Value y = heads[0];
    for (std::size_t i = 1; i < heads.size(); ++i) y = add(y, heads[i], name("total"));
    const int loss = dice_(0, 5);
    if (loss == 0) softmax_cross_entropy(y, graph_.input({y.shape().n, 1, 1, 1}, "labels"), "loss", {.clip = 1e-7});
    if (loss == 1) sigmoid_cross_entropy(y, graph_.input(y.shape(), "labels"), "loss");
    return std::move(graph_);
  }

 private:
  struct Entry {
    Value value;
    int reads;
  };

  std::string name(std::string_view op) { return std::string(op) + std::to_string(names_++); }
  void keep(Value value) { values_.push_back({value, 0}); }

  Value read(std::size_t i) {
    ++values_[i].reads;
    return values_[i].value;
  }

  /// Picks a value to read. Newer values are more likely, so that chains grow.
  Value read() {
    const int last = static_cast<int>(values_.size()) - 1;
    return read(static_cast<std::size_t>(dice_.chance(0.6) ? last : dice_(0, last)));
  }

  /// Adds any op of one input that keeps maps small.
  void any() {
    const Value x = read();
    for (;;) {
      const Op op = random_op(dice_, x.shape());
      try {
        if (infer(op, {x.shape()}).y.image() <= 300) return keep(apply(op, {x}, name(op_name(op))));
      } catch (const ShapeError&) {  // the op does not accept the shape: try again
      }
    }
  }

  void normalisation() {
    const Value x = read();
    // Few values or a small epsilon make functions too steep for differences.
    if (std::int64_t{x.shape().n} * x.shape().plane() < 8) return keep(relu(x, name("relu")));
    Value y = batch_norm(x, name("batch_norm"), {.epsilon = 0.01});
    if (dice_.chance(0.3)) y = add(y, shortcut(y.shape()), name("add"));
    keep(dice_.chance(0.6) ? relu(y, name("relu")) : y);
  }

  /// A value of this shape: an existing value, a convolution of a fitting value, or a new input.
  Value shortcut(const Shape& shape) {
    std::vector<std::size_t> equal;
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (values_[i].value.shape() == shape) equal.push_back(i);
    if (!equal.empty()) return read(equal[static_cast<std::size_t>(dice_(0, static_cast<int>(equal.size()) - 1))]);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      Shape other = values_[i].value.shape();
      other.c = shape.c;
      if (other == shape) return conv(read(i), name("projection"), {.channels = shape.c, .kernel = 1});
    }
    return graph_.input(shape, name("input"));
  }

  void sum() {
    const Value x = read();
    const Value other = shortcut(x.shape());
    keep(dice_.chance(0.5) ? add(x, other, name("add")) : add(other, x, name("add")));
  }

  void join() {
    const Value x = read();
    std::vector<Value> parts = {x, conv(x, name("branch"), {.channels = dice_(1, 3), .kernel = 3, .pad = 1})};
    if (dice_.chance(0.5)) parts.push_back(shortcut(x.shape()));
    if (dice_.chance(0.5)) parts.push_back(relu(conv(x, name("branch"), {.channels = 2, .kernel = 1}), name("relu")));
    std::swap(parts.front(), parts[static_cast<std::size_t>(dice_(0, static_cast<int>(parts.size()) - 1))]);
    keep(concat(parts, name("concat")));
  }

  void part() {
    const Value x = read();
    const Slice op = random_slice(dice_, x.shape());
    const Value y = slice(x, name("slice"), op);
    keep(dice_.chance(0.3) ? concat({x, y, y}, name("concat"), {op.axis}) : y);
  }

  /// Multiplies by numbers between -1 and 1, so that chains of products do not grow: gates per plane, pixel or element,
  /// and squares.
  void product() {
    const Value x = read();
    if (dice_.chance(0.3)) {
      const Value gate = sigmoid(conv(x, name("gate"), {.channels = 1, .kernel = 1}), name("sigmoid"));
      return keep(dice_.chance(0.5) ? multiply(gate, x, name("multiply"))
                                    : divide(x, pointwise(gate, name("exp"), {Function::exp}), name("divide")));
    }
    if (dice_.chance(0.5)) {
      const Value mean = global_average_pool(x, name("global_average_pool"));
      const Value gate = conv(mean, name("gate"), {.channels = x.shape().c, .kernel = 1});
      return keep(multiply(x, sigmoid(gate, name("sigmoid")), name("multiply")));
    }
    const bool square = dice_.chance(0.3);
    if (dice_.chance(0.3)) {
      const Value other = shortcut(x.shape());
      return keep(dice_.chance(0.5) ? maximum(x, other, name("maximum")) : subtract(other, x, name("subtract")));
    }
    const Value limited = tanh(square || dice_.chance(0.5) ? x : shortcut(x.shape()), name("tanh"));
    const Value other = square ? limited : x;
    keep(dice_.chance(0.5) ? multiply(limited, other, name("multiply")) : multiply(other, limited, name("multiply")));
  }

  /// Embeds ids as vectors, a sequence or a map.
  void words(int n) {
    const int width = dice_.chance(0.5) ? 1 : dice_(2, 4);
    const Value ids = graph_.input({n, 1, dice_(2, 5), width}, "ids");
    keep(embedding(ids, name("embedding"), {.vocabulary = dice_(2, 6), .features = dice_(1, 4)}));
    if (width == 1 && dice_.chance(0.5))
      keep(lstm(ids, name("lstm"), {.hidden = dice_(1, 4), .reverse = dice_.chance(0.5), .vocabulary = 7}));
  }

  /// Adds an LSTM or a GRU over a value of one column. A value of several columns is first reduced to the mean of each
  /// channel, as one step.
  void sequence() {
    Value x = read();
    if (x.shape().w != 1) x = global_average_pool(x, name("global_average_pool"));
    keep(apply(Recurrent{.hidden = dice_(1, 4),
                         .cell = dice_.chance(0.5) ? Cell::lstm : Cell::gru,
                         .steps = dice_.chance(0.5) ? Steps::all : Steps::last,
                         .reverse = dice_.chance(0.5)},
               {x}, name("recurrent")));
  }

  void residual() {
    const Value x = read();
    Value y = relu(x, name("relu"));
    y = conv(y, name("conv"), {.channels = x.shape().c, .kernel = 3, .pad = 1, .bias = false});
    keep(add(x, y, name("add")));
  }

  Dice& dice_;
  Graph graph_;
  std::vector<Entry> values_;
  int names_ = 0;
};

}  // namespace

Graph random_graph(Dice& dice, int size) {
  Builder builder(dice);
  for (int i = 0; i < size; ++i) builder.step();
  return std::move(builder).finish();
}

void draw_options(Dice& dice, Options& options) {
  options.fuse = dice.chance(0.7);
  options.keep = dice.chance(0.5) ? Keep::cheap : Keep::all;
  options.input_gradient = dice.chance(0.6);
  options.accumulate_parameters = dice.chance(0.5);
  options.mode = dice.chance(0.15) ? Mode::inference : Mode::training;
}

}  // namespace lamina::test
