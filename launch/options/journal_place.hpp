#pragma once

#include "runtime/base/result.hpp"

#include <optional>
#include <string>

/// What `--journal` names: a file, or with "configmap:NAME" a ConfigMap of Kubernetes.
namespace troupe::launch {

/// Nothing: it is a file.
std::optional<std::string> config_map_of(const std::string& journal);

/// What is wrong with it; a file may have any name.
std::optional<error> wrong_journal(const std::string& journal);

} // namespace troupe::launch
