#include "worker/collectives/observed_functions.hpp"

#include <array>
#include <string>
#include <utility>

namespace troupe::worker {

namespace {

using diag::collective;

constexpr std::array<std::pair<std::string_view, collective>, 20> calls = {{
    {"allreduce", collective::all_reduce},
    {"allreduce_sparse", collective::all_reduce},
    {"allreduce_coalesced", collective::all_reduce},
    {"broadcast", collective::broadcast},
    {"_broadcast_oop", collective::broadcast},
    {"reduce", collective::reduce},
    {"_reduce_oop", collective::reduce},
    {"allgather", collective::all_gather},
    {"_allgather_base", collective::all_gather},
    {"allgather_coalesced", collective::all_gather},
    {"allgather_into_tensor_coalesced", collective::all_gather},
    {"gather", collective::gather},
    {"scatter", collective::scatter},
    {"reduce_scatter", collective::reduce_scatter},
    {"_reduce_scatter_base", collective::reduce_scatter},
    {"reduce_scatter_tensor_coalesced", collective::reduce_scatter},
    {"alltoall", collective::all_to_all},
    {"alltoall_base", collective::all_to_all},
    {"barrier", collective::barrier},
    {"send", collective::send},
}};

/// Takes "9allreduce" from the front.
std::optional<std::string_view> source_name(std::string_view& from) {
  std::size_t length = 0, digits = 0;
  while (digits < from.size() && digits < 4 && from[digits] >= '0' && from[digits] <= '9')
    length = length * 10 + static_cast<std::size_t>(from[digits++] - '0');
  if (digits == 0 || length == 0 || from.size() - digits < length)
    return std::nullopt;
  const auto name = from.substr(digits, length);
  from.remove_prefix(digits + length);
  return name;
}

std::optional<observed> of(std::string_view method) {
  if (method == "send" || method == "recv" || method == "recvAnysource")
    return observed{role::point_to_point, method == "send" ? collective::send : collective::recv,
                    true};
  if (method == "getSequenceNumberForGroup" || method == "setSequenceNumberForGroup")
    return observed{role::sequence_number};
  for (const auto& [name, kind] : calls)
    if (method == name)
      return observed{role::call, kind, true};
  return std::nullopt;
}

} // namespace

std::optional<observed> observed_method(std::string_view mangled, std::string_view class_name) {
  const auto prefix = "_ZN4c10d" + std::to_string(class_name.size()) + std::string(class_name);
  if (mangled.substr(0, prefix.size()) != prefix)
    return std::nullopt;
  mangled.remove_prefix(prefix.size());
  if (mangled == "D0Ev")
    return observed{role::destroy};
  const auto method = source_name(mangled);
  // 'E' ends the nested name: else this is a class inside, or a template.
  if (!method || mangled.empty() || mangled.front() != 'E')
    return std::nullopt;
  return of(*method);
}

} // namespace troupe::worker
