#include "actors/master/recovery/exit_classes.hpp"

#include "messages/limits.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace troupe;
using namespace troupe::actors;

namespace {

std::string class_of(exit_evidence e, const hardware_signs& signs = {}) {
  return treatment_of(classify(e, signs).which).name;
}

/// Of a worker that left nothing but a log: its class, and the line that says so.
std::string class_by_log(const std::string& log, std::int32_t code = 1,
                         const std::string& traceback = {}) {
  const auto judged = classify({code, false, "exit code 1", traceback, log}, {});
  return std::string(treatment_of(judged.which).name) +
         (judged.matched_line.empty() ? "" : ": " + judged.matched_line);
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

  TEST_CASE("one that its node has ended for standing still, whatever it had said before") {
    CHECK(class_of({-9, true, "", "", "CUDA error: uncorrectable ECC error", true}) == "hung");
    CHECK(class_of({201, false, "", "", "", true}) == "hung");
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

  TEST_CASE("a network that is gone, in the words of what needs it") {
    for (const char* said :
         {"torch.distributed.DistBackendError: NCCL error in: x.cpp:1, ncclRemoteError: A call "
          "failed possibly due to a network error",
          "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer",
          "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms",
          "OSError: [Errno 113] No route to host", "EI0006: Getting socket times out"}) {
      CAPTURE(said);
      CHECK(class_of({1, false, said, ""}) == "network");
      CHECK(class_by_log(std::string("Traceback (most recent call last):\n") + said + "\n") ==
            std::string("network: ") + said);
      // What it got over, and what its error file does not name, did not end it.
      CHECK(class_by_log(std::string(said) + "\nstep 7\nValueError: x\n") == "software");
      CHECK(class_by_log(said, 1, "Traceback ...\nValueError: x\n") == "software");
      CHECK(class_by_log(said, -9) == "killed");
      CHECK(class_of({1, false, "ValueError: x",
                      std::string("Traceback (most recent call last):\n") + said +
                          "\n\nDuring handling of the above exception, another one occurred:\n\n"
                          "Traceback (most recent call last):\nValueError: x\n"}) == "software");
    }
    CHECK(class_of({1, false,
                    "torch.distributed.DistNetworkError: The server socket has failed to listen on "
                    "any local network address. EADDRINUSE: address already in use",
                    ""}) == "software");
    CHECK(class_of({1, false, "ConnectionResetError: a data set's server", ""}) == "software");
  }

  TEST_CASE("what is in a log says hardware, wherever it stands; and the line is named") {
    CHECK(class_by_log("") == "software");
    CHECK(class_by_log("step 1\n"
                       "  n1:71:90 [3] NCCL WARN Cuda failure 'uncorrectable ECC error "
                       "encountered'\r\n"
                       "terminate called\n") ==
          "hardware: n1:71:90 [3] NCCL WARN Cuda failure 'uncorrectable ECC error encountered'");
    CHECK(class_by_log("NVRM: Xid (PCI:0000:3b:00): 79, pid=71, GPU has fallen off the bus.") ==
          "hardware: NVRM: Xid (PCI:0000:3b:00): 79, pid=71, GPU has fallen off the bus.");
    CHECK(class_by_log("CUDA error: uncorrectable NVLink error detected during the execution", -6)
              .find("hardware: CUDA error") == 0);
    // An exception often tells only that a library has failed.
    CHECK(class_by_log("HBM MULTI BIT ECC\n", 1, "RuntimeError: HCCL failed") ==
          "hardware: HBM MULTI BIT ECC");
    CHECK(class_by_log("nothing", 1, "at x\nGPU is lost\nat y") == "hardware: GPU is lost");
  }

  TEST_CASE("a worker that was killed or told to go did not die of what its log complains about") {
    for (const std::int32_t code : {-9, 137})
      CHECK(class_by_log("uncorrectable ECC error\nout of memory\n", code) == "killed");
    for (const std::int32_t code : {-15, 143})
      CHECK(class_by_log("uncorrectable ECC error\nout of memory\n", code) == "preempted");
  }

  TEST_CASE("memory that ran out is one only in what ended the worker") {
    const std::string survived = "retrying after CUDA out of memory\n";
    const std::string raised = "[rank0]: Traceback (most recent call last):\n[rank0]:   File x\n";
    CHECK(class_by_log(survived + "step 7\n") == "software");
    CHECK(class_by_log(survived + raised + "[rank0]: ValueError: no\n") == "software");
    CHECK(class_by_log(raised + "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried\n") ==
          "out of memory: [rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried");
    CHECK(class_by_log("step 7\nfork: Cannot allocate memory\n\n") ==
          "out of memory: fork: Cannot allocate memory");
    // The error file tells what it was.
    CHECK(class_by_log(survived, 1, "ValueError: no") == "software");
  }

  TEST_CASE("a long line is cut to what counts, between characters") {
    const auto long_line =
        std::string(3'000, '-') + " uncorrectable ECC error " + std::string(3'000, '-');
    const auto judged = classify({1, false, "", "", long_line}, {});
    CHECK(judged.matched_line.size() == limits::matched_line_max);
    CHECK(judged.matched_line.find("uncorrectable ECC error") != std::string::npos);
    std::string snowed;
    for (int i = 0; i < 200; ++i)
      snowed += "\u2603";
    const auto cut = classify({1, false, "", "", "GPU is lost" + snowed}, {}).matched_line;
    CHECK(cut == "GPU is lost" + snowed.substr(0, (limits::matched_line_max - 11) / 3 * 3));
    const auto end = classify({1, false, "", "", snowed + "GPU is lost"}, {}).matched_line;
    CHECK(end == snowed.substr(0, limits::matched_line_max / 4 / 3 * 3) + "GPU is lost");
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
    CHECK(seen.size() == 7);
    CHECK(std::string(treatment_of(exit_class::UNKNOWN).name) == "software");
  }
}
