#pragma once

/// What the one program can be. Each takes its arguments as `main` does, and answers the exit code.
namespace troupe::launch {

int actor_launcher(int argc, char** argv);
/// `actor-launcher doctor`; the arguments are those behind the word.
int doctor_program(int argc, char** argv);
int actor_master(int argc, char** argv);
int actor_operator(int argc, char** argv);
int actor_shell(int argc, char** argv);
int actor_stacks(int argc, char** argv);
int troupe_saver(int argc, char** argv);
int dump_program(int argc, char** argv);
int trace_program(int argc, char** argv);
int probe_program(int argc, char** argv);

} // namespace troupe::launch
