#include "launch/doctor/python.hpp"

#include "launch/options/values.hpp"

#include <fmt/format.h>

namespace troupe::launch::doctor {

namespace {

/// Each restart of the workers waits for this.
constexpr double slow_import_seconds = 15;

finding judge_interpreter(const python_facts& seen) {
  finding f{"interpreter"};
  const auto which = fmt::format("{} ({})", seen.chosen.program, seen.chosen.from);
  if (!seen.failed.empty()) {
    f.how = grade::error;
    f.found = fmt::format("{} does not run: {}", which, seen.failed);
    f.costs = "no worker starts";
    f.remedy = "name another one: --python FILE";
    return f;
  }
  f.found = seen.version.empty() ? which : fmt::format("{}, Python {}", which, seen.version);
  if (!seen.others.active.empty() && seen.others.active != seen.chosen.program) {
    f.how = grade::note;
    f.costs = fmt::format("the active environment has another one, {}", seen.others.active);
    f.remedy = fmt::format("--python {}, if that one is meant", seen.others.active);
  }
  return f;
}

std::string backends(const python_facts& seen) {
  if (!seen.distributed)
    return "no torch.distributed";
  if (seen.gloo && seen.nccl)
    return "gloo and NCCL";
  return seen.gloo ? "gloo, no NCCL" : seen.nccl ? "NCCL, no gloo" : "neither gloo nor NCCL";
}

finding judge_torch(const python_facts& seen) {
  finding f{"torch"};
  if (!seen.in_time) {
    f.how = grade::warning;
    f.found = fmt::format("importing it was not finished within {}", in_words(torch_within));
    f.costs = "each worker waits for it at each restart, all at once";
    f.remedy = "install the environment on a local disk; look for a file system that hangs";
    return f;
  }
  if (seen.torch.empty()) {
    f.how = grade::error;
    f.found = fmt::format("{} cannot import it: {}", seen.chosen.program,
                          seen.torch_error.empty() ? "no reason was given" : seen.torch_error);
    f.costs = "a script that imports torch ends at once, on each restart";
    f.remedy = fmt::format("{} -m pip install torch, or --python FILE with the interpreter that "
                           "has it",
                           seen.chosen.program);
    return f;
  }
  f.found =
      fmt::format("{}, {}, imported in {:.1f} s{}", seen.torch, backends(seen), seen.import_seconds,
                  seen.troupe ? "" : "; the package troupe is not there");
  if (!seen.distributed) {
    f.how = grade::error;
    f.costs = "init_process_group does not exist in this build";
    f.remedy = "install a build of torch with USE_DISTRIBUTED=1";
  } else if (seen.import_seconds > slow_import_seconds) {
    f.how = grade::note;
    f.costs = "each restart of the workers waits for it";
    f.remedy = "install the environment on a local disk";
  } else if (!seen.troupe) {
    f.how = grade::note;
    f.costs = "import troupe.checkpoint fails: the script saves by its own means";
    f.remedy = "pip install the wheel actor_launcher-*.whl into this environment";
  }
  return f;
}

/// Both projects have files in the folder `troupe`, and pip overwrites and removes without a word.
finding judge_package(const python_facts& seen) {
  finding f{"package troupe"};
  f.how = seen.troupe ? grade::warning : grade::note;
  f.found = fmt::format("the distribution troupe {} of another project is installed{}",
                        seen.other_troupe, seen.troupe ? " beside actor-launcher" : "");
  f.costs = seen.troupe
                ? "both write the module and the command `troupe`: the one that pip touches "
                  "last breaks the other"
                : "import troupe is not ours: the script saves by its own means";
  f.remedy =
      fmt::format("{0} -m pip uninstall troupe; {0} -m pip install --force-reinstall --no-deps the "
                  "wheel actor_launcher-*.whl",
                  seen.chosen.program);
  return f;
}

finding judge_gpus(const python_facts& seen) {
  finding f{"GPUs"};
  const auto visible = seen.devices.value_or(0);
  if (seen.gpus == 0 && visible == 0) {
    f.found = "none";
    return f;
  }
  f.found =
      fmt::format("{} in /dev{}{}", seen.gpus,
                  seen.driver.empty() ? ", no NVIDIA driver in /proc" : ", driver " + seen.driver,
                  seen.devices ? fmt::format(", {} for torch", visible) : "");
  if (seen.devices && visible == 0) {
    f.how = grade::warning;
    f.costs = seen.built_for.empty()
                  ? "torch is a build for CPUs: training runs on them"
                  : fmt::format("torch (for CUDA {}) sees none: training runs on the CPU, or "
                                "set_device fails",
                                seen.built_for);
    f.remedy =
        seen.built_for.empty()
            ? "install a build of torch for CUDA"
            : "nvidia-smi tells about driver and devices; CUDA_VISIBLE_DEVICES may hide them; "
              "docker needs --gpus all";
  } else if (visible > 0 && seen.workers > visible) {
    f.how = grade::warning;
    f.costs = fmt::format("{} workers share {}: set_device(LOCAL_RANK) fails, and NCCL refuses two "
                          "ranks on one",
                          seen.workers, visible);
    f.remedy = "--nproc-per-node gpu";
  } else if (visible > 0 && !seen.nccl) {
    f.how = grade::warning;
    f.costs = "this torch has no NCCL: collectives go through the CPU";
    f.remedy = "install a build of torch with NCCL";
  }
  return f;
}

/// "key=value" behind the mark of our own lines.
void take_line(python_facts& seen, const std::string& key, const std::string& value) {
  const bool yes = value == "1";
  if (key == "version")
    seen.version = value;
  else if (key == "troupe")
    seen.troupe = yes;
  else if (key == "other_troupe")
    seen.other_troupe = value;
  else if (key == "torch_error")
    seen.torch_error = value;
  else if (key == "torch")
    seen.torch = value;
  else if (key == "seconds")
    seen.import_seconds = python_float(value).value_or(0);
  else if (key == "distributed")
    seen.distributed = yes;
  else if (key == "gloo")
    seen.gloo = yes;
  else if (key == "nccl")
    seen.nccl = yes;
  else if (key == "built_for")
    seen.built_for = value;
  else if (const auto n = digits(value); key == "devices" && n)
    seen.devices = static_cast<std::uint32_t>(*n);
}

} // namespace

finding judge(const command_facts& seen) {
  finding f{"command"};
  if (seen.script.empty()) {
    f.found = "no script was given; that of the job can be named behind the options";
  } else if (seen.wrong.empty()) {
    f.found = fmt::format("{} can be started", seen.script);
  } else {
    f.how = grade::error;
    f.found = seen.wrong;
    f.costs = "the launcher ends";
  }
  return f;
}

void take_answer(python_facts& seen, const std::string& output) {
  constexpr std::string_view mark = "troupe-doctor:";
  std::string last;
  for (const auto& raw : split(output, '\n')) {
    const auto line = stripped(raw);
    const auto equals = line.find('=');
    if (line.compare(0, mark.size(), mark) == 0 && equals != std::string::npos)
      take_line(seen, line.substr(mark.size(), equals - mark.size()), line.substr(equals + 1));
    else if (!line.empty())
      last = line;
  }
  if (seen.version.empty() && seen.failed.empty() && seen.in_time)
    seen.failed = last.empty() ? "it said nothing about itself" : last;
  else if (seen.torch.empty() && seen.torch_error.empty())
    seen.torch_error = last.empty() ? seen.failed : last;
}

findings judge(const python_facts& seen) {
  if (!seen.wanted)
    return {{"interpreter", grade::ok, "none is used (--no-python)"}, judge_gpus(seen)};
  if (!seen.failed.empty() && seen.version.empty())
    return {judge_interpreter(seen), judge_gpus(seen)};
  findings judged{judge_interpreter(seen), judge_torch(seen), judge_gpus(seen)};
  if (!seen.other_troupe.empty())
    judged.push_back(judge_package(seen));
  return judged;
}

} // namespace troupe::launch::doctor
