#include "ipc/control/messages/token_line.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>

#include "ipc/control/messages/json_text.hpp"

namespace leasehold::control {
namespace {

constexpr std::string_view kBeforePosition =
    R"({"jsonrpc":"2.0","method":"token.emitted","params":{"position":)";
constexpr std::string_view kBeforeRequest = R"(,"request":")";
constexpr std::string_view kBeforeText = R"(","text":)";
constexpr std::string_view kBeforeToken = R"(,"token":)";
constexpr std::string_view kEnd = "}}";

bool take(std::string_view& rest, std::string_view expected) {
  if (!rest.starts_with(expected)) return false;
  rest.remove_prefix(expected.size());
  return true;
}

/// Digits as JSON has them: no sign, and no zero before other digits.
template <std::integral Number>
bool take(std::string_view& rest, Number& number) {
  if (rest.empty() || rest.front() == '-') return false;
  const char* const end = rest.data() + rest.size();
  const auto [after, error] = std::from_chars(rest.data(), end, number);
  const auto digits = static_cast<std::size_t>(after - rest.data());
  if (error != std::errc{} || (rest.front() == '0' && digits > 1)) return false;
  rest.remove_prefix(digits);
  return true;
}

/// Text in quotes without an escape.
bool take_text(std::string_view& rest, std::string& text) {
  if (!take(rest, "\"")) return false;
  const auto end = std::ranges::find_if_not(rest, is_plain);
  text.assign(rest.begin(), end);
  rest.remove_prefix(text.size());
  return take(rest, "\"");
}

}  // namespace

std::optional<std::string> token_line(const wire::TokenEmitted& token) {
  if (token.logprob || !token.top_logprobs.empty()) return std::nullopt;
  std::string line(kBeforePosition);
  line.append(std::to_string(token.position)).append(kBeforeRequest);
  line.append(token.request.value).append(kBeforeText).append(json_string(token.text));
  line.append(kBeforeToken).append(std::to_string(token.token)).append(kEnd);
  return line += '\n';
}

std::optional<wire::TokenEmitted> read_token_line(std::string_view line, const RequestId& request) {
  wire::TokenEmitted token;
  const bool is_read = take(line, kBeforePosition) && take(line, token.position) &&
                       take(line, kBeforeRequest) && take(line, request.value) &&
                       take(line, kBeforeText) && take_text(line, token.text) &&
                       take(line, kBeforeToken) && take(line, token.token) && line == kEnd;
  if (!is_read) return std::nullopt;
  token.request = request;
  return token;
}

}  // namespace leasehold::control
