#include "diag/stacks/fault_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace troupe::diag {

namespace {

/// What raises a signal, and what ends a C++ program that cannot go on: of each the caller says
/// more.
bool only_raises(std::string_view function) {
  constexpr std::array<std::string_view, 14> names{"abort",
                                                   "raise",
                                                   "gsignal",
                                                   "kill",
                                                   "tgkill",
                                                   "pthread_kill",
                                                   "__pthread_kill",
                                                   "__GI_raise",
                                                   "__GI_abort",
                                                   "__assert_fail",
                                                   "__assert_fail_base",
                                                   "__libc_message",
                                                   "__pthread_kill_implementation",
                                                   "std::terminate()"};
  const auto begins = [function](std::string_view with) {
    return function.substr(0, with.size()) == with;
  };
  return std::find(names.begin(), names.end(), function) != names.end() || begins("__cxxabiv1::") ||
         begins("__gnu_cxx::__verbose_terminate_handler") || begins("__cxa_");
}

/// "ns::f(int)" is "ns::f()"; of a function without a name the file is told.
std::string shown(const stack_frame& f) {
  const std::string_view function = f.function;
  if (!function.empty())
    return fmt::format("{}()", function.substr(0, function.find('(', 1)));
  return f.source.substr(f.source.find_last_of('/') + 1);
}

std::string native_place(const std::vector<stack_frame>& frames) {
  const auto handler = std::find_if(frames.rbegin(), frames.rend(), [](const stack_frame& f) {
    return f.function == signal_frame;
  });
  if (handler == frames.rend() || handler.base() == frames.end())
    return {};
  const auto hit = handler.base();
  // Functions without a name lie between those that raise.
  auto raises = frames.end();
  for (auto f = hit; f != frames.end() && (f->function.empty() || only_raises(f->function)); ++f)
    if (!f->function.empty())
      raises = f;
  if (raises == frames.end())
    return shown(*hit);
  const auto caller = std::next(raises);
  return shown(caller == frames.end() || caller->function.empty() ? *raises : *caller);
}

} // namespace

std::string fault_place(const thread_stacks& thread) {
  auto place = native_place(thread.native);
  if (thread.python.empty())
    return place;
  const auto& f = thread.python.front();
  const auto source = std::string_view(f.source).substr(f.source.find_last_of('/') + 1);
  return fmt::format("{}{}{}:{} ({})", place, place.empty() ? "" : " at ", source, f.line,
                     f.function.empty() ? "??" : f.function);
}

} // namespace troupe::diag
