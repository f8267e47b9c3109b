#include "ipc/http/http_framing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ipc/http/http_errors.hpp"

namespace leasehold::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

Answer bad(const std::string& message) {
  return plain_error(400, "bad_framing", message);
}

std::optional<Answer> refuse_length(std::string_view text, std::size_t max_body_bytes) {
  std::uint64_t length = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), length);
  const bool too_large = read.ec == std::errc::result_out_of_range || length > max_body_bytes;
  if (text.empty() || read.ptr != text.data() + text.size() ||
      read.ec == std::errc::invalid_argument)
    return bad("Content-Length is not a number");
  if (!too_large) return std::nullopt;
  return plain_error(413, "body_too_large",
                     fmt::format("the body may have {} bytes; send a shorter one", max_body_bytes));
}

}  // namespace

bool equals_ignoring_case(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, {}, lower, lower);
}

std::optional<std::string_view> Head::only(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const auto& [key, value] : fields) {
    if (!equals_ignoring_case(key, name)) continue;
    if (found) return std::nullopt;
    found = value;
  }
  return found;
}

std::size_t Head::count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields, [&](const auto& field) { return equals_ignoring_case(field.first, name); }));
}

std::string_view Head::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

std::string_view Head::api_key() const {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view value = only("Authorization").value_or("");
  const bool is_key = value.size() > kScheme.size() &&
                      equals_ignoring_case(value.substr(0, kScheme.size()), kScheme);
  return is_key ? value.substr(kScheme.size()) : only("x-api-key").value_or("");
}

std::optional<Answer> refuse_head(const Head& head, std::size_t max_body_bytes) {
  if (head.fields.size() > kMaxHeadFields) {
    return plain_error(431, "head_too_large",
                       fmt::format("the head may have {} fields; send fewer", kMaxHeadFields));
  }
  const std::size_t lengths = head.count("Content-Length");
  const std::size_t encodings = head.count("Transfer-Encoding");
  if (lengths > 1 || encodings > 1) return bad("the length of the body is given twice");
  if (lengths + encodings > 1) return bad("send Content-Length or Transfer-Encoding, not both");
  if (encodings == 1 &&
      (head.version < 11 || !equals_ignoring_case(*head.only("Transfer-Encoding"), "chunked")))
    return bad("the only Transfer-Encoding is chunked, with HTTP/1.1");
  if (head.version >= 11 && head.count("Host") != 1) return bad("send one Host");
  for (const char* key : {"Authorization", "x-api-key"})
    if (head.count(key) > 1) return bad(fmt::format("send one {}", key));
  if (lengths == 0) return std::nullopt;
  return refuse_length(*head.only("Content-Length"), max_body_bytes);
}

}  // namespace leasehold::http
