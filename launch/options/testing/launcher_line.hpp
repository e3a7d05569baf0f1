#pragma once

#include "launch/options/options.hpp"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

/// Command lines of the launcher, as tests type them.
namespace troupe::launch::testing {

inline machine_facts eight_cpus() {
  machine_facts m;
  m.cpus = 8;
  return m;
}

inline launcher_options accepted(const std::vector<std::string>& arguments,
                                 const machine_facts& machine = eight_cpus()) {
  const auto p = parse_launcher(arguments, machine);
  if (const auto* e = std::get_if<refusal>(&p))
    FAIL(e->what);
  return std::get<launcher_options>(p);
}

inline std::string refused(const std::vector<std::string>& arguments,
                           const machine_facts& machine = eight_cpus()) {
  const auto p = parse_launcher(arguments, machine);
  const auto* e = std::get_if<refusal>(&p);
  REQUIRE(e);
  CHECK(e->what.find('\n') == std::string::npos);
  return e->what;
}

inline bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace troupe::launch::testing
