/// The options of an API key, for `keys` and `cell keys`. Internal to the arguments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control/messages/keys.hpp"
#include "tools/brokerctl/arguments/commands.hpp"

namespace leasehold::brokerctl {

/// The program that holds a key to its limits. A host of a cell does not know what others have
/// counted of a day, so keys of a cell have no limit per day.
enum class KeyKeeper : std::uint8_t { Broker, Cell };

/// The values of the options, as texts until the parse has ended.
struct KeyOptions {
  std::string name, expires_in, expires_at;
  bool never_expires = false;
  std::array<std::string, 4> limits;  ///< See key_options.cpp; empty: not given.
};

/// What the options set.
struct KeyValues {
  std::optional<std::string> name;
  std::optional<std::int64_t> expires_in_ms;  ///< From the call on.
  std::optional<std::int64_t> expires_unix_ms;
  bool never_expires = false;
  wire::KeyLimits limits;
  std::vector<std::string> removes;  ///< See wire::KeyUpdate.

  bool is_empty() const;
};

/// Adds --name, --expires-in, --expires-at and the limits. `options` outlives the parse.
void add_key_options(CLI::App& verb, KeyOptions& options, KeyKeeper keeper);
/// Adds --no-expiry, to a verb with those options.
void add_no_expiry(CLI::App& verb, KeyOptions& options);
Result<KeyValues> parse_key_options(const KeyOptions& options);
/// The values of an update. Errors: BadRequest when there are none.
Result<KeyValues> parse_key_changes(const KeyOptions& options);

}  // namespace leasehold::brokerctl
