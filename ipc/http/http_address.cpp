#include "ipc/http/http_address.hpp"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <charconv>

#include "common/cli/command_line.hpp"

namespace leasehold::http {

Result<Address> Address::parse(std::string_view text, bool any_address) {
  if (text.starts_with('/')) {
    Address address{.unix_path = std::string(text), .ip = {}};
    if (std::string wrong = check_socket_path(address.unix_path); !wrong.empty())
      return fail(Errc::BadRequest, std::move(wrong));
    return address;
  }
  const auto malformed = [&] {
    return fail(
        Errc::BadRequest,
        fmt::format("'{}' is not an address; write 127.0.0.1:8080, [::1]:8080 or the absolute "
                    "path of a Unix socket",
                    text));
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return malformed();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  Address address{.unix_path = {}, .ip = std::string(host)};
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  boost::system::error_code error;
  const auto ip = boost::asio::ip::make_address(address.ip, error);
  const bool is_number = read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
  if (error || !is_number || ip.is_v6() != bracketed) return malformed();
  if (ip.is_loopback() || any_address) return address;
  return fail(
      Errc::BadRequest,
      fmt::format("{} is not a loopback address, and the HTTP server does not encrypt; put a TLS "
                  "proxy in front of 127.0.0.1, or add --http-any-address",
                  address.ip));
}

}  // namespace leasehold::http
