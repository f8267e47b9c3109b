/// Decides which proxies are trusted to name the address of their client. Pure.
///
/// Only X-Forwarded-For is read. A proxy that sets it passes on the client's own `Forwarded` (RFC
/// 7239), so trusting that header would let clients choose their address.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "ipc/http/http_framing.hpp"
#include "ipc/http/http_source.hpp"

namespace leasehold::http {

class TrustedProxies {
 public:
  /// Each text is an address, a network such as "10.0.0.0/8" or "2001:db8::/32", or "uid:33" for a
  /// user on a Unix socket. Errors: BadRequest.
  static Result<TrustedProxies> parse(std::span<const std::string> texts);

  bool trusts(const PeerAddress& peer) const;

  /// The client whose request `peer` sent: the last address of X-Forwarded-For that is not a
  /// trusted proxy's, or the first if all are. Returns `peer` if it is not trusted, if the header
  /// is missing, or if an entry from the last one to that address is malformed. Entries before that
  /// address are not read, because the client may have written them.
  PeerAddress client_of(const PeerAddress& peer, const Head& head) const;

 private:
  struct Network {
    std::array<std::uint8_t, 16> bytes{};  ///< IPv4 addresses are mapped into IPv6.
    unsigned bits = 128;                   ///< Length of the prefix.
  };
  static Result<Network> parse_network(const std::string& text);

  std::vector<Network> networks_;
  std::vector<PeerAddress> users_;
};

}  // namespace leasehold::http
