// Writes one memory, as a slot is (a mapped memfd), to new files, each way once, and prints for
// each the seconds and the processor seconds until the file was durable.
//
//     persist_probe DIRECTORY MIB FIRST BLOCK_MIB DEPTH
//
// FIRST is the number of the way to begin with, so that rounds can take turns.

#include "runtime/os/storage/posix_storage.hpp"
#include "runtime/os/storage/ring_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace troupe;

namespace {

void must(bool holds, const char* what) {
  if (!holds)
    throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

/// A slot: touched, full of what no disk can compress.
ports::bytes_view slot(std::size_t bytes) {
  const int memory = ::memfd_create("slot", MFD_CLOEXEC);
  must(memory >= 0 && ::ftruncate(memory, static_cast<off_t>(bytes)) == 0, "memfd");
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  must(mapped != MAP_FAILED, "mmap");
  auto* words = static_cast<std::uint64_t*>(mapped);
  std::uint64_t word = 88172645463325252ULL;
  for (std::size_t i = 0; i < bytes / sizeof word; ++i) {
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    words[i] = word;
  }
  return {static_cast<const std::byte*>(mapped), bytes};
}

struct plan {
  std::string directory;
  ports::bytes_view bytes;
  std::size_t block = 0;
  unsigned depth = 0;

  std::string file() const { return directory + "/persist-probe"; }
};

void put(const plan& p, bool ring) {
  os::posix_storage_options how;
  how.block = p.block;
  how.depth = p.depth;
  how.ring = ring;
  os::posix_storage storage(p.directory, how);
  const auto done = storage.put("persist-probe", p.bytes, ports::never_stops);
  if (!done)
    throw std::runtime_error(done.error().what);
  std::fprintf(stderr, "%s\n", storage.describe().c_str());
}

/// What the disk takes: the same blocks, as many at once, and nothing besides.
void raw(const plan& p) {
  std::string why_not;
  const auto queue = os::ring_queue(p.depth, why_not);
  const int file = ::open(p.file().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600);
  must(queue != nullptr && file >= 0, "direct writes");
  must(::fallocate(file, 0, 0, static_cast<off_t>(p.bytes.size)) == 0, "fallocate");
  std::size_t next = 0;
  std::size_t under_way = 0;
  while (next < p.bytes.size || under_way > 0) {
    if (next < p.bytes.size && under_way < p.depth) {
      const auto size = std::min(p.block, p.bytes.size - next);
      must(queue->submit(file, p.bytes.data + next, size, next, 0) == 0, "submit");
      next += size;
      ++under_way;
    } else {
      must(queue->wait().answer > 0, "write");
      --under_way;
    }
  }
  must(::fsync(file) == 0, "fsync");
  ::close(file);
}

void buffered(const plan& p) {
  const int file = ::open(p.file().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  must(file >= 0, "open");
  for (std::size_t at = 0; at < p.bytes.size;) {
    const auto size = std::min(p.block, p.bytes.size - at);
    const auto answer = ::pwrite(file, p.bytes.data + at, size, static_cast<off_t>(at));
    must(answer > 0, "write");
    at += static_cast<std::size_t>(answer);
  }
  must(::fsync(file) == 0, "fsync");
  ::close(file);
}

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void measure(const plan& p, const char* name, const std::function<void(const plan&)>& way) {
  using clock = std::chrono::steady_clock;
  const double before = processor_seconds();
  const auto began = clock::now();
  way(p);
  const std::chrono::duration<double> took = clock::now() - began;
  std::printf("%s %.6f %.6f\n", name, took.count(), processor_seconds() - before);
  // What the file system does about the file's end must not be the next one's time.
  ::unlink(p.file().c_str());
  ::sync();
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: persist_probe DIRECTORY MIB FIRST BLOCK_MIB DEPTH\n");
    return 2;
  }
  const auto number = [argv](int at) { return std::strtoull(argv[at], nullptr, 10); };
  try {
    const plan p{argv[1], slot(number(2) << 20), number(4) << 20, static_cast<unsigned>(number(5))};
    const std::vector<std::pair<const char*, std::function<void(const plan&)>>> ways{
        {"put", [](const plan& one) { put(one, true); }},
        {"raw", raw},
        {"put-plain", [](const plan& one) { put(one, false); }},
        {"buffered", buffered},
    };
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const auto& [name, way] = ways[(i + number(3)) % ways.size()];
      measure(p, name, way);
    }
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "persist_probe: %s\n", wrong.what());
    return 1;
  }
  return 0;
}
