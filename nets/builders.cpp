// The application of options to a network, and the pairs of ops that every network has.

#include "builders.h"

namespace lamina::nets {

Value images(Graph& graph, int channels, const Options& options) {
  return graph.input({options.batch, channels, options.image, options.image});
}

int width(int published, const Options& options, int groups) {
  const auto divided_up = [](int value, int by) { return (value + by - 1) / by; };
  return divided_up(divided_up(published, options.width_divisor), groups) * groups;
}

Value conv_bn(Value x, const std::string& conv_name, const std::string& bn_name, Conv op) {
  op.bias = false;
  return batch_norm(conv(x, conv_name, op), bn_name);
}

Value conv_relu(Value x, const std::string& conv_name, const std::string& relu_name, const Conv& op) {
  return relu(conv(x, conv_name, op), relu_name);
}

Value fully_connected_relu(Value x, const std::string& fc_name, const std::string& relu_name, int outputs) {
  return relu(fully_connected(x, fc_name, {.outputs = outputs}), relu_name);
}

Value dropout_if(const Options& options, Value x, const std::string& name, double rate) {
  return options.dropout ? dropout(x, name, {.rate = rate}) : x;
}

Value softmax_if(const Options& options, Value x, const std::string& name) {
  return options.softmax ? softmax(x, name) : x;
}

}  // namespace lamina::nets
