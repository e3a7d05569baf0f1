#pragma once

#include "diag/progress/page.hpp"

#include <optional>
#include <string_view>

/// Which functions of PyTorch are looked at, by their mangled names. Pure.
namespace troupe::worker {

enum class role {
  call,           ///< makes a collective
  call_only,      ///< makes a collective whose end is not seen
  point_to_point, ///< makes a message between two ranks
  enqueue,
  loop,
  finish,
  sequence_number,
  destroy,
};

struct observed {
  role what = role::call;
  diag::collective kind = diag::collective::none;
  /// Answers an object, for which a hidden first argument says where it goes on x86-64.
  bool answers_object = false;
};

/// "_ZN4c10d16ProcessGroupGloo9allreduceERSt6vector…" of class "ProcessGroupGloo": all_reduce.
std::optional<observed> observed_method(std::string_view mangled, std::string_view class_name);

} // namespace troupe::worker
