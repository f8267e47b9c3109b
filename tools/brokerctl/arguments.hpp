/// What an operator typed, understood. Wrong usage never reaches the broker.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "ipc/control/messages.hpp"

namespace leasehold::brokerctl {

struct ShowStatus {};
struct ListTenants {};
struct ListLeases {
  std::optional<TenantId> tenant;
  std::optional<LeaseState> state;
};
struct ListExtents {};
struct ListWorkers {};
struct ListEvents {
  std::uint64_t after = 0;  ///< Sequence number of the last event already seen.
  std::uint32_t limit = 1000;
  bool follow = false;
};
struct Revoke {
  wire::LeaseRevoke message;
  bool wait = false;  ///< Until fenced, then show the four clocks.
  std::int64_t timeout_ms = 30'000;
};

using Verb = std::variant<ShowStatus, ListTenants, ListLeases, ListExtents, ListWorkers, ListEvents,
                          Revoke, wire::LeaseDrain, wire::TenantAdmit>;

enum class Output { Table, Json };

struct Arguments {
  std::optional<std::string> socket;
  Output output = Output::Table;
  Verb verb;
};

/// Help that was asked for (exit code 0, for stdout), or wrong usage (2, for stderr).
struct Usage {
  int exit_code = 2;
  std::string text;
};

/// `arguments` without the program's name. Mints a request id for a verb that changes something
/// unless `--request-id` gives one.
std::expected<Arguments, Usage> parse_arguments(std::span<const std::string> arguments);

}  // namespace leasehold::brokerctl
