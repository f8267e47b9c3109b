#include "tools/gateway/host_address.hpp"

#include <fmt/format.h>

#include "common/cli/command_line.hpp"
#include "common/utf8.hpp"

namespace leasehold::gateway {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";

std::unexpected<Error> bad_host(std::string_view text, std::string_view why) {
  return fail(Errc::BadRequest,
              fmt::format("'{}' is not a host: {}; write http://HOST:PORT, https://HOST:PORT or "
                          "unix:/PATH",
                          printable_excerpt(text), why));
}

}  // namespace

Result<HostAddress> HostAddress::parse(std::string_view text) {
  HostAddress address{.text = std::string(text), .unix_path = {}};
  if (text.starts_with(kUnix)) {
    address.unix_path = text.substr(kUnix.size());
    if (!address.unix_path.starts_with('/')) return bad_host(text, "its path is not absolute");
    if (const std::string wrong = check_socket_path(address.unix_path); !wrong.empty())
      return bad_host(text, wrong);
    return address;
  }
  address.is_encrypted = text.starts_with(kHttps);
  if (!address.is_encrypted && !text.starts_with(kHttp))
    return bad_host(text, "it starts with none of the three");
  const std::string_view rest = text.substr(address.is_encrypted ? kHttps.size() : kHttp.size());
  auto url = http::Url::parse(std::string(kHttp).append(rest));
  if (!url) {
    const std::string& detail = url.error().detail;  // "'URL' is not …: why; use …"
    const auto begin = detail.find("server: ");
    return bad_host(
        text, begin == std::string::npos
                  ? std::string_view("its address is wrong")
                  : std::string_view(detail).substr(begin + 8, detail.rfind("; use") - begin - 8));
  }
  if (!url->path.empty()) return bad_host(text, "it has a path");
  address.url = *std::move(url);
  return address;
}

bool HostAddress::is_exposed() const {
  return !is_encrypted && unix_path.empty() && !url.is_on_this_machine();
}

}  // namespace leasehold::gateway
