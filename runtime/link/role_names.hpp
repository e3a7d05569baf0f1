#pragma once

/// Names in a certificate that say what its owner may do, besides a node's own name. No node may
/// be called like one of them.
namespace troupe::link {

/// Its owner may be the master at any host: masters move between hosts. The master's bulk links
/// are of this name as well.
inline constexpr const char* master_name = "troupe-master";

/// Its owner may look at the job with actor-shell. Without a node's name beside it, that is all.
inline constexpr const char* shell_name = "troupe-shell";

/// Its owner may look at the job and change it: actor-shell scale.
inline constexpr const char* admin_name = "troupe-admin";

} // namespace troupe::link
