/// Where the broker listens; the same answer in every program.
#pragma once

#include <optional>
#include <string>

namespace leasehold::cli {

/// What the environment says; empty text counts as unset.
struct Environment {
  std::string broker;       ///< LEASEHOLD_BROKER
  std::string runtime_dir;  ///< XDG_RUNTIME_DIR
};

Environment read_environment();

/// `--socket` if given, else LEASEHOLD_BROKER, else $XDG_RUNTIME_DIR/leasehold/broker.sock, else
/// /run/leasehold/broker.sock. Pure.
std::string broker_address(const std::optional<std::string>& given, const Environment& environment);

}  // namespace leasehold::cli
