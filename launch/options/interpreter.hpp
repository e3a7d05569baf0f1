#pragma once

#include <map>
#include <string>

/// Which Python runs a script.
namespace troupe::launch {

/// The interpreters that there are on this machine, as paths; empty: there is none.
struct pythons_found {
  std::string beside;  ///< in the virtual environment that this program is installed in
  std::string active;  ///< of the active virtual environment (VIRTUAL_ENV or CONDA_PREFIX)
  std::string on_path; ///< the first python3 on PATH
};

struct interpreter {
  std::string program;
  std::string from; ///< which rule chose it, in words
};

/// `given` (`--python`), else PYTHON_EXEC as for torchrun, else what was found, in the order above:
/// a program that was installed into an environment runs scripts there, as torchrun does.
interpreter choose_interpreter(const std::string& given,
                               const std::map<std::string, std::string>& environment,
                               const pythons_found& found);

} // namespace troupe::launch
