#pragma once

#include <boost/json/value.hpp>

#include <optional>
#include <string>

/// Changes of objects, as an API server makes them.
namespace troupe::testing {

/// RFC 7386: null removes, objects are merged, all else replaces.
void merge_patch(boost::json::value& target, const boost::json::value& patch);

/// RFC 6902: add, replace, remove, test. In words what is wrong with it; then nothing has changed.
std::optional<std::string> json_patch(boost::json::value& target, const boost::json::value& patch);

/// As server-side apply merges, but for lists, which it merges by keys: here they replace.
void apply_patch(boost::json::value& target, const boost::json::value& patch);

} // namespace troupe::testing
