#include "common/cli/size_option.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace leasehold {
namespace {

constexpr std::string_view kUnits = "kmgtpe";

char lower(char letter) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

/// The number of bits by which a unit shifts; nothing for text that is not a unit.
std::optional<unsigned> shift_of(std::string_view unit) {
  if (unit.empty() || (unit.size() == 1 && lower(unit[0]) == 'b')) return 0;
  const std::size_t at = kUnits.find(lower(unit[0]));
  if (at == std::string_view::npos) return std::nullopt;
  std::string rest;
  for (const char letter : unit.substr(1)) rest += lower(letter);
  if (!rest.empty() && rest != "b" && rest != "i" && rest != "ib") return std::nullopt;
  return 10 * static_cast<unsigned>(at + 1);
}

std::string check_size(std::string& text, const SizeRange& range) {
  const Result<std::uint64_t> size = parse_size(text);
  if (!size) return size.error().detail;
  const bool fits = (range.low <= *size && *size <= range.high) || (range.or_zero && *size == 0);
  if (!fits) {
    return fmt::format("'{}' is {} a size from {} to {}", text,
                       range.or_zero ? "neither 0 nor" : "not", size_text(range.low),
                       size_text(range.high));
  }
  text = std::to_string(*size);
  return {};
}

}  // namespace

Result<std::uint64_t> parse_size(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  std::string_view unit(stopped, end);
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  const std::optional<unsigned> shift = shift_of(unit);
  const bool fits = error == std::errc{} && shift && (number << *shift) >> *shift == number;
  if (fits) return number << *shift;
  if (shift && error != std::errc::invalid_argument) {
    return fail(Errc::BadRequest,
                fmt::format("'{}' is too large; a size has at most {} bytes", text, UINT64_MAX));
  }
  return fail(
      Errc::BadRequest,
      fmt::format("'{}' is not a size; write a whole number of bytes, or one with KiB, MiB, "
                  "GiB or TiB, such as 256MiB",
                  text));
}

std::string size_text(std::uint64_t size_bytes) {
  std::size_t unit = 0;
  while (unit < kUnits.size() && size_bytes > 0 && size_bytes % 1024 == 0) {
    size_bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{}", size_bytes);
  return fmt::format("{}{}iB", size_bytes, static_cast<char>(std::toupper(kUnits[unit - 1])));
}

CLI::Option* add_size_option(CLI::App& app, const std::string& name, std::uint64_t& value,
                             const std::string& help, SizeRange range) {
  return app.add_option(name, value, help)
      ->transform(
          CLI::Validator([range](std::string& text) { return check_size(text, range); }, "SIZE"));
}

}  // namespace leasehold
