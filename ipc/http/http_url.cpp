#include "ipc/http/http_url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <optional>

#include "common/utf8.hpp"
#include "ipc/http/http_framing.hpp"

namespace leasehold::http {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr std::size_t kMaxUrlBytes = 1024;
constexpr std::size_t kMaxHostBytes = 253;  // RFC 1035

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool consists_of(std::string_view text, std::string_view more) {
  return std::ranges::all_of(
      text, [&](char c) { return is_alphanumeric(c) || more.find(c) != std::string_view::npos; });
}

std::unexpected<Error> bad_url(std::string_view text, std::string_view why) {
  return fail(Errc::BadRequest,
              fmt::format("'{}' is not the URL of a server: {}; use http://host:port or "
                          "http://host:port/path",
                          text.substr(0, kMaxUrlBytes), why));
}

bool is_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port <= 65'535;
}

/// The host of "host" or "[address]".
std::optional<std::string_view> host_of(std::string_view text) {
  const bool in_brackets = text.size() > 2 && text.front() == '[' && text.back() == ']';
  const std::string_view host = in_brackets ? text.substr(1, text.size() - 2) : text;
  const bool valid = !host.empty() && host.size() <= kMaxHostBytes &&
                     consists_of(host, in_brackets ? ":." : "-._");
  return valid ? std::optional(host) : std::nullopt;
}

std::optional<char> byte_of_hex(std::string_view digits) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value, 16);
  if (digits.size() != 2 || error != std::errc{} || end != digits.end()) return std::nullopt;
  return static_cast<char>(value);
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  if (text.size() > kMaxUrlBytes) return bad_url(text, "it has more than 1024 bytes");
  if (!text.starts_with(kScheme))
    return bad_url(text, "it does not start with http:// (for TLS run a proxy on this machine)");
  const std::string_view rest = text.substr(kScheme.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  std::string_view path = rest.substr(slash);
  const std::size_t colon = authority.rfind(':');
  const std::string_view port =
      colon == std::string_view::npos ? std::string_view() : authority.substr(colon + 1);
  if (!is_port(port)) return bad_url(text, "it has no port between 1 and 65535");
  const auto host = host_of(authority.substr(0, colon));
  if (!host) return bad_url(text, "its host is neither a name nor an address");
  if (!consists_of(path, "/-._~%+:@!$&'()*,;="))
    return bad_url(text, "its path has a character that a path cannot have");
  while (path.ends_with('/')) path.remove_suffix(1);
  return Url{.host = std::string(*host), .port = std::string(port), .path = std::string(path)};
}

bool Url::is_on_this_machine() const {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return error ? equals_ignoring_case(host, "localhost") : address.is_loopback();
}

std::string Url::authority() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string Url::text() const {
  return std::string(kScheme) + authority() + path;
}

std::string percent_decoded(std::string_view rest) {
  std::string decoded;
  while (!rest.empty()) {
    const auto byte = rest.front() == '%' ? byte_of_hex(rest.substr(1, 2)) : std::nullopt;
    decoded += byte.value_or(rest.front());
    rest.remove_prefix(byte ? 3 : 1);
  }
  return decoded;
}

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char byte : text) {
    const bool is_plain = consists_of({&byte, 1}, "-._~");
    encoded +=
        is_plain ? std::string(1, byte) : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return encoded;
}

std::string query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view field = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    const std::size_t equals = field.find('=');
    if (field.substr(0, equals) != name) continue;
    return equals == std::string_view::npos ? "" : percent_decoded(field.substr(equals + 1));
  }
  return {};
}

Result<PageQuery> page_query(std::string_view query, std::size_t otherwise, std::size_t most) {
  PageQuery page{.after = query_value(query, "after"), .limit = otherwise};
  const std::string limit = query_value(query, "limit");
  if (limit.empty()) return page;
  const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), page.limit);
  const bool is_number = error == std::errc{} && end == limit.data() + limit.size();
  if (is_number && page.limit >= 1 && page.limit <= most) return page;
  return fail(Errc::BadRequest,
              fmt::format("limit is '{}'; send 1 to {}", printable_excerpt(limit), most));
}

}  // namespace leasehold::http
