#pragma once

#include "runtime/link/options.hpp"
#include "runtime/os/net/guard.hpp"
#include "runtime/ports/transport.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>

namespace troupe::os {

/// One attempt at a link: ask for the addresses, try them in turn, find the
/// proof for it, encrypt, say hello, wait for the
/// answer; all of it within `options.dial_within`. Any thread.
void start_dialling(boost::asio::io_context& context, const link::options& options,
                    std::shared_ptr<guard> at_door, const ports::endpoint& where,
                    messages::msg<messages::Hello> hello, ports::transport::dialled done);

} // namespace troupe::os
