/// Creates and changes API keys. A key is known to its creator alone, so one that was not printed
/// is revoked.
#pragma once

#include <expected>
#include <nlohmann/json.hpp>

#include "tools/brokerctl/run.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {

struct CreatedKey {
  ApiKeyId id;
  wire::Json document;  ///< With the key itself, like the table.
  cli::Table table;
};

/// Errors: those of `key.create`. After a lost reply the key is revoked, and the error says whether
/// it was.
Result<CreatedKey> create_key(const CreateKey& create, const Dependencies& dependencies);

/// Revokes a key that this program could not print because of `why`, so that no key exists that its
/// creator does not have. Returns an error that says whether the key was revoked.
std::unexpected<Error> revoke_unprinted_key(const ApiKeyId& key, const Error& why,
                                            const Dependencies& dependencies);

/// Errors: those of `key.update`.
Result<wire::KeyView> update_key(const UpdateKey& update, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
