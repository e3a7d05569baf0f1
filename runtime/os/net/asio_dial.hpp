#pragma once

#include "runtime/link/options.hpp"
#include "runtime/os/net/authenticator.hpp"
#include "runtime/ports/transport.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>

#include <memory>
#include <vector>

namespace troupe::os {

/// One attempt at a link: ask for the addresses, try them in turn, find the
/// proof for it, encrypt, say hello, wait for the
/// answer; all of it within `options.dial_within`. `own`: from which addresses, where they fit;
/// else the kernel chooses. Any thread.
void start_dialling(boost::asio::io_context& context, const link::options& options,
                    std::shared_ptr<authenticator> auth, std::vector<boost::asio::ip::address> own,
                    const ports::endpoint& where, messages::msg<messages::Hello> hello,
                    ports::transport::dialled done);

} // namespace troupe::os
