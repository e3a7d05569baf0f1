#pragma once

#include <string>

namespace troupe::launch {

/// What a worker's log says last, from the end of the file: whole lines, no longer than
/// limits::log_tail_max, UTF-8 and without zero bytes whatever the worker wrote. One more byte
/// should be read than that: then it shows whether the first line is whole. Of a line that is too
/// long its end.
std::string last_lines(const std::string& end_of_file);

} // namespace troupe::launch
