#include "diag/progress/page.hpp"

namespace troupe::diag {

const char* name_of(phase p) {
  switch (p) {
  case phase::other:
    return "other";
  case phase::input:
    return "input";
  case phase::forward:
    return "forward";
  case phase::backward:
    return "backward";
  case phase::optimizer:
    return "optimizer";
  case phase::checkpoint:
    return "checkpoint";
  case phase::evaluation:
    return "evaluation";
  case phase::user:
    return "user";
  }
  return "unknown";
}

const char* name_of(collective c) {
  switch (c) {
  case collective::none:
    return "none";
  case collective::all_reduce:
    return "all_reduce";
  case collective::broadcast:
    return "broadcast";
  case collective::reduce:
    return "reduce";
  case collective::all_gather:
    return "all_gather";
  case collective::gather:
    return "gather";
  case collective::scatter:
    return "scatter";
  case collective::reduce_scatter:
    return "reduce_scatter";
  case collective::all_to_all:
    return "all_to_all";
  case collective::barrier:
    return "barrier";
  case collective::send:
    return "send";
  case collective::recv:
    return "recv";
  case collective::other:
    return "collective";
  }
  return "unknown";
}

} // namespace troupe::diag
