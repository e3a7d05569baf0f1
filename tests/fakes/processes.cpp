#include "tests/fakes/processes.hpp"

#include "runtime/base/invariant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

namespace troupe::testing {

namespace {
constexpr auto sweep_deed = "sweep";
} // namespace

void fake_processes::tell(const std::string& deed) {
  deeds_.push_back(deed);
}

result<ports::started> fake_processes::start(const ports::process_spec& spec, ended on_end) {
  if (no_start_)
    return tl::make_unexpected(*no_start_);
  const auto id = ++last_;
  tell(spec.argv.at(0) + " starts");
  living_.emplace(id, process{spec.argv.at(0), std::move(on_end)});
  return ports::started{id, static_cast<std::int32_t>(1000 + id)};
}

void fake_processes::survive(const std::string& name, std::uint64_t label) {
  const auto id = ++last_;
  survivors_.push_back({id, static_cast<std::int32_t>(1000 + id), label});
  living_.emplace(id, process{name, [](ports::exit_status) {}});
}

void fake_processes::adopt(ports::process_id survivor, ended on_end) {
  auto& p = living_.at(survivor);
  tell(p.name + " is adopted");
  p.on_end = std::move(on_end);
}

void fake_processes::signal_alone(ports::process_id id, int number) {
  if (const auto found = living_.find(id); found != living_.end())
    tell(found->second.name + " alone gets " + std::to_string(number));
}

void fake_processes::signal(ports::process_id id, int number) {
  const auto found = living_.find(id);
  if (found == living_.end())
    return;
  tell(found->second.name + " gets " + std::to_string(number));
  if (number != SIGKILL || unkillable)
    return;
  const auto dead = std::move(found->second);
  living_.erase(found);
  dead.on_end({true, SIGKILL});
}

void fake_processes::sweep(const ports::sweep_order&,
                           std::function<void(const ports::left_behind&)>,
                           std::function<void(const ports::swept&)> done) {
  tell(sweep_deed);
  done({std::exchange(strays, 0), 0});
}

result<std::uint16_t> fake_processes::free_port(const std::string&) {
  if (no_ports)
    return failure(errc::unavailable, "no port is free");
  return static_cast<std::uint16_t>(4000);
}

void fake_processes::end(const std::string& name, ports::exit_status how) {
  const auto found = std::find_if(living_.begin(), living_.end(),
                                  [&name](const auto& p) { return p.second.name == name; });
  invariant(found != living_.end(), "no process of this name lives: " + name);
  const auto dead = std::move(found->second);
  living_.erase(found);
  dead.on_end(how);
}

std::string fake_processes::living() const {
  std::set<std::string> names;
  for (const auto& [id, p] : living_)
    names.insert(p.name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string fake_processes::take_deeds() {
  auto deeds = std::exchange(deeds_, {});
  for (auto from = deeds.begin(); from != deeds.end();) {
    const auto sweep = std::find(from, deeds.end(), sweep_deed);
    std::sort(from, sweep);
    from = sweep == deeds.end() ? sweep : sweep + 1;
  }
  return fmt::format("{}", fmt::join(deeds, ", "));
}

} // namespace troupe::testing
