#include "worker/http/cross_origin.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/utf8.hpp"

namespace leasehold::http {
namespace {

constexpr std::size_t kMaxAskedBytes = 1024;

/// True for a scheme, a host and an optional port, such as "https://chat.example" or
/// "http://localhost:3000".
bool is_origin(std::string_view text) {
  const auto scheme = text.find("://");
  if (scheme == std::string_view::npos || scheme == 0) return false;
  const std::string_view host = text.substr(scheme + 3);
  constexpr std::string_view kOther = "/?#@ ,\"\\";
  return !host.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; }) &&
         host.find_first_of(kOther) == std::string_view::npos;
}

/// True for header names, separated by commas.
bool are_field_names(std::string_view text) {
  return text.size() <= kMaxAskedBytes && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("-_, ").contains(c);
         });
}

}  // namespace

Result<AllowedOrigins> AllowedOrigins::parse(const std::vector<std::string>& origins) {
  AllowedOrigins allowed;
  for (const std::string& origin : origins) {
    if (origin == "*") {
      allowed.any_ = true;
    } else if (is_origin(origin)) {
      allowed.origins_.push_back(origin);
    } else {
      return fail(Errc::BadRequest,
                  fmt::format("'{}' is not an origin; write https://chat.example, "
                              "http://localhost:3000 or *",
                              printable_excerpt(origin)));
    }
  }
  return allowed;
}

bool AllowedOrigins::allows(const Head& head) const {
  const auto origin = head.only("Origin");
  return origin && (any_ || std::ranges::any_of(origins_, [&](const auto& each) {
                      return equals_ignoring_case(each, *origin);
                    }));
}

std::string AllowedOrigins::fields_for(const Head& head) const {
  std::string fields = any_ || origins_.empty() ? "" : "Vary: Origin\r\n";
  if (!allows(head)) return fields;
  return fields + fmt::format(
                      "Access-Control-Allow-Origin: {}\r\n"
                      "Access-Control-Expose-Headers: Retry-After, X-Request-Id, request-id, "
                      "traceresponse\r\n",
                      any_ ? "*" : *head.only("Origin"));
}

/// Repeats the header names that were asked for, because SDKs send headers of their own, and "*"
/// would not cover Authorization.
std::string preflight_fields(const Head& head) {
  const auto requested = head.only("Access-Control-Request-Headers");
  const std::string_view names = requested && are_field_names(*requested)
                                     ? *requested
                                     : "Authorization, Content-Type, Last-Event-ID";
  return fmt::format(
      "Access-Control-Allow-Methods: GET, HEAD, POST, DELETE\r\nAccess-Control-Allow-Headers: "
      "{}\r\n"
      "Access-Control-Max-Age: 600\r\n",
      names);
}

}  // namespace leasehold::http
