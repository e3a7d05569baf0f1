// Hosts one store and prints its port; ends when its input does. For tests and benchmarks with
// other programs' clients.
//
//     store_peer [network|this_machine [address]]

#include "runtime/os/net/descriptor_limit.hpp"
#include "runtime/os/tcpstore/asio_store_host.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>

using namespace troupe;

int main(int argc, char** argv) {
  os::raise_descriptor_limit(limits::store_clients_max);
  os::store_host_options o;
  o.log = [](const std::string& component, const log::event& e) {
    fmt::print(stderr, "{}: {}\n", component, e.text);
  };
  os::asio_store_host host(o);
  const auto reach = argc > 1 && std::string(argv[1]) == "this_machine"
                         ? ports::store_reach::this_machine
                         : ports::store_reach::network;
  const auto store = host.open({reach, argc > 2 ? argv[2] : "127.0.0.1", 0});
  if (!store) {
    fmt::print(stderr, "{}\n", store.error().what);
    return 1;
  }
  fmt::print("{}\n", (*store)->port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
