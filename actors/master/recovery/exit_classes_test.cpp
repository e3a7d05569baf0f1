#include "actors/master/recovery/exit_classes.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace troupe::actors;

namespace {

std::string class_of(exit_evidence e, const hardware_signs& signs = {}) {
  return treatment_of(classify(e, signs)).name;
}

} // namespace

TEST_SUITE("exit classes") {
  TEST_CASE("by exit code and signal") {
    CHECK(class_of({1}) == "software");
    CHECK(class_of({134}) == "software");
    CHECK(class_of({-6}) == "software");
    CHECK(class_of({-11}) == "software");
    CHECK(class_of({-9}) == "killed");
    CHECK(class_of({137}) == "killed");
    CHECK(class_of({-15}) == "preempted");
    CHECK(class_of({143}) == "preempted");
    CHECK(class_of({247}) == "out of memory");
    CHECK(class_of({201}) == "hardware");
    CHECK(class_of({202}) == "hardware");
  }

  TEST_CASE("the kernel's killing is told from anybody else's, and means nothing to other ends") {
    CHECK(class_of({-9, true}) == "out of memory");
    CHECK(class_of({137, true}) == "out of memory");
    CHECK(class_of({1, true}) == "software");
  }

  TEST_CASE("by what the worker says, in any case") {
    CHECK(class_of({1, false, "CUDA error: uncorrectable ECC error encountered", ""}) ==
          "hardware");
    CHECK(class_of({1, false, "RuntimeError", "...\nGPU 3 has FALLEN off the bus\n"}) ==
          "hardware");
    CHECK(class_of({1, false, "torch.OutOfMemoryError: CUDA out of memory. Tried", ""}) ==
          "out of memory");
    CHECK(class_of({1, false, "DefaultCPUAllocator: can't allocate memory", ""}) ==
          "out of memory");
    CHECK(class_of({-6, false, "it was the ECC of an error", ""}) == "software");
  }

  TEST_CASE("hardware comes before the rest, and its signs can be set") {
    CHECK(class_of({-9, true, "NVLink error", ""}) == "hardware");
    CHECK(class_of({14}, {{14}, {}}) == "hardware");
    CHECK(class_of({201}, {{14}, {}}) == "software");
    CHECK(class_of({1, false, "HCCL link Down", ""}, {{}, {"link down"}}) == "hardware");
    CHECK(class_of({1, false, "NVLink error", ""}, {{}, {""}}) == "software");
  }

  TEST_CASE("every class has one row") {
    std::set<exit_class> seen;
    for (const auto& row : exit_treatments())
      CHECK(seen.insert(row.which).second);
    CHECK(seen.size() == 5);
    CHECK(std::string(treatment_of(exit_class::UNKNOWN).name) == "software");
  }
}
