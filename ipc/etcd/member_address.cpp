#include "ipc/etcd/member_address.hpp"

#include <fmt/format.h>
#include <sys/un.h>

namespace leasehold::etcd {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kHttps = "https://";
constexpr std::size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;

}  // namespace

Result<MemberAddress> MemberAddress::parse(std::string_view text, Reach reach) {
  MemberAddress address{.text = std::string(text), .unix_path = {}, .url = {}};
  if (text.starts_with(kUnix)) {
    address.unix_path = text.substr(kUnix.size());
    if (address.unix_path.starts_with('/') && address.unix_path.size() <= kMaxPathBytes)
      return address;
    return fail(Errc::BadRequest,
                fmt::format("'{}' is not an address of etcd: the path of a socket is absolute and "
                            "has at most {} bytes; use unix:/PATH",
                            text, kMaxPathBytes));
  }
  address.is_encrypted = text.starts_with(kHttps);
  std::string url(text);
  if (address.is_encrypted) url.erase(4, 1);  // the reader of URLs knows http:// only
  address.url = TRY(http::Url::parse(url));
  if (!address.url.path.empty()) {
    return fail(Errc::BadRequest,
                fmt::format("'{}' has a path; use {}://{}", text,
                            address.is_encrypted ? "https" : "http", address.url.authority()));
  }
  if (!address.is_encrypted && reach == Reach::ThisMachine && !address.url.is_on_this_machine()) {
    return fail(Errc::BadRequest,
                fmt::format("'{}' is on another machine, and the connection is not encrypted; use "
                            "https://, or allow it with --etcd-any-address",
                            text));
  }
  return address;
}

}  // namespace leasehold::etcd
