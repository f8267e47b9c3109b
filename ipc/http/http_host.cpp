#include "ipc/http/http_host.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "ipc/http/http_framing.hpp"

namespace leasehold::http {
namespace {

/// "[::1]:8081" gives "::1". Empty for text that is neither a name nor an address.
std::string without_port(std::string_view host) {
  if (!host.starts_with('[')) return std::string(host.substr(0, host.find(':')));
  const auto end = host.find(']');
  if (end == std::string_view::npos) return {};
  const std::string_view rest = host.substr(end + 1);
  return rest.empty() || rest.starts_with(':') ? std::string(host.substr(1, end - 1)) : "";
}

}  // namespace

bool HostRule::allows(std::optional<std::string_view> host) const {
  if (any || !host) return true;
  const std::string name = without_port(*host);
  boost::system::error_code error;
  boost::asio::ip::make_address(name, error);
  return !error || equals_ignoring_case(name, "localhost") ||
         std::ranges::any_of(names,
                             [&](const auto& each) { return equals_ignoring_case(each, name); });
}

}  // namespace leasehold::http
