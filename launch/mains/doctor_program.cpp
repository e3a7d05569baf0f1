#include "launch/doctor/doctor.hpp"
#include "launch/doctor/python.hpp"
#include "launch/doctor/report.hpp"
#include "launch/mains/programs.hpp"
#include "launch/shell/terminal.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/program.hpp"

#include <fmt/format.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "actor-launcher";
/// A person who waits longer than this wants to know for what.
constexpr auto patience = 3s;

doctor::page page_for(const launcher_options& job, const machine_facts& machine) {
  constexpr std::size_t readable = 79;
  const auto out = standard_output();
  doctor::page page;
  page.colours = wants_colours(out, machine.environment);
  page.columns = out.columns == 0 ? readable : std::min(out.columns, readable);
  page.quiet = job.common.talk == os::verbosity::quiet;
  return page;
}

} // namespace

/// What a launcher would run into here, told before there is a job. Nothing is started but the
/// interpreter, and nothing is left behind.
int troupe::launch::doctor_program(int argc, char** argv) {
  prepare_process(program);
  const auto machine = this_machine();
  const auto parsed = parse_doctor(arguments_of(argc, argv), machine);
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  const auto& options = std::get<doctor_options>(parsed);
  const auto page = page_for(options.job, machine);
  doctor::findings all;
  const auto told = [&](const doctor::finding& f) {
    all.push_back(f);
    (void)print(options.json ? doctor::json_of(f) + "\n" : doctor::text_of(f, page));
  };
  const auto slow = [](const std::string& subject) {
    say(fmt::format("actor-launcher: still waiting for: {} (importing torch may take {})\n",
                    subject, in_words(doctor::torch_within)));
  };
  doctor::examine(doctor::checks_for(options, machine, os::raise_open_files()), told, patience,
                  slow);
  if (!options.json)
    (void)print(doctor::summary_of(all) + "\n");
  // Threads of checks that have not ended are of no interest any more.
  leave(doctor::exit_code_of(all));
}
