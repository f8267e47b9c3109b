#include "worker/http/gateway_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ranges>

#include "common/content_digest.hpp"
#include "common/utf8.hpp"
#include "worker/http/api/api_request.hpp"
#include "worker/http/host_name.hpp"

namespace leasehold::http {
namespace {

constexpr const char* kStream = "Leasehold-Stream";
constexpr const char* kCreated = "Leasehold-Created";
constexpr const char* kAdapters = "Leasehold-Adapters";
constexpr const char* kRequest = "Leasehold-Request";
constexpr const char* kMovedFrom = "Leasehold-Moved-From";
constexpr const char* kGatewayHeaders[] = {kStream, kCreated, kAdapters, kRequest, kMovedFrom};

/// Both bounds are inclusive.
struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
constexpr Range kBeat_ms{50, 10'000};
constexpr Range kUnixTime_s{0, 253'402'300'799};  // end of the year 9999

std::unexpected<ApiError> refuse(const char* name, std::string detail) {
  return std::unexpected(ApiError{{Errc::BadRequest, std::move(detail)}, name});
}

std::unexpected<ApiError> refuse_value(const char* name, std::string_view value,
                                       std::string_view expected) {
  return refuse(name, fmt::format("{} is '{}'; send {}", name, printable_excerpt(value), expected));
}

using Number = std::expected<std::optional<std::int64_t>, ApiError>;

Number number_of(const Head& head, const char* name, Range range) {
  const auto text = head.only(name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  const bool is_number = error == std::errc{} && end == text->data() + text->size();
  if (is_number && value >= range.low && value <= range.high) return value;
  return refuse_value(name, *text, fmt::format("a number from {} to {}", range.low, range.high));
}

std::expected<std::vector<std::string>, ApiError> adapters_in(std::string_view list) {
  std::vector<std::string> adapters;
  for (const auto part : list | std::views::split(',')) {
    const std::string_view digest(part.begin(), part.end());
    const bool is_known = digest.empty() || ContentDigest::from_hex(digest);
    if (!is_known || adapters.size() == ApiRequest::kMaxChoices)
      return refuse_value(kAdapters, list, "a SHA-256 or nothing for each choice");
    adapters.emplace_back(digest);
  }
  return adapters;
}

std::expected<void, ApiError> check_senders(const Head& head, bool is_trusted) {
  for (const char* name : kGatewayHeaders) {
    const std::size_t count = head.count(name);
    if (count > 0 && !is_trusted) {
      return refuse(name, fmt::format("{} is accepted from a gateway only, which "
                                      "--http-trusted-proxy names; leave it out",
                                      name));
    }
    if (count > 1) return refuse(name, fmt::format("{} is sent {} times; send one", name, count));
  }
  return {};
}

}  // namespace

std::expected<GatewayFields, ApiError> GatewayFields::of(const Head& head, bool is_trusted) {
  TRY(check_senders(head, is_trusted));
  GatewayFields fields;
  if (const auto beat = TRY(number_of(head, kStream, kBeat_ms)))
    fields.beat = std::chrono::milliseconds(*beat);
  fields.created_unix_s = TRY(number_of(head, kCreated, kUnixTime_s));
  if (const auto text = head.only(kAdapters)) fields.adapters = TRY(adapters_in(*text));
  if (const auto text = head.only(kRequest)) {
    auto id = RequestId::parse(*text);
    if (!id) return refuse_value(kRequest, *text, "1 to 64 characters of A-Z a-z 0-9 . _ : -");
    fields.request_id = *std::move(id);
  }
  if (const auto text = head.only(kMovedFrom)) {
    if (!is_host_name(*text))
      return refuse_value(kMovedFrom, *text, "the value of a host's Leasehold-Host");
    fields.moved_from = *text;
  }
  return fields;
}

std::optional<HostName> running_host(std::string_view moved_from) {
  auto host = HostName::parse(moved_from);
  const bool is_named = host.has_value() && moved_from != "unknown";
  return is_named ? std::optional(*std::move(host)) : std::nullopt;
}

std::optional<HostName> moved_from_in(const Head& head, bool is_trusted) {
  return running_host(is_trusted ? head.only(kMovedFrom).value_or("") : "");
}

}  // namespace leasehold::http
