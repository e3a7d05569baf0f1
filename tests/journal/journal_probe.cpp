// A master that is killed while it writes. Usage: journal_probe FILE
// Appends records of the job 'job' for ever and prints the number of each one that was
// acknowledged.
#include "messages/journal.capnp.h"
#include "runtime/os/journal/sqlite_journal.hpp"

#include <cstdio>
#include <future>

using namespace troupe;

int main(int argc, char** argv) {
  if (argc != 2)
    return 2;
  auto store = os::sqlite_journal::open(argv[1], {"job", std::nullopt}, os::durability::process);
  if (!store)
    return 1;
  for (std::uint64_t number = 1;; ++number) {
    const messages::stamp envelope{"probe", term{1}, generation{number}, number, 0};
    std::promise<bool> safe;
    (*store)->append(
        messages::build<messages::GenerationProposed>(envelope, [](auto) {}).any(),
        [&safe](const result<std::uint64_t>& index) { safe.set_value(index.has_value()); });
    if (!safe.get_future().get())
      return 1;
    std::printf("%llu\n", static_cast<unsigned long long>(number));
    std::fflush(stdout);
  }
}
