#pragma once

#include <string_view>

namespace troupe::trace {

/// A socket that listens at 127.0.0.1; -1: the port cannot be had, errno says why.
int listen_at(int port);
/// Answers one client: `GET /metrics`, and nothing else. `metrics` is called for the text. Bounded
/// in time and bytes, as any program of the machine may dial.
void answer_one(int listening, std::string_view (*metrics)());

} // namespace troupe::trace
