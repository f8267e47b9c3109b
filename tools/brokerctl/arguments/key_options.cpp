#include "tools/brokerctl/arguments/key_options.hpp"

#include <fmt/format.h>

#include <charconv>

#include "common/cli/parse_check.hpp"
#include "common/utf8.hpp"
#include "tools/brokerctl/audit.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::brokerctl {
namespace {

/// A limit of a key, which an option sets or removes.
struct LimitOption {
  const char* option;
  const char* field;  ///< The name in wire::KeyUpdate::removes.
  const char* help;
  std::uint64_t most;
  std::uint64_t most_in_cell;  ///< 0: keys of a cell do not have it.
  const char* help_in_cell;
  void (*set)(wire::KeyLimits& limits, std::uint64_t value);
};

constexpr LimitOption kLimits[] = {
    {"--max-concurrent", "max_concurrent",
     "Requests of the key that run or wait, over all workers, at least 1 on each", 64,
     cell::CellKey::kMostRequests,
     "Requests of the key that run or wait, over all hosts, at least 1 on each",
     [](wire::KeyLimits& limits, std::uint64_t value) {
       limits.max_concurrent = static_cast<std::uint32_t>(value);
     }},
    {"--tokens-per-minute", "tokens_per_minute",
     "Computed prompt tokens and emitted tokens per minute", wire::kMostPerMinute,
     wire::kMostPerMinute, "Computed prompt tokens and emitted tokens per minute, over all hosts",
     [](wire::KeyLimits& limits, std::uint64_t value) {
       limits.rates.tokens_per_minute = static_cast<std::uint32_t>(value);
     }},
    {"--requests-per-minute", "requests_per_minute",
     "Requests that start per minute; each choice of an answer counts", wire::kMostPerMinute,
     wire::kMostPerMinute,
     "Requests that start per minute, over all hosts; each choice of an answer counts",
     [](wire::KeyLimits& limits, std::uint64_t value) {
       limits.rates.requests_per_minute = static_cast<std::uint32_t>(value);
     }},
    {"--tokens-per-day", "tokens_per_day",
     "Computed prompt tokens and emitted tokens per day of UTC", wire::kMostPerDay, 0, "",
     [](wire::KeyLimits& limits, std::uint64_t value) { limits.rates.tokens_per_day = value; }}};
static_assert(std::size(kLimits) == std::tuple_size_v<decltype(KeyOptions::limits)>);

constexpr std::string_view kNoLimit = "none";

/// Nothing for "none". Errors: BadRequest.
Result<std::optional<std::uint64_t>> parse_limit(const std::string& text, std::uint64_t most) {
  if (text == kNoLimit) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec == std::errc() && read.ptr == end && value >= 1 && value <= most) return value;
  return fail(Errc::BadRequest, fmt::format("'{}' is not a number from 1 to {}, or {} for no limit",
                                            printable_excerpt(text), most, kNoLimit));
}

/// Converts "30d" to milliseconds. Errors: BadRequest.
Result<std::int64_t> parse_duration_ms(const std::string& text) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, count);
  for (const auto& [unit, unit_ms] : kUnits) {
    const bool fits = read.ec == std::errc() && std::string_view(read.ptr, end) == unit;
    if (fits && count > 0 && count <= wire::kLastExpiry_ms / unit_ms) return count * unit_ms;
  }
  return fail(Errc::BadRequest, fmt::format("'{}' is not a time such as 45m, 12h or 30d", text));
}

}  // namespace

bool KeyValues::is_empty() const {
  return !name && !expires_in_ms && !expires_unix_ms && !never_expires &&
         limits == wire::KeyLimits() && removes.empty();
}

void add_key_options(CLI::App& verb, KeyOptions& options, KeyKeeper keeper) {
  add_name(verb, "--name", options.name, "Name shown in lists, such as ci");
  auto* in = verb.add_option("--expires-in", options.expires_in,
                             "The key expires after this time, such as 45m, 12h or 30d")
                 ->check(checked(parse_duration_ms));
  auto* at = verb.add_option("--expires-at", options.expires_at,
                             "The key expires at this time, in UTC, such as 2027-01-01 or "
                             "2027-01-01T18:30:00Z")
                 ->check(checked(parse_utc_ms));
  in->excludes(at);
  const bool is_cell = keeper == KeyKeeper::Cell;
  for (std::size_t i = 0; i < std::size(kLimits); ++i) {
    const std::uint64_t most = is_cell ? kLimits[i].most_in_cell : kLimits[i].most;
    if (most == 0) continue;
    verb.add_option(kLimits[i].option, options.limits[i],
                    fmt::format("{}; {} for no limit",
                                is_cell ? kLimits[i].help_in_cell : kLimits[i].help, kNoLimit))
        ->check(checked([most](const std::string& text) { return parse_limit(text, most); }));
  }
}

void add_no_expiry(CLI::App& verb, KeyOptions& options) {
  verb.add_flag("--no-expiry", options.never_expires, "The key does not expire any more")
      ->excludes(verb.get_option("--expires-in"))
      ->excludes(verb.get_option("--expires-at"));
}

Result<KeyValues> parse_key_options(const KeyOptions& options) {
  KeyValues values;
  if (!options.name.empty()) values.name = options.name;
  values.never_expires = options.never_expires;
  for (std::size_t i = 0; i < std::size(kLimits); ++i) {
    if (options.limits[i].empty()) continue;
    const std::uint64_t most = std::max(kLimits[i].most, kLimits[i].most_in_cell);
    if (const auto limit = TRY(parse_limit(options.limits[i], most))) {
      kLimits[i].set(values.limits, *limit);
    } else {
      values.removes.emplace_back(kLimits[i].field);
    }
  }
  if (!options.expires_at.empty()) values.expires_unix_ms = TRY(parse_utc_ms(options.expires_at));
  if (!options.expires_in.empty())
    values.expires_in_ms = TRY(parse_duration_ms(options.expires_in));
  return values;
}

Result<KeyValues> parse_key_changes(const KeyOptions& options) {
  KeyValues values = TRY(parse_key_options(options));
  if (!values.is_empty()) return values;
  return fail(Errc::BadRequest,
              "nothing to change; give --name, an expiry or a limit, as --help lists them");
}

}  // namespace leasehold::brokerctl
