#include "runtime/ports/process.hpp"
#include "runtime/ports/transport.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

namespace troupe::ports {

std::string to_string(const endpoint& e) {
  const bool v6 = e.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", e.host, e.port) : fmt::format("{}:{}", e.host, e.port);
}

std::string to_string(const exit_status& s) {
  if (!s.signalled)
    return fmt::format("exit code {}", s.number);
  const char* name = ::sigabbrev_np(s.number);
  return fmt::format("signal {} ({}{})", s.number, name ? "SIG" : "", name ? name : "unknown");
}

} // namespace troupe::ports
