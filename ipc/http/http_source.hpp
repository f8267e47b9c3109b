/// The peer of a connection, and the owner of what it consumes. Pure.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>

namespace leasehold::http {

/// "10.1.2.3", "2001:db8::1", or "uid:1000" on a Unix socket.
using PeerAddress = std::string;

/// "10.1.2.3", the /64 of an IPv6 address, or "uid:1000".
using Source = std::string;

/// An IPv4 address within an IPv6 one, as a socket of both has it, is IPv4. Without a zone.
PeerAddress peer_address(const boost::asio::ip::address& address);

Source source_of(const PeerAddress& peer);

}  // namespace leasehold::http
