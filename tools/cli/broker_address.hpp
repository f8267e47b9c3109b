/// Finds the broker's socket in the same way for every program.
#pragma once

#include <optional>
#include <string>

namespace leasehold::cli {

/// The environment variables that name the broker; an empty value counts as unset.
struct Environment {
  std::string broker;       ///< LEASEHOLD_BROKER
  std::string runtime_dir;  ///< XDG_RUNTIME_DIR
};

Environment read_environment();

/// `given` (--socket), else LEASEHOLD_BROKER, else $XDG_RUNTIME_DIR/leasehold/broker.sock, else
/// /run/leasehold/broker.sock. Pure.
std::string broker_address(const std::optional<std::string>& given, const Environment& environment);

}  // namespace leasehold::cli
