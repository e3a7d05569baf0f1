#pragma once

#include "messages/msg.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::messages {

/// A node on whose behalf a message speaks although another one sent it.
struct spoken_for {
  std::string node;
  std::string field; ///< "failures.node"
};

/// A link belongs to one node: the one that its proof names. Without this check a node with a valid
/// certificate could report another node's workers as failed, or the job as finished.
///
/// The rule is the schemas': each text field called `node` in a message from a node, at any depth,
/// names the sender. The fields are found in the schemas of all known kinds, so a new kind is
/// covered from the moment it is declared. Returns the first name that is not `own`; nothing for a
/// kind that this build does not know, which is dropped unread.
std::optional<spoken_for> speaks_for_another(const any_msg& m, const std::string& own);

/// Eight bytes that stand for a node's name in a list of thousands (RankOwners): FNV-1a. A node
/// does not choose the name that its link proves, so it gains nothing by another name's
/// fingerprint.
std::uint64_t fingerprint(std::string_view node);

} // namespace troupe::messages
