#include "launch/options.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <charconv>

namespace troupe::launch {

namespace {

std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t n = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || bad != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return n;
}

result<duration> seconds_of(const std::string& key, const std::string& value) {
  double seconds = 0;
  const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (value.empty() || bad != std::errc{} || end != value.data() + value.size() ||
      !(seconds >= 0) || seconds > 1e6)
    return failure(errc::invalid,
                   fmt::format("--rdzv-conf: '{}={}' is not a number of seconds", key, value));
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(seconds));
}

} // namespace

result<std::pair<std::uint32_t, std::uint32_t>> parse_nodes(const std::string& text) {
  const auto colon = text.find(':');
  const auto low = whole_number(text.substr(0, colon));
  const auto high = colon == std::string::npos ? low : whole_number(text.substr(colon + 1));
  if (!low || !high)
    return failure(errc::invalid, fmt::format("--nnodes: '{}' is neither N nor MIN:MAX", text));
  if (*low == 0 || *low > *high)
    return failure(errc::invalid,
                   fmt::format("--nnodes: '{}' does not satisfy 0 < MIN <= MAX", text));
  if (*high > limits::nodes_max)
    return failure(errc::invalid,
                   fmt::format("--nnodes: {} nodes are more than the {} there can be", *high,
                               limits::nodes_max));
  return std::pair{static_cast<std::uint32_t>(*low), static_cast<std::uint32_t>(*high)};
}

result<ports::endpoint> parse_endpoint(const std::string& text, std::uint16_t default_port) {
  const auto wrong = [&] {
    return failure(errc::invalid,
                   fmt::format("'{}' is not an endpoint: host, host:port or [v6]:port", text));
  };
  std::string host = text, port;
  if (!text.empty() && text.front() == '[') {
    const auto close = text.find(']');
    if (close == std::string::npos)
      return wrong();
    host = text.substr(1, close - 1);
    if (close + 1 < text.size()) {
      if (text[close + 1] != ':')
        return wrong();
      port = text.substr(close + 2);
      if (port.empty())
        return wrong();
    }
  } else if (const auto colon = text.find(':'); colon != std::string::npos) {
    if (text.find(':', colon + 1) != std::string::npos)
      return wrong();
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty())
      return wrong();
  }
  if (host.empty())
    return wrong();
  if (port.empty())
    return ports::endpoint{host, default_port};
  const auto number = whole_number(port);
  if (!number || *number > 65'535)
    return failure(errc::invalid,
                   fmt::format("'{}': the port is not a number from 0 to 65535", text));
  return ports::endpoint{host, static_cast<std::uint16_t>(*number)};
}

result<rendezvous_settings> parse_rendezvous_settings(const std::string& text) {
  rendezvous_settings out;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find(',', at), text.size());
    const auto pair = text.substr(at, end - at);
    at = end + 1;
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == pair.size())
      return failure(errc::invalid,
                     fmt::format("--rdzv-conf: '{}' is not of the form key=value", pair));
    const auto key = pair.substr(0, equals), value = pair.substr(equals + 1);
    std::optional<duration>* target = key == "join_timeout"        ? &out.join_timeout
                                      : key == "last_call_timeout" ? &out.last_call_timeout
                                      : key == "read_timeout"      ? &out.read_timeout
                                                                   : nullptr;
    if (!target)
      continue;
    const auto seconds = seconds_of(key, value);
    if (!seconds)
      return tl::make_unexpected(seconds.error());
    *target = *seconds;
  }
  return out;
}

result<std::uint32_t> parse_processes(const std::string& text, const machine_facts& machine) {
  if (text == "cpu")
    return machine.cpus;
  if (text == "auto")
    return machine.gpus > 0 ? machine.gpus : machine.cpus;
  if (text == "gpu") {
    if (machine.gpus == 0)
      return failure(errc::invalid,
                     "--nproc-per-node gpu: this machine shows no NVIDIA GPU (/dev/nvidia0)");
    return machine.gpus;
  }
  const auto n = whole_number(text);
  if (!n)
    return failure(errc::invalid,
                   fmt::format("--nproc-per-node: '{}' is not a number, cpu, gpu or auto", text));
  if (*n == 0 || *n > limits::local_world_max)
    return failure(errc::invalid,
                   fmt::format("--nproc-per-node: {} processes; 1 to {} are possible", *n,
                               limits::local_world_max));
  return static_cast<std::uint32_t>(*n);
}

} // namespace troupe::launch
