#pragma once

#include "worker/python/interpreter.hpp"

/// Acts after a module was imported, without a finder, a loader or a frame of ours: every module
/// that is written in Python is executed by the builtin function `exec`, from `importlib`.
namespace troupe::worker {

/// False where that function cannot be looked on, or where too many modules are waited for.
bool when_imported(object* exec, const char* name, object* action);

} // namespace troupe::worker
