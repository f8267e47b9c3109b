#include "tools/brokerctl/changes/key_calls.hpp"

#include <fmt/format.h>

#include "common/machine/text_file.hpp"
#include "common/random.hpp"
#include "common/unix_time.hpp"
#include "ipc/client/parse_message.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tools/brokerctl/views.hpp"

namespace leasehold::brokerctl {
namespace {

/// A new key, or the one in a file.
Result<std::string> key_of(const CreateKey& create) {
  constexpr std::size_t kMaxBytes = 4096;
  if (create.key_file.empty()) return mint_api_key();
  const bool is_stdin = create.key_file == "-";
  std::string text =
      TRY(is_stdin ? read_text_stdin(kMaxBytes) : read_text_file(create.key_file, kMaxBytes));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  if (is_api_key(text)) return text;
  return fail(Errc::BadRequest,
              fmt::format("{} has no API key; it must have only a key as `brokerctl keys create` "
                          "printed it: lh- and 64 hex digits",
                          is_stdin ? "stdin" : create.key_file));
}

}  // namespace

Result<CreatedKey> create_key(const CreateKey& create, const Dependencies& dependencies) {
  const std::string key = TRY(key_of(create));
  const bool is_new = create.key_file.empty();
  wire::KeyCreate message = create.message;
  message.hash = hash_of_api_key(key);
  message.request_id = {mint_request_id()};
  if (create.expires_in_ms) message.expires_unix_ms = unix_time_ms() + *create.expires_in_ms;
  const ApiKeyId id = api_key_id(message.hash);
  const auto created = dependencies.call(wire::KeyCreate::kMethod, message.to_json());
  if (!created) {
    const Errc code = created.error().code;
    const bool may_exist = code == Errc::TimedOut || code == Errc::ConnectionLost;
    if (may_exist && is_new) return revoke_unprinted_key(id, created.error(), dependencies);
    return std::unexpected(created.error());
  }
  wire::Json document{{"key", id.value}, {"tenant", message.tenant.value}};
  if (is_new) document["api_key"] = key;
  if (!message.name.empty()) document["name"] = message.name;
  if (message.expires_unix_ms) document["expires_unix_ms"] = *message.expires_unix_ms;
  cli::Table table{.columns = {{"KEY"}, {"TENANT"}, {"NAME"}, {"EXPIRES"}},
                   .rows = {{id.value, message.tenant.value, cli::or_dash(message.name),
                             time_text(message.expires_unix_ms, "never")}}};
  if (is_new) {
    table.columns.push_back({"API KEY, SHOWN ONCE"});
    table.rows[0].push_back(key);
  }
  return CreatedKey{
      .id = id, .is_new = is_new, .document = std::move(document), .table = std::move(table)};
}

std::unexpected<Error> revoke_unprinted_key(const ApiKeyId& key, const Error& why,
                                            const Dependencies& dependencies) {
  const wire::KeyRevoke revoke{.key = key, .request_id = {mint_request_id()}};
  const auto revoked = dependencies.call(wire::KeyRevoke::kMethod, revoke.to_json());
  const bool exists = !revoked && revoked.error().code != Errc::BadRequest;
  if (!exists)
    return fail(why.code, fmt::format("key {} is not valid, because {}; create another", key.value,
                                      why.detail));
  return fail(why.code,
              fmt::format("key {} may be valid, but was not shown, because {}; it could not be "
                          "revoked ({}); run: brokerctl keys revoke {}",
                          key.value, why.detail, revoked.error().detail, key.value));
}

Result<wire::KeyView> update_key(const UpdateKey& update, const Dependencies& dependencies) {
  wire::KeyUpdate message = update.message;
  message.request_id = {mint_request_id()};
  if (update.expires_in_ms) message.expires_unix_ms = unix_time_ms() + *update.expires_in_ms;
  return client::parse_message<wire::KeyView>(
      TRY(dependencies.call(wire::KeyUpdate::kMethod, message.to_json())));
}

}  // namespace leasehold::brokerctl
