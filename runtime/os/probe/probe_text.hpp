#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <string>

/// What a node has found out about itself, as text.
namespace troupe::os {

/// A table for people, and what follows from it as the last line.
std::string text_of(const messages::msg<messages::NodeProbed>& report);

/// One JSON object, without a line end.
std::string json_of(const messages::msg<messages::NodeProbed>& report);

} // namespace troupe::os
