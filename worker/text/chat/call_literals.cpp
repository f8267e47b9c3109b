#include "worker/text/chat/call_literals.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/ordered_json.hpp"
#include "common/utf8.hpp"
#include "worker/text/chat/text_marker.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kGemmaQuote = "<|\"|>";

bool is_name_letter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  const bool is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
  return is_letter || (byte >= '0' && byte <= '9') || byte == '_' || byte == '.' || byte == '-' ||
         byte >= 0x80;
}

/// Appends the character that follows a backslash in Python. Returns false for a wrong number.
bool append_escaped(std::string_view& rest, std::string& text) {
  const char c = rest.front();
  rest.remove_prefix(1);
  constexpr std::string_view kLetters = "ntrbf0", kMeanings("\n\t\r\b\f\0", 6);
  const auto known = kLetters.find(c);
  if (known != std::string_view::npos) {
    text += kMeanings[known];
    return true;
  }
  const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits == 0) {
    if (c != '\\' && c != '\'' && c != '"' && c != '/') text += '\\';  // as in Python
    text += c;
    return true;
  }
  std::uint32_t code_point = 0;
  const char* end = rest.data() + std::min(digits, rest.size());
  const auto [stop, error] = std::from_chars(rest.data(), end, code_point, 16);
  if (error != std::errc{} || stop != rest.data() + digits || !is_scalar_value(code_point))
    return false;
  append_utf8(text, code_point);
  rest.remove_prefix(digits);
  return true;
}

}  // namespace

bool LiteralReader::skip(std::string_view expected) {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(kWhitespace), rest_.size()));
  if (!rest_.starts_with(expected)) return false;
  rest_.remove_prefix(expected.size());
  return true;
}

bool LiteralReader::at_end() {
  skip("");
  return rest_.empty();
}

std::string_view LiteralReader::name() {
  skip("");
  const auto end = std::ranges::find_if_not(rest_, is_name_letter);
  const auto size = static_cast<std::size_t>(end - rest_.begin());
  const std::string_view found = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return found;
}

std::optional<std::string> LiteralReader::escaped(char quote) {
  std::string text;
  while (!rest_.empty()) {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == quote) return text;
    if (c != '\\') {
      text += c;
    } else if (rest_.empty() || !append_escaped(rest_, text)) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// Reads a string and returns its text. Returns nothing if no string follows.
std::optional<std::string> LiteralReader::quoted() {
  if (style_ == Style::Gemma && skip(kGemmaQuote)) {
    const auto end = rest_.find(kGemmaQuote);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + kGemmaQuote.size());
    return text;
  }
  for (const char quote : {'"', '\''})
    if (skip(std::string_view(&quote, 1))) return escaped(quote);
  return std::nullopt;
}

std::optional<std::string> LiteralReader::key() {
  if (auto text = quoted()) return text;
  const std::string_view bare = name();
  return bare.empty() ? std::nullopt : std::optional(std::string(bare));
}

/// A number, or one of the words for true, false and null.
std::optional<LiteralReader::Json> LiteralReader::word() {
  const auto is_part = [](char c) { return is_name_letter(c) || c == '+'; };
  skip("");
  const auto size =
      static_cast<std::size_t>(std::ranges::find_if_not(rest_, is_part) - rest_.begin());
  const std::string_view found = rest_.substr(0, size);
  rest_.remove_prefix(size);
  constexpr std::pair<std::string_view, std::string_view> kPython[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}};
  const auto* python =
      std::ranges::find(kPython, found, &std::pair<std::string_view, std::string_view>::first);
  Json json = Json::parse(python != std::end(kPython) ? python->second : found, nullptr, false);
  return json.is_discarded() ? std::nullopt : std::optional(std::move(json));
}

std::optional<LiteralReader::Json> LiteralReader::value(int depth) {
  if (depth > kMaxDepth) return std::nullopt;
  if (skip("{")) return members(":", "}", depth + 1);
  if (skip("[")) return elements(depth + 1);
  if (rest_.starts_with('"') || rest_.starts_with('\'') || rest_.starts_with(kGemmaQuote))
    return quoted();
  return word();
}

std::optional<LiteralReader::Json> LiteralReader::elements(int depth) {
  Json list = Json::array();
  while (!skip("]")) {
    auto one = value(depth);
    if (!one) return std::nullopt;
    list.push_back(*std::move(one));
    if (!skip(",") && !rest_.starts_with(']')) return std::nullopt;
  }
  return list;
}

std::optional<LiteralReader::Json> LiteralReader::members(std::string_view separator,
                                                          std::string_view close, int depth) {
  std::vector<std::pair<std::string, Json>> object;
  while (!skip(close)) {
    auto name = key();
    if (!name || !skip(separator)) return std::nullopt;
    auto one = value(depth);
    if (!one) return std::nullopt;
    object.emplace_back(*std::move(name), *std::move(one));
    if (!skip(",") && !rest_.starts_with(close)) return std::nullopt;
  }
  return ordered_object(std::move(object));
}

}  // namespace leasehold
