// LSTM and GRU on a fake cuDNN: the calls of each pass, the algorithm in the descriptor, and refusals.

#include "tests/cudnn/bound.h"
#include "tests/support/catch.h"

using namespace lamina::test;
using CallTexts = std::vector<std::string>;

namespace {

const Shape lstm_shape = {2, 4, 5, 1};
const Recurrent op{.hidden = 3};
const Case training = {"", op, {lstm_shape}}, inference = {"", op, {lstm_shape}, {}, Mode::inference};

/// The calls, except calls that make, set, query or destroy descriptors and places.
CallTexts work_of(const CallTexts& calls) {
  CallTexts work;
  for (const std::string& call : calls)
    if (!call.starts_with("Create") && !call.starts_with("Destroy") && !call.starts_with("SetTensor4d") &&
        !call.starts_with("Get"))
      work.push_back(call);
  return work;
}

/// All calls except copies.
CallTexts of_sequences(CallTexts calls) {
  std::erase_if(calls, [](const std::string& call) { return call.starts_with("copy "); });
  return calls;
}

CallTexts copies(std::size_t count, int bytes) { return CallTexts(count, "copy " + std::to_string(bytes) + " bytes"); }

CallTexts operator+(CallTexts first, const CallTexts& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

/// The settings of the RNN descriptor, of which lowering makes exactly one.
std::string descriptor(FakeBackend& on, const Spec& spec, const Choice& choice = {}) {
  on.fake.forget();
  on.backend.lower(spec, choice);
  for (const std::string& call : on.fake.calls)
    if (call.starts_with("SetRNNDescriptor_v8")) return call;
  FAIL("no descriptor of a network");
  return {};
}

/// Element `k` of the matrix or bias number `place` of the library's weights, which are first in the workspace.
float weight(const BoundUnit& unit, std::size_t place, std::size_t k) {
  return static_cast<const float*>(unit.args.workspace)[place * 64 + k];
}

}  // namespace

TEST_CASE("cudnn: an LSTM's forward pass copies the weights, reorders x, computes, and reorders y") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, training));
  const CallTexts work = work_of(unit.run(Pass::forward));
  REQUIRE(work.size() == 1);
  CHECK(work[0].starts_with("RNNForward(handle, RNNDescriptor_v8 3 2 2 0 0 0 0 3 4 3 3 1 "));
  CHECK(work[0].find(", 1, to, RNNDataDescriptor 0 0 5 2 4 to null, ") != std::string::npos);
  CHECK(work[0].find(", RNNDataDescriptor 0 0 5 2 3 to null, ") != std::string::npos);
  // Each matrix and bias is one copy: 3 x 4 of weight_ih, 3 x 3 of weight_hh.
  CHECK(on.log.calls == copies(4, 48) + copies(4, 36) + copies(4, 12) + CallTexts{"to rows", "from rows"});
}

TEST_CASE("cudnn: cuDNN's LSTM has two biases: our bias, and zeros") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, training));
  auto* const bias = unit.args.w[2].as<float>();
  std::iota(bias, bias + 12, 1.0F);
  std::memset(unit.args.workspace, 0xff, on.fake.rnn_weight_bytes);  // the workspace begins with the weights
  unit.run(Pass::forward);
  for (std::size_t gate = 0; gate < 4; ++gate)
    for (std::size_t k = 0; k < 3; ++k) {
      CHECK(weight(unit, 8 + gate, k) == bias[3 * gate + k]);
      CHECK(weight(unit, 12 + gate, k) == 0);
    }
}

TEST_CASE("cudnn: LSTM weights that are adjacent in the library's memory are copied together") {
  FakeBackend on;
  on.fake.rnn_place_step = 3 * 3 * sizeof(float);  // bytes of a recurrent matrix
  BoundUnit unit(on, spec_of(on, training));
  unit.run(Pass::forward);
  CHECK(on.log.calls == copies(4, 48) + copies(1, 144) + copies(4, 12) + CallTexts{"to rows", "from rows"});
}

TEST_CASE("cudnn: the gate n of a GRU has biases of x and h, and the other gates' biases of h are zeros") {
  FakeBackend on;
  BoundUnit gru(on, spec_of(on, {"", Recurrent{.hidden = 3, .cell = Cell::gru}, {lstm_shape}}));
  auto* const bias = gru.args.w[2].as<float>();
  std::iota(bias, bias + 12, 1.0F);
  CHECK(work_of(gru.run(Pass::forward))[0].starts_with("RNNForward(handle, RNNDescriptor_v8 3 3 2 0 0 0 0 3 4 3 3 1 "));
  CHECK(on.log.calls == copies(3, 48) + copies(3, 36) + copies(4, 12) + CallTexts{"to rows", "from rows"});
  const std::size_t places[] = {8, 9, 10, 13, 11, 12};  // biases of x: r, z, n; biases of h: n (m), then r, z
  for (std::size_t gate = 0; gate < 6; ++gate) CHECK(weight(gru, places[gate], 0) == (gate < 4 ? bias[3 * gate] : 0));
  const CallTexts back = work_of(gru.run(Pass::backward_params));  // two calls, and then one for each gradient
  for (std::size_t i = 2; i < 12; ++i)
    CHECK_THAT(back.at(i), ContainsSubstring(i < 5 ? "f32 1x1x1x12 " : i < 8 ? "f32 1x1x1x9 " : "f32 1x1x1x3 "));
}

TEST_CASE("cudnn: an LSTM's backward pass preserves the reserve, computes data before weights, and adds if wanted") {
  FakeBackend on;
  on.fake.rnn_place_step = 3 * 3 * sizeof(float);
  on.fake.rnn_reserve_bytes = 770;  // no multiple of the size of a float
  for (const bool adds : {false, true}) {
    BoundUnit unit(on, spec_of(on, training, {.dtype = DType::f32, .adds = adds}));
    on.log.calls.clear();
    const int zeros = on.log.device.copies;
    const CallTexts all = unit.run(Pass::backward_params), work = work_of(all);
    for (const std::string& call : all) CHECK(!call.starts_with("Create"));  // lowering made every descriptor
    CHECK(on.log.device.copies == zeros + 2);                                // the weights and their gradients
    const CallTexts weights = copies(4, 48) + copies(1, 144) + copies(4, 12);
    const std::string back = adds ? "from rows, adds" : "from rows";
    const CallTexts beside = weights + copies(1, 770) + CallTexts{"to rows", "to rows", back};
    CHECK(on.log.calls == beside);
    CHECK(work == work_of(unit.run(Pass::backward_data)));
    CHECK(on.log.calls == beside + beside);
    CHECK(names_of(work) == CallTexts{"RNNBackwardData_v8", "RNNBackwardWeights_v8"} + CallTexts(9, "TransformTensor"));
    CHECK(work.back().find(adds ? ", 1, f32 1x1x1x3 " : ", 0, f32 1x1x1x3 ") != std::string::npos);
  }
}

TEST_CASE("cudnn: an LSTM that returns its last step reads the library's last state, and its gradient enters there") {
  FakeBackend on;
  const Recurrent last{.hidden = 3, .steps = Steps::last, .reverse = true};
  BoundUnit unit(on, spec_of(on, {"", last, {lstm_shape}}));
  const CallTexts forward = work_of(unit.run(Pass::forward));
  CHECK(forward.back().find(", TensorNdDescriptor 0 3 to to, null, y, TensorNdDescriptor") != std::string::npos);
  CHECK(on.log.calls.back() == "to rows in reverse");
  const int zeros = on.log.device.copies;
  const CallTexts backward = work_of(unit.run(Pass::backward_data));
  CHECK(on.log.device.copies == zeros + 3);  // the weights, their gradients, dy of all steps
  REQUIRE(backward.front().starts_with("RNNBackwardData_v8"));
  CHECK(backward.front().find(", TensorNdDescriptor 0 3 to to, null, dy, null, ") != std::string::npos);
  CHECK(on.log.calls.back() == "from rows in reverse");
}

TEST_CASE("cudnn: in inference an LSTM saves nothing and queries the sizes for inference") {
  FakeBackend on;
  on.fake.rnn_reserve_bytes = 0;
  BoundUnit unit(on, spec_of(on, inference));
  CHECK(unit.lowered.saved_bytes == 0);
  CHECK(unit.lowered.steps.size() == 1);
  CHECK(unit.run(Pass::forward).back().ends_with(", 0, null)"));
}

TEST_CASE("cudnn: an LSTM has four algorithms, and all passes must take the same one") {
  FakeBackend on;
  const Spec spec = spec_of(on, training);
  const CallTexts names = on.backend.algorithms(spec, Pass::forward);
  CHECK(names == CallTexts{"persist_small_h", "standard", "persist_static", "persist_dynamic"});
  CHECK(on.backend.algorithms(spec, Pass::backward_data) == names);
  CHECK(on.backend.algorithms(spec, Pass::recompute).empty());
  for (const auto& [name, number] : {std::pair{"standard", "0"},
                                     {"persist_static", "1"},
                                     {"persist_dynamic", "2"},
                                     {"persist_small_h", "3"},
                                     {"", "3"}}) {
    INFO(name);
    const Choice choice{.algorithm = {name, "", name}};
    CHECK(descriptor(on, spec, choice).find(", " + std::string(number) + ", 2, 2, 0, 0, ") != std::string::npos);
    CHECK(std::ranges::count(on.fake.names(), "BuildRNNDynamic") == (std::string(name) == "persist_dynamic" ? 1 : 0));
    const Lowered lowered = on.backend.lower(spec, choice);
    for (const Lowered::Step& step : lowered.steps)
      CHECK(step.algorithm == (std::string(name).empty() ? "persist_small_h" : name));
  }
  CHECK_THROWS_AS(on.backend.lower(spec, {.algorithm = {"standard", "", "persist_static"}}), Unsupported);
  CHECK_THROWS_AS(on.backend.lower(spec, {.algorithm = {"direct", "", ""}}), UsageError);
}

TEST_CASE("cudnn: an LSTM with many hidden values, or in f64, takes the standard algorithm by default") {
  FakeBackend on;
  const auto first = [&](int hidden, DType dtype, Mode mode) {
    Case c{"", Recurrent{.hidden = hidden}, {lstm_shape}};
    c.mode = mode;
    return on.backend.algorithms(spec_of(on, c, {.dtype = dtype}), Pass::forward).front();
  };
  CHECK(first(128, DType::f32, Mode::training) == "persist_small_h");
  CHECK(first(129, DType::f32, Mode::training) == "standard");
  CHECK(first(192, DType::f32, Mode::inference) == "persist_small_h");
  CHECK(first(193, DType::f32, Mode::inference) == "standard");
  CHECK(first(3, DType::f64, Mode::training) == "standard");
}

TEST_CASE(
    "cudnn: if the library refuses the fast LSTM algorithm, the standard one is taken, unless the fast one was named") {
  FakeBackend on;
  const Spec spec = spec_of(on, training);
  CHECK(on.backend.lower(spec, {}).steps[0].algorithm == "persist_small_h");
  on.fake.status["RNNForward"] = 3000;
  const Lowered lowered = on.backend.lower(spec, {});
  for (const Lowered::Step& step : lowered.steps) {
    CHECK(step.algorithm == "standard");
    CHECK(step.reason == "rule: the library refuses persist_small_h here");
  }
  CHECK(on.backend.lower(spec, {.algorithm = {"persist_small_h", "", ""}}).steps[0].algorithm == "persist_small_h");
  on.fake.status["RNNForward"] = 4000;  // a failure, not a refusal
  CHECK_THROWS_AS(on.backend.lower(spec, {}), DeviceError);
}

TEST_CASE("cudnn: an LSTM gets ids as one-hot vectors, and gives them no gradient") {
  FakeBackend on;
  Recurrent of_ids = op;
  of_ids.vocabulary = 9;
  of_ids.reverse = true;
  const Spec spec = spec_of(on, {"", of_ids, {{2, 1, 5, 1}}}, {.dtype = DType::f32, .wants = {false}});
  CHECK(descriptor(on, spec).find(", 0, 0, 3, 9, 3, 3, 1, ") != std::string::npos);  // one-hot vectors of 9 features
  BoundUnit unit(on, spec);
  on.log.calls.clear();
  unit.run(Pass::forward);
  CHECK(of_sequences(on.log.calls) == CallTexts{"to one-hot rows of 9 in reverse", "from rows in reverse"});
  on.log.calls.clear();
  unit.run(Pass::backward_params);
  CHECK(of_sequences(on.log.calls) == CallTexts{"to one-hot rows of 9 in reverse", "to rows in reverse"});
}

TEST_CASE("cudnn: an LSTM uses strict math unless tf32 is requested") {
  FakeBackend on;
  const Spec spec = spec_of(on, training);
  CHECK(descriptor(on, spec).find(", 0, 0, 3, 4, 3, 3, 1, ") != std::string::npos);
  CHECK(descriptor(on, spec, {.math = Math::tf32}).find(", 0, 0, 0, 4, 3, 3, 1, ") != std::string::npos);
  const Spec f64 = spec_of(on, training, {.dtype = DType::f64});
  CHECK(descriptor(on, f64).find(", 1, 1, 0, 4, 3, 3, 1, ") != std::string::npos);  // the library's only math for f64
  CHECK_THROWS_AS(on.backend.lower(f64, {.math = Math::tf32}), Unsupported);
}

TEST_CASE("cudnn: an LSTM that the library does not support is refused before anything runs") {
  const auto refuses = [](FakeBackend& backend, const Recurrent& lstm, const std::string& word,
                          const Choice& choice = {}) {
    const Spec spec = spec_of(backend, {"", lstm, {lstm_shape}});
    CHECK_THROWS_MATCHES(backend.backend.lower(spec, choice), Unsupported, Says(word));
  };
  FakeBackend old(8907);
  refuses(old, op, "8.9.7");
  FakeBackend on;
  refuses(on, {.hidden = 3, .gates = Gates::hard_sigmoid}, "logistic");
  refuses(on, op, "max_error", {.max_error = 1e-3});
  refuses(on, op, "workspace", {.workspace_limit = 100});
  const Spec nhwc = spec_of(on, training, {.dtype = DType::f32, .layout = Layout::nhwc});
  CHECK_THROWS_AS(on.backend.lower(nhwc, {}), Unsupported);
  on.fake.status["SetRNNDescriptor_v8"] = 3000;
  refuses(on, op, "SetRNNDescriptor_v8");
  on.fake.status.clear();
  on.log.unavailable = "no device";
  refuses(on, op, "device");
}
