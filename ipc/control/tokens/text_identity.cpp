#include "ipc/control/tokens/text_identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <ranges>
#include <vector>

namespace leasehold {
namespace {

constexpr std::size_t kContentDigits = 64;
constexpr std::size_t kShortDigits = 12;
constexpr std::size_t kMaxWordBytes = 16;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kTemplateDigits = 16;
constexpr std::size_t kParts = 4;  // without the chat template

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Accepts any word, because workers of a later version may have other types.
bool is_word(std::string_view text) {
  const bool is_plain =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
  return !text.empty() && text.size() <= kMaxWordBytes && is_plain;
}

bool is_control_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

bool is_template(std::string_view text) {
  return text.size() == kTemplateDigits && is_hex(text);
}

bool read_version(std::string_view text, std::uint32_t& version) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  return error == std::errc{} && end == text.data() + text.size() && version > 0;
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (const auto part : text | std::views::split('/'))
    parts.emplace_back(part.begin(), part.end());
  return parts;
}

}  // namespace

Result<TextIdentity> TextIdentity::parse(std::string_view text) {
  constexpr std::string_view kPrefix = ModelName::kContentPrefix;
  const std::vector<std::string_view> parts = parts_of(text);
  TextIdentity identity;
  const std::size_t optional = parts.size() - std::min(parts.size(), kParts);
  const bool is_valid = parts.size() >= kParts && optional <= 1 && parts[0].starts_with(kPrefix) &&
                        parts[0].size() == kPrefix.size() + kContentDigits &&
                        is_hex(parts[0].substr(kPrefix.size())) && is_word(parts[1]) &&
                        is_word(parts[2]) && read_version(parts[3], identity.version) &&
                        (optional == 0 || is_template(parts[kParts]));
  if (!is_valid) {
    return fail(Errc::BadRequest,
                "a text identity is sha256:CONTENT/ARITHMETIC/KV-TYPE/VERSION with 64 lower-case "
                "hex digits, as `brokerctl workers -o json` shows it");
  }
  identity.content = parts[0].substr(kPrefix.size());
  identity.arithmetic = parts[1];
  identity.kv_type = parts[2];
  if (optional == 1) identity.chat_template = parts[kParts];
  return identity;
}

std::string to_string(const TextIdentity& identity) {
  return fmt::format("{}/{}/{}/{}{}{}", content_name(identity), identity.arithmetic,
                     identity.kv_type, identity.version, identity.chat_template.empty() ? "" : "/",
                     identity.chat_template);
}

std::string content_name(const TextIdentity& identity) {
  return fmt::format("{}{}", ModelName::kContentPrefix, identity.content);
}

std::string short_content_name(const TextIdentity& identity) {
  return fmt::format("{}{}", ModelName::kContentPrefix, identity.content.substr(0, kShortDigits));
}

std::string difference(const TextIdentity& wanted, const TextIdentity& other) {
  std::string parts;
  const auto compare = [&parts](std::string_view what, const auto& mine, const auto& theirs) {
    if (mine == theirs) return;
    fmt::format_to(std::back_inserter(parts), "{}the {} is {} and not {}",
                   parts.empty() ? "" : ", ", what, theirs, mine);
  };
  if (wanted.content != other.content)
    compare("content of the model", short_content_name(wanted), short_content_name(other));
  compare("arithmetic", wanted.arithmetic, other.arithmetic);
  compare("KV cache", wanted.kv_type, other.kv_type);
  compare("version of the computation", wanted.version, other.version);
  const auto shown = [](const TextIdentity& each) {
    return each.chat_template.empty() ? std::string("the model's own") : each.chat_template;
  };
  if (wanted.chat_template != other.chat_template)
    compare("chat template", shown(wanted), shown(other));
  return parts;
}

Result<ModelName> ModelName::parse(std::string text) {
  if (text.empty() || text.size() > kMaxNameBytes || std::ranges::any_of(text, is_control_byte)) {
    return fail(Errc::BadRequest,
                fmt::format("the name of a model has 1 to {} bytes on one line, got {} bytes",
                            kMaxNameBytes, text.size()));
  }
  const std::string_view all = text;
  if (!all.starts_with(kContentPrefix)) return ModelName{std::move(text)};
  const std::string_view digits = all.substr(kContentPrefix.size());
  const bool is_valid =
      digits.size() >= kMinDigits && digits.size() <= kContentDigits && is_hex(digits);
  if (is_valid) return ModelName{std::move(text)};
  return fail(Errc::BadRequest,
              fmt::format("the content of a model is {} and {} to {} lower-case hex digits, as "
                          "sha256sum prints them for its file",
                          kContentPrefix, kMinDigits, kContentDigits));
}

bool ModelName::matches(std::string_view announced, const TextIdentity* identity) const {
  if (!text.starts_with(kContentPrefix)) return text == announced;
  return identity != nullptr && content_name(*identity).starts_with(text);
}

}  // namespace leasehold
