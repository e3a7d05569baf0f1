#include "launch/keeper/last_words.hpp"

#include "runtime/os/process/launch_plan.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include <unistd.h>

namespace troupe::launch {

namespace {

keeper_client* keeper_of_this_process = nullptr;
std::terminate_handler otherwise = nullptr;

/// Called where memory is wanted and none is left. An exception would end one actor, and what needs
/// its answers would wait for another actor that finds no memory either.
[[noreturn]] void say_that_memory_is_out() {
  keeper_of_this_process->out_of_memory();
  ::_exit(1);
}

/// For an exception that reaches no handler. It unwinds nothing, since destructors would wait for
/// threads that do not know of it.
[[noreturn]] void say_why_and_leave() {
  try {
    if (const auto reason = std::current_exception())
      std::rethrow_exception(reason);
  } catch (const std::system_error& e) {
    // With this code a thread was refused: for nothing else does the library throw it.
    const bool thread = e.code() == std::errc::resource_unavailable_try_again;
    keeper_of_this_process->failed(
        thread ? fmt::format("no thread can be started: {} (see ulimit -u and ulimit -v)",
                             os::system_message(e.code().value()))
               : e.what());
    ::_exit(1);
  } catch (const std::runtime_error& e) {
    keeper_of_this_process->failed(e.what());
    ::_exit(1);
  } catch (...) {
  }
  otherwise();
  std::abort();
}

} // namespace

void say_last_words_to(keeper_client& keeper) {
  keeper_of_this_process = &keeper;
  otherwise = std::set_terminate(say_why_and_leave);
  std::set_new_handler(say_that_memory_is_out);
}

} // namespace troupe::launch
