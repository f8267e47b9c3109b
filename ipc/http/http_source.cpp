#include "ipc/http/http_source.hpp"

#include <algorithm>
#include <cstdint>

namespace leasehold::http {

namespace ip = boost::asio::ip;

namespace {

constexpr std::size_t kPrefixBytes = 8;  // /64

}  // namespace

PeerAddress peer_address(const ip::address& address) {
  if (!address.is_v6()) return address.to_string();
  const ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, v6).to_string();
  return ip::address_v6(v6.to_bytes()).to_string();
}

Source source_of(const PeerAddress& peer) {
  boost::system::error_code error;
  const auto address = ip::make_address(peer, error);
  if (error || !address.is_v6()) return peer;
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + kPrefixBytes, bytes.end(), std::uint8_t{0});
  return ip::address_v6(bytes).to_string();
}

}  // namespace leasehold::http
