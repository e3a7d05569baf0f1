// NCCL as the probe sees it, for tests: processes of one machine meet in a file, and reduce and
// gather in its memory. FAKE_NCCL: what the rank FAKE_NCCL_RANK does; "init" does not join, "wrong"
// makes one value wrong, "hang" and "crash" do that in an all-gather, "lost" never ends one, of
// which the library hears. FAKE_FOLDER: where the files are.

#include "runtime/os/probe/cuda_abi.hpp"
#include "runtime/os/probe/testing/fake_cuda.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace troupe::os::cuda;

namespace {

constexpr nccl_result system_error = 2, invalid_usage = 5, remote_error = 6;
constexpr std::size_t ranks_max = 8, elements_max = 16'384;

/// The file.
struct meeting {
  std::atomic<unsigned> arrived;
  std::array<std::array<float, elements_max>, ranks_max> given;
};

struct membership {
  meeting* at = nullptr;
  int rank = 0, ranks = 0, device = 0;
  unsigned times = 0;
};

struct call {
  membership* who = nullptr;
  const float* given = nullptr;
  float* taken = nullptr;
  std::size_t count = 0;
  bool gathers = false;
};

std::vector<call> calls;
std::string last_words;

membership* of(nccl_communicator c) {
  return reinterpret_cast<membership*>(c);
}

bool misbehaves(const char* how, int rank) {
  const char* what = std::getenv("FAKE_NCCL");
  return what != nullptr && std::strcmp(what, how) == 0 && fake_setting("FAKE_NCCL_RANK") == rank;
}

/// All ranks of a process arrive before one of them waits.
void meet(const std::vector<membership*>& here) {
  for (auto* m : here) {
    ++m->times;
    ++m->at->arrived;
  }
  for (const auto* m : here)
    while (m->at->arrived < m->times * static_cast<unsigned>(m->ranks))
      std::this_thread::yield();
}

void take(const call& c) {
  const auto ranks = static_cast<std::size_t>(c.who->ranks);
  const auto& given = c.who->at->given;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < c.count; ++i)
      if (c.gathers)
        c.taken[rank * c.count + i] = given[rank][i];
      else
        c.taken[i] = (rank == 0 ? 0 : c.taken[i]) + given[rank][i];
  if (misbehaves("wrong", c.who->rank))
    c.taken[c.count / 2] += 1;
}

nccl_result carry_out() {
  std::vector<membership*> here;
  for (const auto& c : calls) {
    if (c.gathers && misbehaves("crash", c.who->rank)) {
      std::signal(SIGSEGV, SIG_DFL); // a sanitizer's handler would end the process in its own way
      std::raise(SIGSEGV);
    }
    while (c.gathers && misbehaves("hang", c.who->rank))
      ::pause();
    if (c.gathers && misbehaves("lost", c.who->rank)) {
      fake_is_busy = 1;
      return nccl_success;
    }
    here.push_back(c.who);
  }
  for (const auto& c : calls)
    if (c.given != nullptr)
      std::memcpy(c.who->at->given[static_cast<std::size_t>(c.who->rank)].data(), c.given,
                  c.count * sizeof(float));
  meet(here);
  for (const auto& c : calls)
    if (c.given != nullptr)
      take(c);
  meet(here);
  return nccl_success;
}

nccl_result leave(nccl_communicator c) {
  ::munmap(of(c)->at, sizeof(meeting));
  delete of(c);
  return nccl_success;
}

} // namespace

extern "C" {

nccl_result ncclGetVersion(int* version) {
  *version = 22'703;
  return nccl_success;
}

nccl_result ncclGetUniqueId(nccl_unique_id* id) {
  const char* folder = std::getenv("FAKE_FOLDER");
  std::snprintf(id->internal, sizeof id->internal, "%s/fake_nccl_XXXXXX", folder);
  const int file = ::mkstemp(id->internal);
  const bool made = file >= 0 && ::ftruncate(file, sizeof(meeting)) == 0;
  ::close(file);
  return made ? nccl_success : system_error;
}

nccl_result ncclCommInitRank(nccl_communicator* made, int ranks, nccl_unique_id id, int rank) {
  if (misbehaves("init", rank)) {
    last_words = "no socket interface\nfound";
    return system_error;
  }
  const int file = ::open(id.internal, O_RDWR | O_CLOEXEC);
  void* at = ::mmap(nullptr, sizeof(meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (at == MAP_FAILED || ranks > static_cast<int>(ranks_max) || rank >= ranks)
    return system_error;
  auto* m = new membership;
  m->at = static_cast<meeting*>(at);
  m->rank = rank;
  m->ranks = ranks;
  m->device = fake_current_device();
  *made = reinterpret_cast<nccl_communicator>(m);
  calls.push_back({m, nullptr, nullptr, 0, false});
  return nccl_success;
}

nccl_result ncclCommDestroy(nccl_communicator c) {
  return leave(c);
}

nccl_result ncclCommAbort(nccl_communicator c) {
  return leave(c);
}

nccl_result ncclCommGetAsyncError(nccl_communicator, nccl_result* found) {
  *found = fake_is_busy != 0 ? remote_error : nccl_success;
  return nccl_success;
}

const char* ncclGetErrorString(nccl_result code) {
  return code == system_error ? "unhandled system error" : "remote process exited";
}

const char* ncclGetLastError(nccl_communicator) {
  return last_words.c_str();
}

nccl_result ncclGroupStart() {
  calls.clear();
  return nccl_success;
}

nccl_result ncclGroupEnd() {
  const auto outcome = calls.empty() ? nccl_success : carry_out();
  calls.clear();
  return outcome;
}

nccl_result ncclAllReduce(const void* given, void* taken, std::size_t count, int type,
                          int operation, nccl_communicator c, stream) {
  if (type != nccl_float || operation != nccl_sum || count > elements_max ||
      of(c)->device != fake_current_device())
    return invalid_usage;
  calls.push_back(
      {of(c), static_cast<const float*>(given), static_cast<float*>(taken), count, false});
  return nccl_success;
}

nccl_result ncclAllGather(const void* given, void* taken, std::size_t count, int type,
                          nccl_communicator c, stream) {
  if (type != nccl_float || count > elements_max || of(c)->device != fake_current_device())
    return invalid_usage;
  calls.push_back(
      {of(c), static_cast<const float*>(given), static_cast<float*>(taken), count, true});
  return nccl_success;
}

} // extern "C"
