#include "probe/simulated_devices.hpp"

#include "probe/limits.hpp"
#include "topology/located_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::probe {

namespace {

using topology::json_problem;
using topology::json_value;
using kind = json_value::kind;

/// Members of an object by their names, each of which may be missing. What is wrong with one, and
/// one that is never asked for, is told to the problem.
class members {
 public:
  members(const json_value& of, std::string_view what, json_problem& problem)
      : of_(of), what_(what), problem_(problem) {
    if (of.is != kind::object)
      problem_.found(of.line, fmt::format("{} is no object", what));
  }
  ~members() {
    for (const auto& member : of_.inside)
      if (of_.is == kind::object &&
          std::find(asked_.begin(), asked_.end(), member.name) == asked_.end())
        problem_.found(member.line, fmt::format("{} has no member '{}'", what_, member.name));
  }

  std::string text(std::string_view name) {
    const auto* member = find(name, kind::text, "text");
    return member == nullptr ? std::string() : member->text;
  }
  std::uint64_t number(std::string_view name, std::int64_t least, std::int64_t most,
                       std::int64_t otherwise) {
    const auto* member = find(name, kind::number, "whole number");
    if (member == nullptr)
      return static_cast<std::uint64_t>(otherwise);
    if (member->number < least || member->number > most)
      problem_.found(member->line, fmt::format("'{}' of {} is {}; {} to {} are possible", name,
                                               what_, member->number, least, most));
    return static_cast<std::uint64_t>(member->number);
  }
  const std::vector<json_value>& list(std::string_view name) {
    static const std::vector<json_value> none;
    const auto* member = find(name, kind::array, "list");
    return member == nullptr ? none : member->inside;
  }
  void wrong(std::string_view name, const std::string& what) {
    const auto* member = find(name);
    problem_.found(member == nullptr ? of_.line : member->line, what);
  }

 private:
  const json_value* find(std::string_view name) {
    asked_.push_back(name);
    if (of_.is == kind::object)
      for (const auto& member : of_.inside)
        if (member.name == name)
          return &member;
    return nullptr;
  }
  const json_value* find(std::string_view name, kind wanted, std::string_view called) {
    const auto* member = find(name);
    if (member == nullptr || member->is == wanted)
      return member;
    problem_.found(member->line, fmt::format("'{}' of {} is no {}", name, what_, called));
    return nullptr;
  }

  const json_value& of_;
  std::string_view what_;
  json_problem& problem_;
  std::vector<std::string_view> asked_;
};

constexpr std::int64_t mebibytes_max = std::int64_t{1} << 30;
constexpr std::int64_t milliseconds_max = 3'600'000;
constexpr std::int64_t number_max = std::int64_t{1} << 40;
constexpr std::int64_t channels_max = 1'024;

struct device {
  device_facts facts;
  computed work;
  std::string failed;
  std::optional<misbehaviour> does;
};

struct pair {
  std::uint32_t first = 0, second = 0;
  std::uint64_t there = 0, back = 0;
  std::uint32_t channels = 0;
  std::string failed;
};

struct description {
  std::vector<device> devices;
  std::vector<pair> pairs;
  std::string driver, collectives;
  std::chrono::milliseconds begins_after{};
  std::uint64_t group_bandwidth = 0;
  std::string group_failed;
  std::optional<misbehaviour> group_does;
};

void add_misbehaviour(members& m, std::string_view name, std::string_view of,
                      std::optional<misbehaviour>& to) {
  const auto does = m.text(name);
  if (does == "hang")
    to = misbehaviour::hang;
  else if (does == "crash")
    to = misbehaviour::crash;
  else if (!does.empty())
    m.wrong(name, fmt::format("'{}' of {} is '{}'; hang and crash are possible", name, of, does));
}

void add_devices(const json_value& value, description& to, json_problem& problem) {
  members m(value, "a device", problem);
  device d;
  d.facts.name = m.text("name");
  if (d.facts.name.empty())
    d.facts.name = "simulated";
  d.facts.memory_bytes = m.number("memory_mib", 0, mebibytes_max, 80 << 10) << 20;
  d.facts.memory_used_bytes = m.number("used_mib", 0, mebibytes_max, 0) << 20;
  if (d.facts.memory_used_bytes > d.facts.memory_bytes)
    m.wrong("used_mib", "a device has more memory in use than it has");
  d.facts.health = m.text("health");
  d.work.took = std::chrono::milliseconds(m.number("compute_ms", 1, milliseconds_max, 40));
  d.work.gigaflops = static_cast<double>(m.number("gigaflops", 0, number_max, 600'000));
  d.failed = m.text("failed");
  add_misbehaviour(m, "does", "a device", d.does);
  const auto copies = m.number("copies", 1, limits::probed_devices_max, 1);
  if (copies + to.devices.size() > limits::probed_devices_max)
    problem.found(value.line, fmt::format("more than {} devices", limits::probed_devices_max));
  else
    for (std::uint64_t n = 0; n < copies; ++n) {
      d.facts.index = static_cast<std::uint32_t>(to.devices.size());
      to.devices.push_back(d);
    }
}

/// Behind all devices, so that it is known which there are.
void add_pair(const json_value& value, description& to, json_problem& problem) {
  if (to.devices.size() < 2)
    return problem.found(value.line, "a pair takes two devices");
  members m(value, "a pair", problem);
  const auto last = static_cast<std::int64_t>(to.devices.size()) - 1;
  pair p;
  p.first = static_cast<std::uint32_t>(m.number("first", 0, last, 0));
  p.second = static_cast<std::uint32_t>(m.number("second", 0, last, 0));
  p.there = m.number("bandwidth", 0, number_max, 0);
  p.back = m.number("back", 0, number_max, static_cast<std::int64_t>(p.there));
  p.channels = static_cast<std::uint32_t>(m.number("channels", 0, channels_max, 0));
  p.failed = m.text("failed");
  if (p.first == p.second)
    m.wrong("second", "a pair is of two devices");
  to.pairs.push_back(std::move(p));
}

result<description> read(std::string_view json) {
  if (json.size() > limits::simulated_devices_text_max)
    return failure(errc::invalid, fmt::format("it has {} bytes; {} are allowed", json.size(),
                                              limits::simulated_devices_text_max));
  const auto root = topology::located_json(json);
  if (!root)
    return tl::make_unexpected(root.error());
  description all;
  json_problem problem;
  {
    members m(*root, "the description of devices", problem);
    for (const auto& value : m.list("devices"))
      add_devices(value, all, problem);
    for (const auto& value : m.list("pairs"))
      add_pair(value, all, problem);
    all.driver = m.text("driver");
    all.begins_after =
        std::chrono::milliseconds(m.number("begins_after_ms", 0, milliseconds_max, 0));
    all.collectives = m.text("collectives");
    all.group_bandwidth = m.number("group_bandwidth", 1, number_max, 40'000);
    all.group_failed = m.text("group_failed");
    add_misbehaviour(m, "group_does", "the description of devices", all.group_does);
  }
  if (problem.first())
    return tl::make_unexpected(*problem.first());
  return all;
}

constexpr auto simulated_key = "a group of simulated devices";

class simulated_group final : public device_group {
 public:
  simulated_group(const description& all, const misbehaves& misbehave)
      : all_(all), misbehave_(misbehave) {}

  result<duration> all_reduce(std::uint64_t bytes, std::uint32_t) override {
    if (all_.group_does)
      misbehave_(*all_.group_does);
    return time_of(bytes);
  }
  result<duration> all_gather(std::uint64_t bytes, std::uint32_t) override {
    return time_of(bytes);
  }

 private:
  duration time_of(std::uint64_t bytes) const {
    constexpr std::uint64_t nanoseconds_of_megabyte = 1'000;
    return std::chrono::nanoseconds(bytes * nanoseconds_of_megabyte / all_.group_bandwidth);
  }

  const description& all_;
  const misbehaves& misbehave_;
};

class simulation final : public device_port {
 public:
  simulation(description all, misbehaves misbehave)
      : all_(std::move(all)), misbehave_(std::move(misbehave)) {}

  bool has_accelerators() const override { return true; }

  result<std::vector<device_facts>> list() override {
    std::this_thread::sleep_for(all_.begins_after);
    if (!all_.driver.empty())
      return failure(errc::refused, all_.driver);
    std::vector<device_facts> facts;
    for (const auto& d : all_.devices)
      facts.push_back(d.facts);
    return facts;
  }

  result<computed> compute(std::uint32_t index) override {
    const auto& d = all_.devices.at(index);
    if (d.does)
      misbehave_(*d.does);
    if (!d.failed.empty())
      return failure(errc::refused, d.failed);
    return d.work;
  }

  result<std::uint64_t> copy_bandwidth(std::uint32_t from, std::uint32_t to) override {
    const auto* p = between(from, to);
    if (p == nullptr)
      return failure(errc::absent, "there is no link between them");
    if (!p->failed.empty())
      return failure(errc::refused, p->failed);
    return p->first == from ? p->there : p->back;
  }

  result<std::uint32_t> channels(std::uint32_t first, std::uint32_t second) override {
    const auto* p = between(first, second);
    return p == nullptr ? 0 : p->channels;
  }

  std::string collectives() override { return all_.collectives; }

  result<std::string> make_group_key() override { return std::string(simulated_key); }

  result<std::unique_ptr<device_group>> join_group(const std::string& key,
                                                   const group_place&) override {
    if (!all_.group_failed.empty())
      return failure(errc::refused, all_.group_failed);
    if (key != simulated_key)
      return failure(errc::refused, "the other devices of the group are not simulated");
    return std::unique_ptr<device_group>(std::make_unique<simulated_group>(all_, misbehave_));
  }

 private:
  const pair* between(std::uint32_t a, std::uint32_t b) const {
    for (const auto& p : all_.pairs)
      if ((p.first == a && p.second == b) || (p.first == b && p.second == a))
        return &p;
    return nullptr;
  }

  const description all_;
  const misbehaves misbehave_;
};

} // namespace

result<std::unique_ptr<device_port>> simulated_devices(std::string_view json,
                                                       misbehaves misbehave) {
  auto all = read(json);
  if (!all)
    return tl::make_unexpected(all.error());
  return std::unique_ptr<device_port>(
      std::make_unique<simulation>(std::move(*all), std::move(misbehave)));
}

} // namespace troupe::probe
