#pragma once

#include "worker/python/interpreter.hpp"

#include <cstdint>

/// Steps of PyTorch's optimizers, of which several may step in turn.
///
/// PyTorch looks for hooks before and after each step, and asks two tables in each case:
///
///     the global ones before · the optimizer's own · [its step] · the optimizer's own · the global
///     ones after
///
/// Each is an OrderedDict, and each question a call of its builtin method `values`. No hook is
/// there in any of them, so nothing is called, traced or compiled that would not be without us. The
/// table that was asked before the last one says which optimizer has stepped.
///
/// The steps of the first optimizer are counted, until it is gone, or rests while others make many.
namespace troupe::worker {

bool observe_optimizers(object* values, object* before, object* after,
                        void (*observed)(std::uint32_t event));

} // namespace troupe::worker
