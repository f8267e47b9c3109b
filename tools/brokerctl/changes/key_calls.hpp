/// Creates and changes API keys. A new key is known to its creator alone, so one that was not
/// printed is revoked. A key from a file is neither printed nor revoked: its owner has it.
#pragma once

#include <expected>
#include <nlohmann/json.hpp>

#include "tools/brokerctl/run.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {

struct CreatedKey {
  ApiKeyId id;
  bool is_new = true;  ///< The key is not from a file, so document and table include it.
  wire::Json document;
  cli::Table table;
};

/// Errors: those of `key.create`. After a lost reply a new key is revoked, and the error says
/// whether it was.
Result<CreatedKey> create_key(const CreateKey& create, const Dependencies& dependencies);

/// Revokes a key that this program could not print because of `why`, so that no key exists that its
/// creator does not have. Returns an error that says whether the key was revoked.
std::unexpected<Error> revoke_unprinted_key(const ApiKeyId& key, const Error& why,
                                            const Dependencies& dependencies);

/// Errors: those of `key.update`.
Result<wire::KeyView> update_key(const UpdateKey& update, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
