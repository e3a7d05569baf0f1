#pragma once

#include <optional>
#include <string>

/// MindCluster's words for how a job recovers: its annotation `recover-strategy` has any of them,
/// separated by commas. Troupe takes them from an ElasticJob and from `--recover-strategy`.
namespace troupe {

/// For people: "retry, recover, …".
std::string recover_strategies();

/// The first word of the list that is none of them; nothing: all are. An empty list has one empty
/// word.
std::optional<std::string> unknown_recover_strategy(const std::string& list);

/// What a job with this list does today: the rest of a line.
std::string effect_of_recover_strategy(const std::string& list);

/// How a job recovers, whatever asks for another way: the rest of a line.
inline constexpr auto recovery_today =
    "after each failure all workers are started again on their nodes and load the newest "
    "checkpoint, as often as --max-restarts allows";

} // namespace troupe
