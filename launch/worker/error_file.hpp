#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// The error file: what torch's `@record` writes about an exception (torch.distributed.elastic.
/// multiprocessing.errors), a JSON object. `message` is an object with `message` ("Type: text") and
/// `extraInfo` {`py_callstack`, `timestamp`}; in an older form it is a text, and `timestamp` stands
/// beside it.
namespace troupe::launch {

struct recorded_error {
  std::string line;      ///< its first line, "Type: text"
  std::string traceback; ///< the call stack, or the message if there is none; may have many lines
  std::optional<std::int64_t> unix_time_ms;
};

/// Nothing if it is not an error file.
std::optional<recorded_error> read_error_file(const std::string& content);

/// The same error file with `message.errorCode`, as torchrun passes it on to the process that
/// started it. The older form stays as it is.
std::string with_error_code(const std::string& content, std::int32_t code);

/// An error file for an error whose own is on another node.
std::string make_error_file(const std::string& line, const std::string& traceback,
                            std::int64_t unix_time_ms, std::int32_t code);

} // namespace troupe::launch
