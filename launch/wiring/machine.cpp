#include "launch/wiring/machine.hpp"

#include "launch/wiring/devices.hpp"
#include "launch/wiring/interpreters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

/// As Python's uuid4 writes it.
std::string fresh_id() {
  const auto high = random_seed(), low = random_seed();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xfff, 0x8000 | (low >> 50), low & 0xffff'ffff'ffff);
}

std::size_t columns_of_stdout() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : std::size_t{80};
}

/// Those that this process may run on, as PyTorch counts them: `taskset`, a cpuset of a container
/// or of a scheduler leave only some of the machine's.
unsigned own_cpus() {
  // The kernel wants room for all CPUs that it was built for.
  for (int most = 1'024; most <= 1 << 20; most *= 2) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(most));
    const auto bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    const bool known = set && ::sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    const bool more = set && !known && errno == EINVAL;
    CPU_FREE(set);
    if (count > 0)
      return static_cast<unsigned>(count);
    if (!more)
      break;
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

} // namespace

machine_facts this_machine() {
  machine_facts facts;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos)
      facts.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  facts.cpus = own_cpus();
  while (fs::exists(fmt::format("/dev/nvidia{}", facts.gpus)))
    ++facts.gpus;
  facts.other_devices = look_for_devices("/");
  facts.host = host_name();
  facts.fresh_id = fresh_id();
  facts.columns = columns_of_stdout();
  facts.pythons = find_pythons(facts.environment, program_invocation_name);
  return facts;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0)
    return "localhost";
  return name;
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed)
    std::abort(); // as good as impossible, and nothing is safe without it
  return seed;
}

} // namespace troupe::launch
