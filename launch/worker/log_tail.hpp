#pragma once

#include <string>

namespace troupe::launch {

/// What a worker's log says last, from the end of the file: whole lines, no longer than
/// limits::log_tail_max, UTF-8 and without zero bytes whatever the worker wrote. One more byte
/// should be read than that: then it shows whether the first line is whole. Of a line that is too
/// long its end.
std::string last_lines(const std::string& end_of_file);

/// The line in which Python says what was not caught, if these last lines end with a traceback; no
/// longer than limits::matched_line_max. Else empty.
std::string exception_in(const std::string& log_tail);

} // namespace troupe::launch
