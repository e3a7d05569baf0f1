#include "runtime/os/probe/probe_text.hpp"

#include "runtime/base/time.hpp"
#include "runtime/os/log/printable.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace troupe::os {

namespace {

using messages::DeviceProbed;
using messages::NodeProbed;
using messages::PairProbed;

constexpr auto device_row = "{:<8}{:{}}{:>12}{:>12}{:>12}{:>16}\n";
constexpr auto pair_row = "{:8}{:>12}{:>10}\n";
constexpr auto reason_row = "        {}\n";
constexpr auto unknown = "-";

/// 0: it is not known, or there is none.
std::string gibibytes(std::uint64_t bytes) {
  return bytes == 0 ? unknown : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1u << 30));
}

std::string time_of(DeviceProbed::Reader device) {
  return device.getComputeUs() == 0 ? unknown
                                    : in_words(std::chrono::microseconds(
                                          static_cast<std::int64_t>(device.getComputeUs())));
}

std::string speed_of(DeviceProbed::Reader device) {
  const auto giga = device.getGigaflops();
  if (giga <= 0)
    return unknown;
  return giga < 10'000 ? fmt::format("{:.1f} GFLOP/s", giga)
                       : fmt::format("{:.1f} TFLOP/s", giga / 1'000);
}

/// 0: not measured, or none.
std::string counted(std::uint64_t n, const char* unit) {
  return n == 0 ? unknown : fmt::format("{}{}", n, unit);
}

std::string printed(capnp::Text::Reader text) {
  return printable({text.begin(), text.size()});
}

std::string devices_text(NodeProbed::Reader report) {
  const auto devices = report.getDevices();
  if (devices.size() == 0)
    return {};
  std::size_t widest = 4;
  for (const auto device : devices)
    widest = std::max(widest, printed(device.getName()).size());
  auto text =
      fmt::format(device_row, "device", "name", widest, "memory", "in use", "products", "speed");
  for (const auto device : devices) {
    text += fmt::format(device_row, device.getIndex(), printed(device.getName()), widest,
                        gibibytes(device.getMemoryBytes()), gibibytes(device.getMemoryUsedBytes()),
                        time_of(device), speed_of(device));
    if (device.getFailed().size() > 0)
      text += fmt::format(reason_row, printed(device.getFailed()));
    else if (device.getComputeUs() == 0)
      text +=
          fmt::format(reason_row, "no products were made: the library for them (cuBLAS) was not "
                                  "found");
  }
  return text;
}

std::string pairs_text(NodeProbed::Reader report) {
  const auto pairs = report.getPairs();
  if (pairs.size() == 0)
    return {};
  auto text = fmt::format(pair_row, "pair", "bandwidth", "channels");
  for (const auto pair : pairs) {
    text += fmt::format(pair_row, fmt::format("{}:{}", pair.getFirst(), pair.getSecond()),
                        counted(pair.getBandwidth(), " MB/s"), counted(pair.getChannels(), ""));
    if (pair.getFailed().size() > 0)
      text += fmt::format(reason_row, printed(pair.getFailed()));
  }
  return text;
}

std::string utf8(capnp::Text::Reader text) {
  return valid_utf8({text.begin(), text.size()});
}

} // namespace

std::string text_of(const messages::msg<NodeProbed>& report) {
  auto found = report.read();
  auto text = devices_text(*found) + pairs_text(*found);
  if (found->getCollectives().size() > 0)
    text += fmt::format("library for collectives: {}\n", printed(found->getCollectives()));
  return text + (found->getFailed().size() == 0
                     ? "this node works, as far as it can tell by itself\n"
                     : fmt::format("this node fails: {}\n", printed(found->getFailed())));
}

std::string json_of(const messages::msg<NodeProbed>& report) {
  auto found = report.read();
  boost::json::array devices, pairs;
  for (const auto device : found->getDevices())
    devices.push_back({{"index", device.getIndex()},
                       {"name", utf8(device.getName())},
                       {"memory_bytes", device.getMemoryBytes()},
                       {"memory_used_bytes", device.getMemoryUsedBytes()},
                       {"compute_us", device.getComputeUs()},
                       {"gigaflops", device.getGigaflops()},
                       {"failed", utf8(device.getFailed())}});
  for (const auto pair : found->getPairs())
    pairs.push_back({{"first", pair.getFirst()},
                     {"second", pair.getSecond()},
                     {"bandwidth", pair.getBandwidth()},
                     {"channels", pair.getChannels()},
                     {"failed", utf8(pair.getFailed())}});
  const boost::json::value document{{"failed", utf8(found->getFailed())},
                                    {"seconds", found->getSeconds()},
                                    {"devices", std::move(devices)},
                                    {"pairs", std::move(pairs)},
                                    {"collectives", utf8(found->getCollectives())}};
  return boost::json::serialize(document);
}

} // namespace troupe::os
