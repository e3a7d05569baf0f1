#pragma once

#include "launch/doctor/finding.hpp"
#include "launch/options/options.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>

/// What would run the script, and what the script would find there.
namespace troupe::launch::doctor {

/// Importing torch takes so long at most; on a cold network file system it may.
inline constexpr auto torch_within = 60s;

struct command_facts {
  std::string script; ///< empty: none was given
  std::string wrong;  ///< what the launcher would object to
};
command_facts look_at_command(const launcher_options& o, const machine_facts& machine);
finding judge(const command_facts& seen);

struct python_facts {
  bool wanted = true; ///< not with --no-python
  interpreter chosen;
  pythons_found others;
  std::uint32_t workers = 1;
  std::uint32_t nodes = 1;
  unsigned gpus = 0;  ///< /dev/nvidia0 and its like
  std::string driver; ///< its version; empty: the kernel has none
  /// Of what the interpreter has said about itself; empty or nothing: it has not.
  std::string failed; ///< why it did not run
  bool in_time = true;
  std::string version, torch_error, torch, built_for;
  double import_seconds = 0;
  bool troupe = false;      ///< our package; not another project's of the same name
  std::string other_troupe; ///< version of another project's distribution `troupe`
  bool distributed = false, gloo = false, nccl = false;
  std::optional<std::uint32_t> devices;
};
/// Blocks until the interpreter has answered, `torch_within` at most.
python_facts look_at_python(const launcher_options& o, const machine_facts& machine);

/// Takes the lines that the interpreter was made to print into `seen`; the last of its other lines
/// says why it failed.
void take_answer(python_facts& seen, const std::string& output);

/// "interpreter", "torch", "GPUs"; "package troupe" where another project has one as well.
findings judge(const python_facts& seen);

} // namespace troupe::launch::doctor
