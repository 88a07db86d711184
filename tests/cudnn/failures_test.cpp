// Every call fails once, at each place that makes the call. The error must have the right kind, and every object must
// be destroyed.

#include "tests/cudnn/bound.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

enum class Kind { none, unsupported, memory, device };

/// Lowers a case and runs all its passes. Returns the kind of error, if any.
Kind run_kernels(FakeBackend& on, const Spec& spec) {
  try {
    BoundUnit unit(on, spec);
    for (const Pass pass : {Pass::forward, Pass::recompute, Pass::backward_params, Pass::backward_data}) unit.run(pass);
    return Kind::none;
  } catch (const Unsupported&) {
    return Kind::unsupported;
  } catch (const OutOfMemory& error) {
    CHECK_THAT(error.what(), ContainsSubstring("cuDNN"));
    return Kind::memory;
  } catch (const DeviceError&) {
    return Kind::device;
  }
}

}  // namespace

TEST_CASE("cudnn: each failing call is an error of the right kind, and nothing is leaked") {
  struct Failure {
    std::size_t version;
    cudnn::Status status;
    Kind kind;
  };
  for (const Failure& failure : {Failure{91900, 5000, Kind::device},
                                 {91900, 3000, Kind::unsupported},
                                 {91900, 4004, Kind::memory},
                                 {8907, 8, Kind::device},
                                 {8907, 9, Kind::unsupported},
                                 {7605, 2, Kind::memory}})
    for (const Case& c : cases()) {
      if (std::holds_alternative<Recurrent>(c.op) && failure.version < 90000)
        continue;  // an LSTM needs a later version
      int calls = 0;
      {
        FakeBackend on(failure.version);
        REQUIRE(run_kernels(on, spec_of(on, c)) == Kind::none);
        calls = on.fake.count;
        CHECK(on.fake.living == 1);
      }
      REQUIRE(calls >= 3);
      for (int call = 0; call < calls; ++call) {
        INFO(to_string(c) << ", call " << call << " of " << calls << " gives " << failure.status);
        FakeBackend on(failure.version);
        on.fake.fail_call = call;
        on.fake.fail_status = failure.status;
        const Kind kind = run_kernels(on, spec_of(on, c));
        // After a refusal the backend may try an alternative: the next algorithm, three calls instead of one, a copy.
        if (failure.kind == Kind::unsupported)
          CHECK((kind == Kind::unsupported || kind == Kind::none));
        else
          CHECK(kind == failure.kind);
        CHECK(on.fake.living <= 1);
      }
    }
}

TEST_CASE("cudnn: a product for which cuBLAS cannot allocate memory throws OutOfMemory, as a call of cuDNN does") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, {"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}}));
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data}) {
    on.log.blas_status = cublas_number::alloc_failed;
    CHECK_THROWS_MATCHES(unit.run(pass), OutOfMemory, Says("CUBLAS_STATUS_ALLOC_FAILED (3)"));
    on.log.blas_status = 0;
    CHECK_NOTHROW(unit.run(pass));
  }
}

TEST_CASE("cudnn: after a failure to create the handle, the next call creates it") {
  FakeBackend on;
  on.fake.fail_call = 1;
  on.fake.fail_status = 5000;
  CHECK_THROWS_AS(on.backend.device(), DeviceError);
  CHECK(on.fake.living == 0);
  CHECK_NOTHROW(on.backend.device());
  CHECK(on.fake.living == 1);
}

TEST_CASE("cudnn: a function that the cuDNN version lacks is named when it is needed") {
  FakeBackend on;
  on.fake.api.SoftmaxForward = nullptr;
  BoundUnit unit(on, spec_of(on, {"", Softmax{}, {{2, 3, 1, 1}}}));
  CHECK_THROWS_MATCHES(unit.run(Pass::forward), LoadError, Says("cuDNN 9.19.0 has no entry point cudnnSoftmaxForward"));
}
