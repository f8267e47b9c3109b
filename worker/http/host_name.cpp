#include "worker/http/host_name.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>

#include "common/utf8.hpp"

namespace leasehold::http {
namespace {

constexpr std::size_t kMaxBytes = 253;  // of a DNS name
constexpr std::string_view kCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";

bool is_allowed(char c) {
  return kCharacters.contains(c);
}

}  // namespace

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxBytes && std::ranges::all_of(text, is_allowed);
}

std::string check_host_name(const std::string& text) {
  if (is_host_name(text)) return {};
  return fmt::format("'{}' is not a host name; use 1 to {} letters, digits, '.', '-', '_' and ':'",
                     printable_excerpt(text), kMaxBytes);
}

std::string machine_host_name() {
  utsname machine{};
  std::string name = ::uname(&machine) == 0 ? machine.nodename : "";
  std::ranges::replace_if(name, [](char c) { return !is_allowed(c); }, '-');
  return name.empty() ? "localhost" : name;
}

}  // namespace leasehold::http
