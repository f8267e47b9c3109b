/// What an operator typed, understood. Wrong usage never reaches the broker.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "common/command_line.hpp"
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
struct ListQuarantine {};
struct ListOperatorActions {
  std::uint64_t limit = 100;  ///< The newest; 1 … 1000.
};
/// `events`, and with `follow` `watch`.
struct ListEvents {
  std::optional<std::uint64_t> after = 0;  ///< Last event already seen; none: begin with the next.
  std::uint64_t limit = 0;                 ///< 0: all there are.
  bool follow = false;
  std::optional<LeaseId> lease{};    ///< Only events that name it,
  std::optional<TenantId> tenant{};  ///< … or this tenant.
};
struct ShowTimeline {
  LeaseId lease;
};
struct Revoke {
  wire::LeaseRevoke message;
  bool wait = false;  ///< Until fenced, then show the four clocks.
  std::int64_t timeout_ms = 30'000;
};

using Verb = std::variant<ShowStatus, ListTenants, ListLeases, ListExtents, ListWorkers,
                          ListQuarantine, ListOperatorActions, ListEvents, ShowTimeline, Revoke,
                          wire::LeaseDrain, wire::TenantAdmit, wire::QuarantineRelease>;

enum class Output { Table, Json };

struct Arguments {
  std::optional<std::string> socket;
  Output output = Output::Table;
  Verb verb;
};

/// Help that was asked for, or what is wrong, and in which form to say the latter.
struct UsageWithOutput : Usage {
  Output output = Output::Table;  ///< What was asked for, as far as it could be understood.
};

/// `arguments` without the program's name. Mints a request id for a verb that changes something
/// unless `--request-id` gives one.
std::expected<Arguments, UsageWithOutput> parse_arguments(std::span<const std::string> arguments);

}  // namespace leasehold::brokerctl
