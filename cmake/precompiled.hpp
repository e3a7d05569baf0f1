// What nearly every file above runtime/ includes, compiled once: CAF and Cap'n Proto are most of what a compiler reads.
// Only builds with TROUPE_PRECOMPILE use it; the others prove that every file includes what it needs.
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/sup/root.hpp"
#include "runtime/sup/shell.hpp"
#include "runtime/sup/spec.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>
