#include "launch/options/interpreter.hpp"

namespace troupe::launch {

interpreter choose_interpreter(const std::string& given,
                               const std::map<std::string, std::string>& environment,
                               const pythons_found& found) {
  if (!given.empty())
    return {given, "--python"};
  const auto told = environment.find("PYTHON_EXEC");
  if (told != environment.end() && !told->second.empty())
    return {told->second, "PYTHON_EXEC"};
  if (!found.beside.empty())
    return {found.beside, "the environment of actor-launcher"};
  if (!found.active.empty())
    return {found.active, "the active environment"};
  return {found.on_path.empty() ? "python3" : found.on_path, "PATH"};
}

} // namespace troupe::launch
