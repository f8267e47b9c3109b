// `brokerctl keys` and `brokerctl usage`.
#include <fmt/format.h>

#include "common/cli/parse_check.hpp"
#include "common/random.hpp"
#include "tools/brokerctl/arguments/key_options.hpp"
#include "tools/brokerctl/audit.hpp"

namespace leasehold::brokerctl {
namespace {

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

/// The values of the commands of `keys`.
struct KeyCommandValues {
  std::string id, tenant, key_file;
  KeyOptions options;
};

Result<Verb> created_key(const KeyCommandValues& values) {
  const KeyValues given = TRY(parse_key_options(values.options));
  CreateKey made;
  made.message.tenant = TRY(TenantId::parse(values.tenant));
  made.message.name = given.name.value_or("");
  made.message.expires_unix_ms = given.expires_unix_ms;
  made.message.limits = given.limits;
  made.key_file = values.key_file;
  made.expires_in_ms = given.expires_in_ms;
  return made;
}

Result<Verb> updated_key(const KeyCommandValues& values) {
  const KeyValues given = TRY(parse_key_changes(values.options));
  UpdateKey changed;
  changed.message.key = TRY(ApiKeyId::parse(values.id));
  changed.message.name = given.name;
  changed.message.expires_unix_ms = given.expires_unix_ms;
  changed.message.never_expires = given.never_expires;
  changed.message.limits = given.limits;
  changed.message.removes = given.removes;
  changed.expires_in_ms = given.expires_in_ms;
  return changed;
}

void add_keys(Commands& commands) {
  const auto values = std::make_shared<KeyCommandValues>();
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
      [values] { return created_key(*values); });
  add_name(*create, "--tenant", values->tenant, "Tenant for which the key acts")->required();
  add_key_options(*create, values->options, KeyKeeper::Broker);
  create->add_option("--key-file", values->key_file,
                     "Take the key from this file, or - for stdin, instead of making one, and do "
                     "not print it: hosts behind a gateway need the same keys");
  auto* update = commands.add_verb(
      *noun,
      {"update",
       "Change name, expiry or limits of a key. An expired key is valid again with a later expiry",
       "brokerctl keys update 0011223344556677 --expires-in 30d\nbrokerctl keys update "
       "0011223344556677 --tokens-per-day none"},
      [values] { return updated_key(*values); });
  add_key_options(*update, values->options, KeyKeeper::Broker);
  add_no_expiry(*update, values->options);
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
