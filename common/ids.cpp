#include "common/ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace leasehold {
namespace {

constexpr std::size_t kMaxNameLength = 64;
constexpr std::uint64_t kMaxGeneration = (std::uint64_t{1} << 48) - 1;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == ':' || c == '-';
}

Result<void> check_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameLength) {
    return fail(Errc::BadRequest, fmt::format("a name has 1 to {} characters, this one has {}",
                                              kMaxNameLength, text.size()));
  }
  if (!std::ranges::all_of(text, is_name_character)) {
    return fail(
        Errc::BadRequest,
        fmt::format("'{}' is not a name: only letters, digits, '.', '_', ':' and '-' are allowed",
                    text));
  }
  return {};
}

template <class Number>
bool parse_whole(std::string_view text, Number& out) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out);
  return error == std::errc{} && rest == end && !text.empty();
}

}  // namespace

template <class Tag>
Result<StrongName<Tag>> StrongName<Tag>::parse(std::string_view text) {
  TRY(check_name(text));
  return StrongName{std::string(text)};
}

template struct StrongName<TenantTag>;
template struct StrongName<RequestTag>;
template struct StrongName<struct AdapterTag>;
template struct StrongName<struct ApiKeyTag>;
template struct StrongName<struct CellTag>;
template struct StrongName<struct CellHostTag>;

Result<LeaseId> LeaseId::parse(std::string_view text) {
  const auto dot = text.find('.');
  LeaseId id;
  const bool ok = dot != std::string_view::npos && parse_whole(text.substr(0, dot), id.slot) &&
                  parse_whole(text.substr(dot + 1), id.generation) && id.generation > 0 &&
                  id.generation <= kMaxGeneration;
  if (!ok) {
    return fail(Errc::BadRequest,
                fmt::format("'{}' is not a lease; write SLOT.GENERATION, for example 17.4",
                            text.substr(0, kMaxNameLength)));
  }
  return id;
}

std::string to_string(LeaseId id) {
  return fmt::format("{}.{}", id.slot, id.generation);
}

}  // namespace leasehold
