#pragma once

#include "launch/options/options.hpp"
#include "launch/shell/terminal.hpp"

#include <cstddef>

namespace troupe::launch {

/// For a program that looks at what may be broken: it asks nothing of the machine but how wide its
/// terminal is. A directory of PATH may be what holds up the processes that it looks at.
inline machine_facts only_columns() {
  // Where stdout is no terminal, the help text is as wide as this.
  constexpr std::size_t columns_default = 80;
  machine_facts machine;
  const auto columns = standard_output().columns;
  machine.columns = columns == 0 ? columns_default : columns;
  return machine;
}

} // namespace troupe::launch
