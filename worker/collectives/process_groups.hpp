#pragma once

#include "diag/progress/page_writer.hpp"

#include <cstdint>
#include <string_view>

/// Which row of the page counts for which of PyTorch's process groups, by the addresses of these.
///
/// A group works, in threads of its own, before anything has told its name: it is "group 3" until
/// then. Looking up takes no lock.
namespace troupe::worker {

using row = diag::page_writer::row;

/// Its row, a new one if it is new.
row row_of(const void* group);
/// The row of its messages between two ranks: these are not the same number at all members.
row point_to_point_row_of(const void* group);

void name_group(const void* group, std::string_view name, std::uint64_t members,
                std::uint64_t members_hash);
/// Its address may be another group's next.
void forget_group(const void* group);

} // namespace troupe::worker
