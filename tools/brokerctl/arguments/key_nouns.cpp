// `brokerctl keys` and `brokerctl usage`.
#include <fmt/format.h>

#include <charconv>

#include "common/random.hpp"
#include "common/utf8.hpp"
#include "tools/brokerctl/arguments/commands.hpp"
#include "tools/brokerctl/audit.hpp"

namespace leasehold::brokerctl {
namespace {

/// A limit of a key, which an option sets or removes.
struct LimitOption {
  const char* option;
  const char* field;  ///< The name in wire::KeyUpdate::removes.
  const char* help;
  std::uint64_t most;
  void (*set)(wire::KeyLimits& limits, std::uint64_t value);
};

constexpr LimitOption kLimits[] = {
    {"--max-concurrent", "max_concurrent",
     "Requests of the key that run or wait, over all workers, at least 1 on each", 64,
     [](wire::KeyLimits& limits, std::uint64_t value) {
       limits.max_concurrent = static_cast<std::uint32_t>(value);
     }},
    {"--tokens-per-minute", "tokens_per_minute",
     "Computed prompt tokens and emitted tokens per minute", wire::kMostPerMinute,
     [](wire::KeyLimits& limits, std::uint64_t value) {
       limits.rates.tokens_per_minute = static_cast<std::uint32_t>(value);
     }},
    {"--requests-per-minute", "requests_per_minute",
     "Requests that start per minute; each choice of an answer counts", wire::kMostPerMinute,
     [](wire::KeyLimits& limits, std::uint64_t value) {
       limits.rates.requests_per_minute = static_cast<std::uint32_t>(value);
     }},
    {"--tokens-per-day", "tokens_per_day",
     "Computed prompt tokens and emitted tokens per day of UTC", wire::kMostPerDay,
     [](wire::KeyLimits& limits, std::uint64_t value) { limits.rates.tokens_per_day = value; }}};

constexpr std::string_view kNoLimit = "none";

/// The values of `keys create` and `keys update`.
struct KeyValues {
  std::string id, tenant, name, expires_in, expires_at, key_file;
  bool never_expires = false;
  std::string limits[std::size(kLimits)];  ///< In the order of kLimits; empty: not given.
};

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

/// A key that was revoked is in the audit records, so the broker cannot tell which ids exist.
Result<ApiKeyId> parse_key_id(const std::string& text) {
  const bool is_id =
      text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (is_id) return ApiKeyId{text};
  return fail(Errc::BadRequest,
              fmt::format("'{}' is not the id of a key, such as 0011223344556677; `brokerctl keys` "
                          "lists ids and names",
                          text));
}

auto checked(auto parse) {
  return [parse](const std::string& text) {
    const auto parsed = parse(text);
    return parsed ? std::string() : parsed.error().detail;
  };
}

void add_key_options(CLI::App& verb, KeyValues& values) {
  add_name(verb, "--name", values.name, "Name shown in lists, such as ci");
  auto* in = verb.add_option("--expires-in", values.expires_in,
                             "The key expires after this time, such as 45m, 12h or 30d")
                 ->check(checked(parse_duration_ms));
  auto* at = verb.add_option("--expires-at", values.expires_at,
                             "The key expires at this time, in UTC, such as 2027-01-01 or "
                             "2027-01-01T18:30:00Z")
                 ->check(checked(parse_utc_ms));
  in->excludes(at);
  for (std::size_t i = 0; i < std::size(kLimits); ++i) {
    verb.add_option(kLimits[i].option, values.limits[i],
                    fmt::format("{}; {} for no limit", kLimits[i].help, kNoLimit))
        ->check(checked(
            [most = kLimits[i].most](const std::string& text) { return parse_limit(text, most); }));
  }
}

/// The options of the message that `keys create` and `keys update` send.
template <class Message>
Result<std::optional<std::int64_t>> set_key_options(Message& message, const KeyValues& values) {
  for (std::size_t i = 0; i < std::size(kLimits); ++i) {
    if (values.limits[i].empty()) continue;
    if (const auto limit = TRY(parse_limit(values.limits[i], kLimits[i].most)))
      kLimits[i].set(message.limits, *limit);
  }
  if (!values.expires_at.empty()) message.expires_unix_ms = TRY(parse_utc_ms(values.expires_at));
  if (values.expires_in.empty()) return std::nullopt;
  return TRY(parse_duration_ms(values.expires_in));
}

Result<Verb> changed_key(const KeyValues& values) {
  UpdateKey changed;
  changed.message.key = TRY(ApiKeyId::parse(values.id));
  changed.message.never_expires = values.never_expires;
  if (!values.name.empty()) changed.message.name = values.name;
  changed.expires_in_ms = TRY(set_key_options(changed.message, values));
  bool changes = values.never_expires || !values.name.empty() || !values.expires_in.empty() ||
                 !values.expires_at.empty();
  for (std::size_t i = 0; i < std::size(kLimits); ++i) {
    changes = changes || !values.limits[i].empty();
    if (values.limits[i] == kNoLimit) changed.message.removes.emplace_back(kLimits[i].field);
  }
  if (changes) return changed;
  return fail(Errc::BadRequest,
              "nothing to change; give --name, an expiry or a limit, as --help lists them");
}

void add_keys(Commands& commands) {
  const auto values = std::make_shared<KeyValues>();
  const auto lists =
      commands.add_noun({"keys", "API keys of HTTP clients, with expiry and last use",
                         "brokerctl keys\nbrokerctl keys --tenant alice -o wide", "key"},
                        [values]() -> Result<Verb> {
                          return ListKeys{.tenant = TRY(parse_optional<TenantId>(values->tenant))};
                        });
  for (CLI::App* command : lists)
    add_name(*command, "--tenant", values->tenant, "List the keys of this tenant only");
  CLI::App* const noun = lists[0];
  auto* create = commands.add_verb(
      *noun,
      {"create",
       "Create an API key for HTTP clients of a tenant; a new one is shown once. The limits of the "
       "tenant "
       "hold as well",
       "brokerctl keys create --tenant alice --name ci --expires-in 30d\nbrokerctl keys create "
       "--tenant alice --name demo --tokens-per-day 100000"},
      [values]() -> Result<Verb> {
        CreateKey made;
        made.message.tenant = TRY(TenantId::parse(values->tenant));
        made.message.name = values->name;
        made.key_file = values->key_file;
        made.expires_in_ms = TRY(set_key_options(made.message, *values));
        return made;
      });
  add_name(*create, "--tenant", values->tenant, "Tenant for which the key acts")->required();
  add_key_options(*create, *values);
  create->add_option("--key-file", values->key_file,
                     "Take the key from this file, or - for stdin, instead of making one, and do "
                     "not print it: hosts behind a gateway need the same keys");
  auto* update = commands.add_verb(
      *noun,
      {"update",
       "Change name, expiry or limits of a key. An expired key is valid again with a later expiry",
       "brokerctl keys update 0011223344556677 --expires-in 30d\nbrokerctl keys update "
       "0011223344556677 --tokens-per-day none"},
      [values]() -> Result<Verb> { return changed_key(*values); });
  add_key_options(*update, *values);
  update->add_flag("--no-expiry", values->never_expires, "The key does not expire any more")
      ->excludes(update->get_option("--expires-in"))
      ->excludes(update->get_option("--expires-at"));
  auto* revoke = commands.add_verb(*noun,
                                   {"revoke", "Revoke a key; its requests end at once",
                                    "brokerctl keys revoke 0011223344556677"},
                                   [values]() -> Result<Verb> {
                                     return wire::KeyRevoke{.key = TRY(ApiKeyId::parse(values->id)),
                                                            .request_id = {mint_request_id()}};
                                   });
  for (CLI::App* verb : {update, revoke})
    add_name(*verb, "key", values->id, "Id of the key, from `brokerctl keys`")->required();
}

void add_usage(Commands& commands) {
  struct Values {
    std::string since, tenant, key;
  };
  const auto values = std::make_shared<Values>();
  auto* usage = commands.add_verb(
      {"usage",
       "Tokens and requests of each tenant and key, added up from the audit records; needs a "
       "broker with --state-dir",
       "brokerctl usage --since 2026-11-01\nbrokerctl usage --tenant alice -o json"},
      [values]() -> Result<Verb> {
        ShowUsage request;
        if (!values->since.empty()) request.since_unix_ms = TRY(parse_utc_ms(values->since));
        request.tenant = TRY(parse_optional<TenantId>(values->tenant));
        if (!values->key.empty()) request.key = TRY(parse_key_id(values->key));
        return request;
      });
  usage
      ->add_option("--since", values->since,
                   "Only requests that ended from this time on, in UTC, such as 2026-11-24 or "
                   "2026-11-24T18:30:00Z")
      ->check(checked(parse_utc_ms));
  add_name(*usage, "--tenant", values->tenant, "Only requests of this tenant");
  add_name(*usage, "--key", values->key, "Only requests with the key of this id")
      ->check(checked(parse_key_id));
}

}  // namespace

void add_key_nouns(Commands& commands) {
  add_keys(commands);
  add_usage(commands);
}

}  // namespace leasehold::brokerctl
