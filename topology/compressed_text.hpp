#pragma once

#include "runtime/base/result.hpp"
#include "topology/located_json.hpp"

#include <string>
#include <string_view>

/// Texts as they are, or gzip in base64: a ConfigMap holds a megabyte at most, and the rank table
/// of a large job is longer.
namespace troupe::topology {

/// Gzip in base64, in one line.
result<std::string> compressed(std::string_view text);

/// The text itself. What begins with '{', after blanks, is not compressed. Lines of base64 may be
/// broken. Refuses what is neither, what is damaged and what is longer than
/// `limits::topology_text_max`, before it takes memory for it.
result<std::string> plain(std::string_view text);

/// What `plain` says of a text, as JSON: what all readers of such files begin with.
result<json_value> plain_json(std::string_view text, prose texts = prose::refused);

} // namespace troupe::topology
