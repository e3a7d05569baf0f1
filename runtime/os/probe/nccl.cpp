#include "runtime/os/probe/nccl.hpp"

#include "runtime/os/log/printable.hpp"

#include <fmt/format.h>

namespace troupe::os {

nccl::nccl(const std::string& own_program)
    : library(nvidia_libraries(own_program, "nccl", "libnccl.so.2")) {
  const auto take = [this](auto*& function, const char* name) {
    function = library.function<std::remove_reference_t<decltype(*function)>>(name);
    if (function == nullptr && missing_.empty())
      missing_ = name;
  };
  take(version, "ncclGetVersion");
  take(make_id, "ncclGetUniqueId");
  take(join, "ncclCommInitRank");
  take(leave, "ncclCommDestroy");
  take(abort, "ncclCommAbort");
  take(failed_meanwhile, "ncclCommGetAsyncError");
  take(error_string, "ncclGetErrorString");
  take(begin_calls, "ncclGroupStart");
  take(end_calls, "ncclGroupEnd");
  take(all_reduce, "ncclAllReduce");
  take(all_gather, "ncclAllGather");
  last_error = library.function<cuda::signatures::ncclGetLastError>("ncclGetLastError");
}

std::string nccl::name() const {
  int number = 0;
  if (version == nullptr || version(&number) != cuda::nccl_success)
    return {};
  return fmt::format("NCCL {}.{}.{}", number / 10'000, number / 100 % 100, number % 100);
}

result<void> nccl::usable() const {
  if (!library)
    return failure(errc::absent, "NCCL (libnccl.so.2) was not found");
  if (!missing_.empty())
    return failure(errc::refused,
                   fmt::format("NCCL (libnccl.so.2) is too old: it has no {}", missing_));
  return {};
}

result<void> nccl::check(cuda::nccl_result code, const std::string& what) const {
  if (code == cuda::nccl_success)
    return {};
  const char* text = error_string(code);
  const char* more = last_error == nullptr ? nullptr : last_error(nullptr);
  const bool has_more = more != nullptr && *more != '\0';
  return failure(errc::refused,
                 fmt::format("{}: {} (NCCL error {}){}{}", what,
                             text == nullptr ? "unknown error" : text, code, has_more ? ": " : "",
                             has_more ? printable(more) : std::string()));
}

} // namespace troupe::os
