#include "launch/worker/stop_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace troupe::launch {

namespace {

/// 0, or why it is still there.
int why_left(const std::string& path) {
  return path.empty() || ::unlink(path.c_str()) == 0 || errno == ENOENT ? 0 : errno;
}

} // namespace

result<void> remove_stop_files(const stop_files& files, const log::sink& log) {
  if (const int why = why_left(files.own); why != 0)
    return failure(errc::invalid,
                   fmt::format("--stop-file {} is there and cannot be removed, and would end the "
                               "workers after one step: {}",
                               files.own, std::strerror(why)));
  if (const int why = why_left(files.usual); why != 0)
    log("actor-launcher",
        {log::level::warning,
         "usual_stop_file_left",
         fmt::format("the file {} is there and cannot be removed ({}): a script that looks for it "
                     "saves and ends after its first step. Have its owner remove it, or have the "
                     "script look for $TROUPE_STOP_FILE, which is this run's own",
                     files.usual, std::strerror(why)),
         {{"file", files.usual}}});
  return {};
}

} // namespace troupe::launch
