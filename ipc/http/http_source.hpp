/// The address of a connection's peer, and the source that its use of resources is charged to.
/// Pure.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>

namespace leasehold::http {

/// "10.1.2.3", "2001:db8::1", or "uid:1000" on a Unix socket.
using PeerAddress = std::string;

/// "10.1.2.3", the /64 of an IPv6 address, or "uid:1000".
using Source = std::string;

/// An IPv4-mapped IPv6 address becomes IPv4. Removes an IPv6 zone.
PeerAddress peer_address(const boost::asio::ip::address& address);

Source source_of(const PeerAddress& peer);

}  // namespace leasehold::http
