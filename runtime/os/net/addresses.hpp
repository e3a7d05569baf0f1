#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/net/stream.hpp"
#include "runtime/ports/transport.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <optional>
#include <vector>

namespace troupe::os {

/// The address itself if `host` is one in numbers.
std::optional<boost::asio::ip::address> numeric(const std::string& host);

/// Whether the host, as it was given, stands for the loopback interface: then all that meet there
/// are on this machine.
bool is_loopback(const std::string& host);

/// What others may dial to reach the machine from which `local` leads to `dialled`. An address of
/// the loopback interface is of no use to another machine. A name that leads there from here is
/// this machine's own (/etc/hosts often says 127.0.1.1), and others have dialled it as well.
std::string address_for_others(const boost::asio::ip::address& local, const std::string& dialled);

/// What is wrong with a link-local address that does not say by which interface it is to be
/// reached, or by one that is not there: fe80::1%eth0.
std::optional<std::string> zone_validation_error(const std::string& host,
                                                 const boost::asio::ip::address& address);

/// Those of a host's addresses that are this machine's. Blocks while it asks for a name.
std::vector<boost::asio::ip::address> own_addresses(const std::string& host);

/// From which of them to dial: one of the same family, and the loopback interface only from within.
std::optional<boost::asio::ip::address>
source_for(const boost::asio::ip::address& dialled,
           const std::vector<boost::asio::ip::address>& own);

/// All addresses on which to listen as `host`: an address, or every address for "*" and "". A name
/// of this host stands for every address too, since others may know it by another one than we do
/// (/etc/hosts often says 127.0.1.1); unless only loopback may be used, or it is "localhost": then
/// it stands for its own. Blocks while it asks for a name.
result<std::vector<boost::asio::ip::tcp::endpoint>>
listening_addresses(const ports::endpoint& where, bool loopback_only);

/// Without a token or certificates only this host may talk to itself. `purpose` is "listening on"
/// or "dialling".
result<void> check_loopback(const char* purpose, const ports::endpoint& where,
                            const boost::asio::ip::address& address);

/// What connections of one owner have in common: an IPv4 address, or the network of an IPv6 one (64
/// bits), in which a machine may take as many addresses as it likes.
std::string network_of(const boost::asio::ip::address& address);

/// "10.0.0.7:51234", also when the address came as IPv4 in IPv6.
std::string to_text(const boost::asio::ip::tcp::endpoint& e);

/// A socket that no child process inherits, not even one that starts in this moment. Negative with
/// errno set.
int make_socket(const boost::asio::ip::tcp::endpoint& for_address);

} // namespace troupe::os
