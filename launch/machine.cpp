#include "launch/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/random.h>
#include <sys/socket.h>
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

} // namespace

machine_facts this_machine() {
  machine_facts facts;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos)
      facts.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  facts.cpus = std::max(1u, std::thread::hardware_concurrency());
  while (fs::exists(fmt::format("/dev/nvidia{}", facts.gpus)))
    ++facts.gpus;
  facts.host = host_name();
  facts.fresh_id = fresh_id();
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

std::string address_towards(const std::string& host) {
  const std::string loopback = "127.0.0.1";
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), "9", &hints, &found) != 0 || !found)
    return loopback;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
  const int socket = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0)
    return loopback;
  sockaddr_storage mine{};
  socklen_t size = sizeof mine;
  // Connecting a datagram socket sends nothing; it only has the kernel choose the way.
  const bool known = ::connect(socket, found->ai_addr, found->ai_addrlen) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&mine), &size) == 0;
  ::close(socket);
  char text[NI_MAXHOST] = {};
  if (!known || ::getnameinfo(reinterpret_cast<sockaddr*>(&mine), size, text, sizeof text, nullptr,
                              0, NI_NUMERICHOST) != 0)
    return loopback;
  return text;
}

} // namespace troupe::launch
