// Every call fails once, at each place where it is made: the error has the right kind, and every object is destroyed.

#include "tests/cudnn/bound.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

enum class Kind { none, unsupported, memory, device };

/// Lowers a case and runs all its passes; counts the calls that could fail.
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

TEST_CASE("cudnn: each call that fails is an error of its kind, and nothing is leaked") {
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
      if (std::holds_alternative<Recurrent>(c.op) && failure.version < 90000) continue;  // refused
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
        // A refusal may lead to an alternative: an algorithm further down, three calls for one, a copy.
        if (failure.kind == Kind::unsupported)
          CHECK((kind == Kind::unsupported || kind == Kind::none));
        else
          CHECK(kind == failure.kind);
        CHECK(on.fake.living <= 1);
      }
    }
}

TEST_CASE("cudnn: a product for which cuBLAS finds no room is out of memory, like a call of cuDNN") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, {"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}}));
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data}) {
    on.log.blas_status = cublas_number::alloc_failed;
    CHECK_THROWS_MATCHES(unit.run(pass), OutOfMemory, Says("CUBLAS_STATUS_ALLOC_FAILED (3)"));
    on.log.blas_status = 0;
    CHECK_NOTHROW(unit.run(pass));
  }
}

TEST_CASE("cudnn: a handle that was not made is made at the next call") {
  FakeBackend on;
  on.fake.fail_call = 1;
  on.fake.fail_status = 5000;
  CHECK_THROWS_AS(on.backend.device(), DeviceError);
  CHECK(on.fake.living == 0);
  CHECK_NOTHROW(on.backend.device());
  CHECK(on.fake.living == 1);
}

TEST_CASE("cudnn: an entry point that the version lacks is named when it is needed") {
  FakeBackend on;
  on.fake.api.SoftmaxForward = nullptr;
  BoundUnit unit(on, spec_of(on, {"", Softmax{}, {{2, 3, 1, 1}}}));
  CHECK_THROWS_MATCHES(unit.run(Pass::forward), LoadError, Says("cuDNN 9.19.0 has no entry point cudnnSoftmaxForward"));
}
