#include "tools/gateway/host_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace leasehold::gateway {
namespace {

constexpr std::array kConnectionFields{std::string_view("Connection"),
                                       std::string_view("Content-Length"),
                                       std::string_view("Host"),
                                       std::string_view("Keep-Alive"),
                                       std::string_view("Proxy-Authenticate"),
                                       std::string_view("Proxy-Authorization"),
                                       std::string_view("Proxy-Connection"),
                                       std::string_view("TE"),
                                       std::string_view("Trailer"),
                                       std::string_view("Transfer-Encoding"),
                                       std::string_view("Upgrade")};

constexpr std::array kReplacedFields{std::string_view("Expect"), std::string_view("Forwarded"),
                                     std::string_view("X-Forwarded-For"),
                                     std::string_view("X-Request-Id")};

constexpr std::string_view kOwnPrefix = "Leasehold-";

bool is_one_of(const auto& names, std::string_view field) {
  return std::ranges::any_of(
      names, [&](std::string_view name) { return http::equals_ignoring_case(name, field); });
}

bool is_passed_on(std::string_view field) {
  return !is_about_connection(field) && !is_one_of(kReplacedFields, field) &&
         !http::equals_ignoring_case(field.substr(0, kOwnPrefix.size()), kOwnPrefix);
}

}  // namespace

bool is_about_connection(std::string_view field) {
  return is_one_of(kConnectionFields, field);
}

std::string HostRequest::text() const {
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", client->method, client->target, host);
  for (const auto& [name, value] : client->fields)
    if (is_passed_on(name)) text += fmt::format("{}: {}\r\n", name, value);
  text += fmt::format("X-Request-Id: {}\r\n", x_request_id);
  if (!client_address.starts_with("uid:"))
    text += fmt::format("X-Forwarded-For: {}\r\n", client_address);
  text += fields;
  text += framing;
  if (framing.empty() && (!body.empty() || client->method == "POST"))
    text += fmt::format("Content-Length: {}\r\n", body.size());
  return text.append("\r\n").append(body);
}

}  // namespace leasehold::gateway
