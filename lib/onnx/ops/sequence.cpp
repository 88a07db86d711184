// LSTM, GRU, and Gather as a table of embeddings.

#include <algorithm>
#include <memory>

#include "lib/onnx/operators.h"

namespace lamina::onnx {
namespace {

std::vector<double> reordered(const NodeContext& context, const Constant& from, std::int64_t first, std::int64_t hidden,
                              std::int64_t columns, const Extents& gate_in_file) {
  const std::int64_t count = std::ssize(gate_in_file) * hidden * columns;
  context.consume_budget(count);
  std::vector<double> to;
  to.reserve(static_cast<std::size_t>(count));
  for (const std::int64_t gate : gate_in_file) {
    const std::int64_t begin = first + gate * hidden * columns;
    for (std::int64_t i = 0; i < hidden * columns; ++i) to.push_back(from.at(begin + i));
  }
  return to;
}

void demand_zeros(const NodeContext& context, std::size_t input, const char* what) {
  if (!context.has(input)) return;
  const Constant& constant = context.constant(input, what);
  if (!all_are(constant.values, 0.0))
    throw Refusal{"numbers other than 0 as " + std::string(what) +
                  " are not supported: export nn.LSTM or nn.GRU, called without initial states"};
}

/// The gates of each direction. A direction has an activation for its gates, then a tanh, and in an LSTM a second tanh.
std::vector<Gates> gates_of(const Attributes& node, std::size_t directions, std::size_t each) {
  std::vector<Gates> gates(directions, Gates::logistic);
  const std::vector<std::string_view> names = node.value("activations").texts;
  if (names.empty()) return gates;
  if (names.size() != each * directions)
    node.invalid("has " + std::to_string(names.size()) + " activations instead of " +
                 std::to_string(each * directions));
  const auto all = [&](const char* name, float number) { return all_are(node.value(name).numbers, number); };
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool of_gates = i % each == 0;
    if (of_gates && names[i] == "HardSigmoid") {
      if (!all("activation_alpha", 0.2F) || !all("activation_beta", 0.5F))
        throw Refusal{"its hard sigmoid is not min(max(0.2 a + 0.5, 0), 1), the one that is read"};
      gates[i / each] = Gates::hard_sigmoid;
    } else if (names[i] != (of_gates ? "Sigmoid" : "Tanh")) {
      throw Refusal{"its activation " + std::string(names[i].substr(0, 20)) +
                    ": use nn.LSTM or nn.GRU, whose gates are sigmoids"};
    }
  }
  return gates;
}

/// An LSTM or a GRU of the file. It becomes an op for each direction.
struct Recurrence {
  Cell cell;
  DynamicValue x;
  std::int64_t hidden, features;
  std::vector<Gates> gates;  ///< by direction
  bool reverse;              ///< whether the only direction is backward
};

/// Appends an op for each direction. Its value is h of all steps or of the last step.
Value append_recurrent(NodeContext& context, const Recurrence& its, Steps steps) {
  const Constant &w = context.constant(1), &r = context.constant(2);
  const bool gru = its.cell == Cell::gru;
  // LSTM: the file has i, o, f, c, and we have i, f, g = c, o. GRU: the file has z, r, h, and we have r, z, n = h.
  const Extents order = gru ? Extents{1, 0, 2} : Extents{0, 2, 3, 1};
  const std::int64_t hidden = its.hidden, features = its.features, rows = std::ssize(order) * hidden;
  std::vector<Value> values;
  for (std::size_t i = 0; i < its.gates.size(); ++i) {
    const auto d = static_cast<std::int64_t>(i);
    const std::string direction = its.gates.size() == 1 ? "" : i == 0 ? ".forward" : ".reverse";
    const Value h = context.append(Recurrent{.hidden = static_cast<int>(hidden),
                                             .cell = its.cell,
                                             .steps = steps,
                                             .gates = its.gates[i],
                                             .reverse = its.reverse || i == 1},
                                   {its.x.value}, context.name() + direction);
    const auto source = [&](std::size_t input) {
      return WeightSource{.value = context.input_name(input), .part = static_cast<int>(i)};
    };
    context.weights(h, "weight_ih_l0", {rows, features},
                    reordered(context, w, d * rows * features, hidden, features, order), w.type, source(1));
    context.weights(h, "weight_hh_l0", {rows, hidden}, reordered(context, r, d * rows * hidden, hidden, hidden, order),
                    r.type, source(2));
    std::vector<double> bias(static_cast<std::size_t>(4 * hidden), 0);
    if (context.has(3)) {
      const Constant& b = context.constant(3);
      std::ranges::copy(reordered(context, b, 2 * d * rows, hidden, 1, order), bias.begin());
      const std::vector<double> recurrent = reordered(context, b, (2 * d + 1) * rows, hidden, 1, order);
      const std::size_t apart = gru ? static_cast<std::size_t>(2 * hidden) : recurrent.size();  // start of m in a GRU
      for (std::size_t k = 0; k < recurrent.size(); ++k)
        bias[k < apart ? k : k + static_cast<std::size_t>(hidden)] += recurrent[k];
    }
    context.weights(h, "bias_l0", {4 * hidden}, std::move(bias), w.type, context.has(3) ? source(3) : WeightSource{});
    values.push_back(h);
  }
  return values.size() == 1 ? values.front() : context.append(Concat{}, values, context.name());
}

void import_recurrent(NodeContext& context) {
  DynamicValue x = context.dynamic(0);
  const bool gru = context.node().op_type == "GRU", images_first = context.integer("layout", 0) != 0;
  Shape shape = x.value.shape();
  const Extents own = extents(x.view);
  // The steps are rows, or the columns of one row.
  const std::size_t images = images_first ? 0 : 1, steps = images_first ? 1 : 0;
  if (own.size() != 3) context.invalid("has an input of " + text(own));
  if ((shape.w != 1 && shape.h != 1) || x.view[images] != axis(shape.n, shape.image()) ||
      x.view[steps] != axis(shape.plane(), 1) || x.view[2] != axis(shape.c, shape.plane())) {
    x = in_order(context, x, images_first ? "nhc" : "hnc", context.name() + ".x");
    shape = x.value.shape();
  }
  const std::string direction = context.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    context.invalid("has the direction " + direction.substr(0, 20));
  const std::int64_t directions = direction == "bidirectional" ? 2 : 1;
  const Constant &w = context.constant(1, "its weights"), &r = context.constant(2, "its recurrent weights");
  const std::int64_t hidden = r.extents.empty() ? 0 : r.extents.back(), rows = (gru ? 3 : 4) * hidden;
  if (hidden < 1 || hidden > (1 << 24) || w.extents != Extents{directions, rows, own[2]} ||
      r.extents != Extents{directions, rows, hidden})
    context.invalid("has weights of " + text(w.extents) + " and " + text(r.extents) + " for an input of " + text(own));
  if (context.has(3) && context.constant(3, "its bias").extents != Extents{directions, 2 * rows})
    context.invalid("has a bias of " + text(context.constant(3).extents));
  if (context.has(4) &&
      !all_are(context.constant(4, "the lengths of its sequences").values, static_cast<double>(own[steps])))
    throw Refusal{"its sequences differ in length: export the model without pack_padded_sequence"};
  demand_zeros(context, 5, "its initial h");
  if (!gru) {
    demand_zeros(context, 6, "its initial c");
    demand_zeros(context, 7, "its peephole weights");
  }
  if (context.has("clip")) throw Refusal{"it clips its cells: export it without a clip, as nn.LSTM and nn.GRU are"};
  if (context.integer("input_forget", 0) != 0)
    throw Refusal{"it couples input and forget gates: use nn.LSTM, which has both"};
  if (gru && context.integer("linear_before_reset", 0) == 0)
    throw Refusal{
        "its r multiplies h before the product (linear_before_reset = 0): use nn.GRU, whose r multiplies after"};
  if (!gru && context.wanted(2))
    throw Refusal{"its last c is used: export a model that uses its outputs, or its last h, alone"};

  const Recurrence its{.cell = gru ? Cell::gru : Cell::lstm,
                       .x = x,
                       .hidden = hidden,
                       .features = own[2],
                       .gates = gates_of(context, static_cast<std::size_t>(directions), gru ? 2 : 3),
                       .reverse = direction == "reverse"};
  const auto append = [context, its](Steps wanted) mutable { return append_recurrent(context, its, wanted); };
  const std::int64_t last = directions == 2 ? -1 : its.reverse ? 0 : own[steps] - 1;
  const auto recurrent =
      std::make_shared<PendingRecurrent>(PendingRecurrent{.append = append, .steps = own[steps], .last = last});
  for (const Steps wanted : {Steps::all, Steps::last}) {
    const std::size_t output = wanted == Steps::all ? 0 : 1;
    if (!context.wanted(output)) continue;
    const std::int64_t plane = wanted == Steps::all ? own[steps] : 1;
    const Axis n = axis(shape.n, directions * hidden * plane), d = axis(directions, hidden * plane);
    const Axis t = axis(plane, 1), features = axis(hidden, plane);
    View view = images_first ? View{n, t, d, features} : View{t, d, n, features};
    if (wanted == Steps::last) view.erase(view.begin() + static_cast<std::ptrdiff_t>(steps));
    context.result({.value = x.value, .view = std::move(view), .type = x.type, .recurrent = recurrent, .steps = wanted},
                   output);
  }
}

void import_gather(NodeContext& context) {
  if (!context.is_constant(0)) return import_gather_part(context);
  const Constant& table = context.constant(0, "its table");
  const DynamicValue ids = context.dynamic(1);
  const Shape shape = ids.value.shape();
  if (table.extents.empty() || shape.c != 1 || table.count() == 0) {
    throw Refusal{
        "it takes from " + text(table.extents) + " by ids of several axes: nn.Embedding is read for ids of n x steps",
        true};
  }
  const std::size_t along = axis_of(context, context.integer("axis", 0), table.extents.size());
  if (along != 0)
    throw Refusal{"axis " + std::to_string(along) + " of a table is not supported: take rows, as nn.Embedding does"};
  const std::int64_t rows = table.extents[0], features = table.count() / rows;
  const Value y = context.append(Embedding{.vocabulary = narrow(context, rows, 1, "number of rows"),
                                           .features = narrow(context, features, 1, "number of features")},
                                 {ids.value}, context.name());
  context.weights(y, "weight", {rows, features}, context.numbers(table), table.type, {context.input_name(0)});
  View view = ids.view;
  view.emplace_back();
  view = with_channels(view, ids.view.size(), shape, features);
  Extents result = extents(ids.view);  // the other axes of the table are parts of the channels
  result.insert(result.end(), table.extents.begin() + 1, table.extents.end());
  const std::optional<View> whole = reshaped(view, result);
  if (!whole) refuse_order("its channels are joined with other axes");
  context.result({.value = y, .view = *whole, .type = table.type});
}

}  // namespace

bool takes_step(NodeContext& context, std::size_t along, std::int64_t step, bool keeps_axis) {
  DynamicValue x = context.viewed(0);
  const std::shared_ptr<PendingRecurrent> made_by = context.recurrent_of(x);
  if (!made_by || made_by->steps == 1 || x.view[along] != axis(made_by->steps, 1)) return false;
  if (step != made_by->last) return false;
  std::optional<View> one = with_extent(x.view, along, 1, 1);
  if (!one) return false;
  x.recurrent = made_by;
  x.steps = Steps::last;
  x.view = *std::move(one);
  if (!keeps_axis) x.view.erase(x.view.begin() + static_cast<std::ptrdiff_t>(along));
  context.result(std::move(x));
  return true;
}

Operators sequence_operators() { return {{{"Gather"}, import_gather}, {{"GRU", "LSTM"}, import_recurrent}}; }

}  // namespace lamina::onnx
