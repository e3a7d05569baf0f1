#include "worker/collectives/observed_functions.hpp"

#include <doctest/doctest.h>

using namespace troupe::worker;
using troupe::diag::collective;

TEST_CASE("a method is known by its name, whatever its arguments are") {
  const auto seen = observed_method("_ZN4c10d16ProcessGroupGloo9allreduceERSt6vectorIN2at6TensorE",
                                    "ProcessGroupGloo");
  REQUIRE(seen);
  CHECK(seen->what == role::call);
  CHECK(seen->kind == collective::all_reduce);
  CHECK(seen->answers_object);
  const auto base =
      observed_method("_ZN4c10d16ProcessGroupGloo15_allgather_baseEiii", "ProcessGroupGloo");
  REQUIRE(base);
  CHECK(base->kind == collective::all_gather);
}

TEST_CASE("messages, names and ends are told apart") {
  const auto of = [](const char* mangled) {
    const auto seen = observed_method(mangled, "ProcessGroupNCCL");
    REQUIRE(seen);
    return *seen;
  };
  CHECK(of("_ZN4c10d16ProcessGroupNCCL4sendERi").what == role::point_to_point);
  CHECK(of("_ZN4c10d16ProcessGroupNCCL13recvAnysourceERi").kind == collective::recv);
  CHECK(of("_ZN4c10d16ProcessGroupNCCL25getSequenceNumberForGroupEv").what ==
        role::sequence_number);
  CHECK(of("_ZN4c10d16ProcessGroupNCCL25setSequenceNumberForGroupEv").what ==
        role::sequence_number);
  CHECK_FALSE(of("_ZN4c10d16ProcessGroupNCCL25getSequenceNumberForGroupEv").answers_object);
  CHECK(of("_ZN4c10d16ProcessGroupNCCLD0Ev").what == role::destroy);
}

TEST_CASE("what is no such method is not looked at") {
  for (const char* other :
       {"", "_ZN4c10d", "_ZN4c10d16ProcessGroupGloo", "_ZN4c10d16ProcessGroupGloo9",
        "_ZN4c10d16ProcessGroupGloo99999allreduceE", "_ZN4c10d16ProcessGroupGloo9allreduceI",
        "_ZN4c10d16ProcessGroupGloo9AsyncWork4waitEv", "_ZN4c10d16ProcessGroupGlooD2Ev",
        "_ZN4c10d16ProcessGroupMPI9allreduceEv", "_ZNK4c10d16ProcessGroupGloo7getNameEv"}) {
    CAPTURE(other);
    CHECK_FALSE(observed_method(other, "ProcessGroupGloo"));
  }
}
