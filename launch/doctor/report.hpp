#pragma once

#include "launch/doctor/finding.hpp"

#include <cstddef>
#include <string>

/// How findings are shown.
namespace troupe::launch::doctor {

struct page {
  bool colours = false;
  std::size_t columns = 79;
  bool quiet = false; ///< only warnings and errors
};

/// Lines, each with its end; none of them longer than the page, unless a single word is.
std::string text_of(const finding& f, const page& p);

/// One object, without a line end.
std::string json_of(const finding& f);

/// The last line: what follows from all of them.
std::string summary_of(const findings& all);

/// 1 if something would stop the job.
int exit_code_of(const findings& all);

} // namespace troupe::launch::doctor
