#include "ipc/http/trusted_proxies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <ranges>
#include <string_view>

namespace leasehold::http {

namespace ip = boost::asio::ip;

namespace {

constexpr std::size_t kMaxAddressBytes = 64;  // with brackets and a port
constexpr unsigned kMappedBits = 96;          // prefix of an IPv4 address mapped into IPv6
constexpr std::size_t kMaxPortDigits = 5;

using Bytes = std::array<std::uint8_t, 16>;

std::optional<ip::address> address_of(std::string_view text) {
  if (text.empty() || text.size() > kMaxAddressBytes || text.contains('%')) return std::nullopt;
  boost::system::error_code error;
  auto address = ip::make_address(std::string(text), error);
  if (error) return std::nullopt;
  return address;
}

Bytes bytes_of(const ip::address& address) {
  if (address.is_v6()) return address.to_v6().to_bytes();
  return ip::make_address_v6(ip::v4_mapped, address.to_v4()).to_bytes();
}

bool has_prefix(const Bytes& bytes, const Bytes& prefix, unsigned bits) {
  const auto whole = bits / 8;
  if (!std::equal(prefix.begin(), prefix.begin() + whole, bytes.begin())) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || (bytes[whole] ^ prefix[whole]) >> (8 - rest) == 0;
}

/// Parses a user id or a number of bits. Leaves `out` unchanged if it returns false.
bool parse_number(std::string_view text, unsigned most, unsigned& out) {
  unsigned number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool fits =
      read.ec == std::errc{} && read.ptr == text.data() + text.size() && number <= most;
  if (fits) out = number;
  return fits;
}

bool has_port_digits(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPortDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// Parses an entry of X-Forwarded-For: an address, which some proxies write with a port.
std::optional<PeerAddress> entry_of(std::string_view text) {
  text = trimmed(text);
  std::optional<ip::address> address;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && !(rest.starts_with(':') && has_port_digits(rest.substr(1))))
      return std::nullopt;
    address = address_of(text.substr(1, end - 1));
    if (address && !address->is_v6()) return std::nullopt;
  } else {
    const auto colon = text.find(':');
    const bool has_port = colon != std::string_view::npos && colon == text.rfind(':');
    if (has_port && !has_port_digits(text.substr(colon + 1))) return std::nullopt;
    address = address_of(has_port ? text.substr(0, colon) : text);
  }
  if (!address) return std::nullopt;
  return peer_address(*address);
}

}  // namespace

Result<TrustedProxies::Network> TrustedProxies::parse_network(const std::string& text) {
  const auto slash = text.find('/');
  const auto address = address_of(std::string_view(text).substr(0, slash));
  Network network;
  const unsigned before = address && address->is_v4() ? kMappedBits : 0;
  unsigned bits = 128 - before;
  const bool is_network =
      address && (slash == std::string::npos || parse_number(text.substr(slash + 1), bits, bits));
  if (!is_network) {
    return fail(Errc::BadRequest,
                fmt::format("'{}' is not a proxy; write an address, a network such as 10.0.0.0/8, "
                            "or uid:33",
                            text));
  }
  network = {.bytes = bytes_of(*address), .bits = before + bits};
  Bytes beyond = network.bytes;  // the bits after the prefix
  for (unsigned bit = 0; bit < network.bits; ++bit)
    beyond[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> bit % 8));
  if (std::ranges::all_of(beyond, [](std::uint8_t byte) { return byte == 0; })) return network;
  return fail(
      Errc::BadRequest,
      fmt::format("'{}' has bits beyond its prefix; write the first address of the network", text));
}

Result<TrustedProxies> TrustedProxies::parse(std::span<const std::string> texts) {
  constexpr std::string_view kUser = "uid:";
  TrustedProxies proxies;
  for (const std::string& text : texts) {
    unsigned uid = 0;
    if (text.starts_with(kUser) && parse_number(text.substr(kUser.size()), ~0u, uid)) {
      proxies.users_.push_back(fmt::format("uid:{}", uid));
    } else {
      proxies.networks_.push_back(TRY(parse_network(text)));
    }
  }
  return proxies;
}

bool TrustedProxies::trusts(const PeerAddress& peer) const {
  if (std::ranges::find(users_, peer) != users_.end()) return true;
  if (networks_.empty()) return false;
  const auto address = address_of(peer);
  if (!address) return false;
  const Bytes bytes = bytes_of(*address);
  return std::ranges::any_of(networks_, [&](const Network& network) {
    return has_prefix(bytes, network.bytes, network.bits);
  });
}

PeerAddress TrustedProxies::client_of(const PeerAddress& peer, const Head& head) const {
  if (!trusts(peer)) return peer;
  PeerAddress client = peer;
  for (const auto& [name, value] : head.fields | std::views::reverse) {
    if (!equals_ignoring_case(name, "X-Forwarded-For")) continue;
    std::string_view rest = value;
    for (bool has_more = true; has_more;) {
      const auto comma = rest.rfind(',');
      has_more = comma != std::string_view::npos;
      const auto entry = entry_of(has_more ? rest.substr(comma + 1) : rest);
      if (!entry) return peer;
      client = *entry;
      if (!trusts(client)) return client;
      rest = rest.substr(0, has_more ? comma : 0);
    }
  }
  return client;
}

}  // namespace leasehold::http
