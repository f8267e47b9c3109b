#include "ipc/control/messages/json_fields.hpp"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <ranges>

#include "common/utf8.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxShown = 60;
constexpr std::size_t kMaxSocketPath = sizeof(sockaddr_un{}.sun_path) - 1;
constexpr std::size_t kHexKeyDigits = 64;
constexpr std::size_t kMaxSentence = 200;
constexpr std::size_t kMaxLabel = 256;
constexpr std::size_t kMaxRelativePath = 255;

/// The value as text, always short enough for a log entry.
std::string summary(const nlohmann::json& json) {
  if (json.is_structured()) return json.is_array() ? "an array" : "an object";
  if (json.is_string() && json.get_ref<const std::string&>().size() > kMaxShown)
    return fmt::format("{} bytes of text", json.get_ref<const std::string&>().size());
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

bool is_name(std::string_view text) {
  return TenantId::parse(text).has_value();
}

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_revoke_reason(std::string_view text) {
  for (int i = 0; i < kRevokeReasonCount; ++i) {
    const auto reason = static_cast<RevokeReason>(i);
    if (is_known(reason) && name(reason) == text) return true;
  }
  return false;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

bool is_one_line(std::string_view text, std::size_t max_bytes) {
  return text.size() <= max_bytes && std::ranges::none_of(text, is_control);
}

bool is_relative_path(std::string_view text) {
  const auto is_step = [](auto part) {
    const std::string_view name(part);
    return !name.empty() && name != "." && name != "..";
  };
  return !text.empty() && is_one_line(text, kMaxRelativePath) &&
         std::ranges::all_of(std::views::split(text, '/'), is_step);
}

struct TextRuleRow {
  bool (*matches)(std::string_view text);
  std::string description;
};

const TextRuleRow& row_of(TextRule rule) {
  using Text = std::string_view;
  static const std::string kName = "a name of 1 to 64 letters, digits, '.', '_', ':' and '-'";
  // The rows are in the order of TextRule.
  static const TextRuleRow kRows[]{
      {[](Text) { return true; }, "text"},
      {[](Text text) { return !text.empty(); }, "text that is not empty"},
      {is_name, kName},
      {[](Text text) { return text.empty() || is_name(text); }, kName + ", or empty text"},
      {[](Text text) { return text.empty() || LeaseId::parse(text).has_value(); },
       "a lease written SLOT.GENERATION, or empty text"},
      {[](Text text) {
         return !text.empty() && text.size() <= kMaxSocketPath && !text.contains('\0');
       },
       fmt::format("the path of a Unix socket, 1 to {} bytes", kMaxSocketPath)},
      {[](Text text) {
         return text.size() == kHexKeyDigits && std::ranges::all_of(text, is_hex_digit);
       },
       fmt::format("{} lower-case hex digits", kHexKeyDigits)},
      {[](Text text) { return text.empty() || is_revoke_reason(text); },
       "the name of a revoke reason, or empty text"},
      {[](Text text) { return !text.empty() && is_one_line(text, kMaxSentence); },
       fmt::format("1 to {} bytes on one line", kMaxSentence)},
      {[](Text text) { return is_one_line(text, kMaxSentence); },
       fmt::format("up to {} bytes on one line", kMaxSentence)},
      {is_relative_path,
       fmt::format("a relative path of 1 to {} bytes without '.' and '..'", kMaxRelativePath)},
      {[](Text text) { return is_one_line(text, kMaxLabel); },
       fmt::format("up to {} bytes on one line", kMaxLabel)}};
  return kRows[static_cast<unsigned>(rule)];
}

}  // namespace

std::string to_sentence(std::string_view text) {
  std::string sentence;
  while (!text.empty()) {
    const Utf8Step next = next_utf8(text);
    const bool is_shown = next.kind == Utf8Kind::Character && !is_control(text.front());
    const std::string_view shown = is_shown ? text.substr(0, next.size_bytes) : "?";
    if (sentence.size() + shown.size() > kMaxSentence) break;
    sentence += shown;
    text.remove_prefix(next.size_bytes);
  }
  return sentence;
}

const nlohmann::json kMissingField = nullptr;

Problem mismatch(const nlohmann::json& got, std::string expected) {
  return Mismatch{.where = "", .expected = std::move(expected), .got = summary(got)};
}

std::string check_text(TextRule rule, std::string_view text) {
  if (row_of(rule).matches(text)) return {};
  return fmt::format("expected {}, got {} bytes", row_of(rule).description, text.size());
}

std::string expected_integer(std::string low, std::string high) {
  return fmt::format("an integer from {} to {}", low, high);
}

Problem too_many_items(std::size_t items, MaxItems most) {
  return Mismatch{.where = "",
                  .expected = fmt::format("an array of at most {}", most.items),
                  .got = fmt::format("one of {}", items)};
}

Problem count_rows(const nlohmann::json& json, std::size_t& rows) {
  if (!json.is_object()) return mismatch(json, "an object of arrays");
  rows = json.empty() ? 0 : json.front().size();
  for (const auto& [key, column] : json.items()) {
    if (column.is_array() && column.size() == rows) continue;
    Problem problem = mismatch(column, fmt::format("an array of {}, as the first column", rows));
    problem->where = key;
    return problem;
  }
  return {};
}

std::string joined_path(std::string outer, const std::string& inner) {
  const bool is_name = !inner.empty() && inner.front() != '[';
  return outer + (is_name ? "." + inner : inner);
}

Problem from_field(const nlohmann::json& json, bool& out) {
  if (!json.is_boolean()) return mismatch(json, "true or false");
  out = json.get<bool>();
  return {};
}

Problem from_field(const nlohmann::json& json, float& out, Between<float> range) {
  // Compare before the cast: a double out of float's range would become an infinity.
  const double number = json.is_number() ? json.get<double>() : std::nan("");
  if (!(number >= range.low && number <= range.high))
    return mismatch(json, fmt::format("a number from {} to {}", range.low, range.high));
  out = static_cast<float>(number);
  return {};
}

Problem from_field(const nlohmann::json& json, std::string& out, TextRule rule) {
  if (!json.is_string() || !row_of(rule).matches(json.get_ref<const std::string&>()))
    return mismatch(json, row_of(rule).description);
  out = json.get<std::string>();
  return {};
}

Problem from_field(const nlohmann::json& json, std::string& out, Choice choice) {
  const auto is_sent = [&](std::string_view word) {
    return json.is_string() && json.get_ref<const std::string&>() == word;
  };
  const auto word = std::ranges::find_if(choice.words, is_sent);
  if (word != choice.words.end()) {
    out = *word;
    return {};
  }
  return mismatch(json, fmt::format("one of \"{}\"", fmt::join(choice.words, "\", \"")));
}

Problem from_field(const nlohmann::json& json, LeaseId& out) {
  const auto parsed = json.is_string() ? LeaseId::parse(json.get_ref<const std::string&>())
                                       : fail(Errc::BadRequest, "");
  if (!parsed) return mismatch(json, "a lease written as text, SLOT.GENERATION");
  out = *parsed;
  return {};
}

Problem from_field(const nlohmann::json& json, TextIdentity& out) {
  auto parsed = json.is_string() ? TextIdentity::parse(json.get_ref<const std::string&>())
                                 : fail(Errc::BadRequest, "");
  if (!parsed) return mismatch(json, "a text identity like sha256:CONTENT/int8/f16/1");
  out = *std::move(parsed);
  return {};
}

Problem from_field(const nlohmann::json& json, ModelName& out) {
  auto parsed =
      json.is_string() ? ModelName::parse(json.get<std::string>()) : fail(Errc::BadRequest, "");
  if (!parsed) return mismatch(json, "the name of a model, or sha256: and 8 to 64 hex digits");
  out = *std::move(parsed);
  return {};
}

Problem read_id(const nlohmann::json& json, std::uint64_t& out) {
  const std::string text = json.is_string() ? json.get<std::string>() : "";
  const char* end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  // The comparison with the formatted value ensures one spelling of each id ("03" is not 3).
  if (error != std::errc{} || std::to_string(value) != text)
    return mismatch(json, "a number written as text, from \"0\" to \"18446744073709551615\"");
  out = value;
  return {};
}

Problem problem_at(const char* key, const nlohmann::json* found, Problem problem) {
  if (!problem) return problem;
  if (found == nullptr) problem->got = "nothing";
  problem->where = joined_path(key, problem->where);
  return problem;
}

std::optional<Error> error_of(const Problem& problem) {
  if (!problem) return {};
  const auto& [where, expected, got] = *problem;
  const std::string place = where.empty() ? "" : fmt::format("field '{}': ", where);
  return Error{Errc::BadRequest, fmt::format("{}expected {}, got {}", place, expected, got)};
}

FieldReader::FieldReader(const nlohmann::json& json) : FieldReaderFrom({json}) {
  if (!json.is_object()) problem_ = mismatch(json, "an object");
}

const nlohmann::json* ObjectFields::find(const char* key) const {
  const auto it = json.find(key);
  return it == json.end() ? nullptr : &*it;
}

}  // namespace leasehold
