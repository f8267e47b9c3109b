#include "worker/text/grammar/schema/schema_formats.hpp"

#include <fmt/format.h>

#include <map>
#include <string>

namespace leasehold {
namespace {

using Texts = std::map<std::string, std::string, std::less<>>;

// RFC 3339, with the days that months have.
constexpr std::string_view kDate =
    "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|"
    "02-(0[1-9]|1\\d|2[0-8]))|"
    "(\\d{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)";
constexpr std::string_view kTime =
    "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[-+]([01]\\d|2[0-3]):[0-5]\\d)";
constexpr std::string_view kLabel = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
constexpr std::string_view kAtom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
constexpr std::string_view kByte = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
constexpr std::string_view kUriCharacter = "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";

/// RFC 4291: eight groups, or fewer around one "::".
std::string ipv6(const std::string& ipv4) {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  const auto groups = [&](int n) { return fmt::format("({}:){{{}}}", group, n); };
  std::string all = fmt::format("{0}({1}:{1}|{2})|::({1}:){{0,5}}{2}", groups(6), group, ipv4);
  for (int before = 0; before <= 7; ++before) {
    const std::string front =
        before == 0 ? ":" : fmt::format("{0}(:{0}){{{1}}}:", group, before - 1);
    const int after = 7 - before;
    all += fmt::format("|{}:", front);
    if (after > 0) all += fmt::format("({}(:{}){{0,{}}})?", group, group, after - 1);
  }
  return all;
}

Texts make_patterns() {
  const std::string host = fmt::format("{0}(\\.{0}){{0,8}}", kLabel);
  const std::string ipv4 = fmt::format("{0}(\\.{0}){{3}}", kByte);
  const std::string path = fmt::format("(/{}*)*", kUriCharacter);
  const std::string tail = fmt::format("(\\?({0}|[/?])*)?(#({0}|[/?])*)?", kUriCharacter);
  const std::string authority =
      fmt::format("//([A-Za-z0-9._~%-]+@)?({}|{})?(:\\d{{1,5}})?", host, ipv4);
  const std::string uri = fmt::format("[A-Za-z][A-Za-z0-9+.-]*:({0}{1}|/?{2}+{1}){3}", authority,
                                      path, kUriCharacter, tail);
  const std::string reference =
      fmt::format("({}|({}{}|{}|[A-Za-z0-9._~-]+{}){})", uri, authority, path, path, path, tail);
  const std::string email = fmt::format("{0}(\\.{0})*@{1}", kAtom, host);
  const std::string token = "([^~/]|~[01])";
  const std::string pointer = fmt::format("(/{}*)*", token);
  const std::string days = "\\d{1,9}";
  const std::string duration_time = fmt::format("T({0}H({0}M)?({0}S)?|{0}M({0}S)?|{0}S)", days);
  const std::string duration =
      fmt::format("P(({0}D|{0}M({0}D)?|{0}Y({0}M)?({0}D)?)({1})?|{1}|{0}W)", days, duration_time);
  return {{"date", std::string(kDate)},
          {"time", std::string(kTime)},
          {"date-time", fmt::format("{}T{}", kDate, kTime)},
          {"duration", duration},
          {"uuid", "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"},
          {"email", email},
          {"idn-email", email},
          {"hostname", host},
          {"idn-hostname", host},
          {"ipv4", ipv4},
          {"ipv6", ipv6(ipv4)},
          {"uri", uri},
          {"iri", uri},
          {"uri-reference", reference},
          {"iri-reference", reference},
          {"json-pointer", pointer},
          {"relative-json-pointer", fmt::format("(0|[1-9]\\d{{0,8}})(#|{})", pointer)}};
}

}  // namespace

std::string_view pattern_of_format(std::string_view format) {
  static const Texts kPatterns = [] {
    Texts patterns = make_patterns();
    for (auto& [name, pattern] : patterns) pattern = fmt::format("^({})$", pattern);
    return patterns;
  }();
  const auto found = kPatterns.find(format);
  return found == kPatterns.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace leasehold
