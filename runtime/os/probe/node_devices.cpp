#include "runtime/os/probe/node_devices.hpp"

#include "probe/limits.hpp"
#include "probe/simulated_devices.hpp"
#include "runtime/os/probe/cuda_devices.hpp"
#include "runtime/os/probe/processors.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include <unistd.h>

namespace troupe::os {

namespace {

/// As a driver does it that is broken.
void misbehave(probe::misbehaviour what) {
  if (what == probe::misbehaviour::crash) {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
  }
  while (true)
    ::pause();
}

/// One byte more than may be in it is enough to see that there are too many.
result<std::string> text_of(const std::string& path) {
  std::string text(limits::simulated_devices_text_max + 1, '\0');
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (file.is_open())
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad())
    return failure(errc::absent, std::strerror(errno != 0 ? errno : EIO));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

} // namespace

result<std::unique_ptr<probe::device_port>> node_devices(const std::string& simulated,
                                                         const std::string& own_program) {
  if (simulated.empty()) {
    auto devices = cuda_devices(own_program);
    if (devices && !*devices)
      return std::make_unique<processors>();
    return devices;
  }
  const auto in_file = [&simulated](const error& e) {
    return error{e.code, fmt::format("{}={}: {}", simulated_devices_variable, simulated, e.what)};
  };
  const auto text = text_of(simulated);
  if (!text)
    return tl::make_unexpected(in_file(text.error()));
  auto devices = probe::simulated_devices(*text, misbehave);
  if (!devices)
    return tl::make_unexpected(in_file(devices.error()));
  return devices;
}

} // namespace troupe::os
