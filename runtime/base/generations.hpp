#pragma once

#include "runtime/base/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>

/// How generations are numbered, so that two masters never use one number.
///
/// After a cut of the network each side may have a master, and neither can ask the other. So a
/// number is a pair: the term of the master that proposes it, and a count. It stays one integer,
/// since it is compared at many places and each of them must compare alike:
///
///     number = (term - 1) * 4096 + count
///
/// - Terms are unique, so numbers are.
/// - Whatever a later master proposes is higher than all that an earlier one proposes, also later:
///   of two worlds the one of the newer term is the newer one.
/// - A term is a time in milliseconds, so a number stays below 2^53 until 2039, and readers of JSON
///   that know only floating point hold it exactly.
/// - A term with more than 4096 generations reaches into the numbers of the next milliseconds. No
///   other master began just then, or it would have taken this job over.
namespace troupe {

/// The number after `known`, the newest that this master knows of: from its journal, or from its
/// nodes. The count goes on from there.
generation next_generation(generation known, term master);

/// Of the master that proposed it; 1 for numbers without a term.
term term_of(generation g);

/// The same count, as if a master of this term had proposed it.
generation with_term(generation g, term master);

/// What people are told: 3 for the third generation of a job. Two masters of one job may both have
/// a third generation; where one could be taken for the other, in_full is told.
std::uint64_t count_of(generation g);

/// "generation 3 of term 1763935000123"; "generation 3" of a number without a term, as versions
/// before had them.
std::string in_full(generation g);
/// Inverse of in_full.
std::optional<generation> generation_in(const std::string& full);

} // namespace troupe
