/// A part in the words of the broker's messages. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "ipc/control/messages/cell/cell.hpp"
#include "ipc/control/messages/views.hpp"
#include "tools/cell/decide/tenant_part.hpp"

namespace leasehold::cell {

/// A part that begins gets the tokens of this time at once: the tenant may have used the rest of
/// its minute on other hosts.
inline constexpr std::uint32_t kFirstCreditMs = 2'000;

/// An incarnation in the broker's messages.
inline std::uint64_t number_of(Incarnation incarnation) {
  return static_cast<std::uint64_t>(incarnation.value);
}

/// Nothing can run under a share that lacks requests, blocks or tokens.
bool can_run(const Share& share);

/// The message that gives the broker this limit. A share under which nothing can run is sent as
/// zero. Precondition: the revision is not 0.
wire::CellAdmit admission_of(const CellName& cell, const TenantId& tenant, const PartOwner& owner,
                             const BrokerLimit& limit);

/// The limit that the broker has. Zero without a part, or with one that is void.
BrokerLimit limit_in(const wire::TenantView& view, Incarnation incarnation);
/// What `cell.part_changed` would say now. Precondition: the tenant is of a cell.
wire::CellPartChanged changed_in(const wire::TenantView& view);
/// At most what can still run or be held there, beside the limits on reserved blocks and tokens.
/// Only of a part that every worker has confirmed: until then tokens of an earlier rate may be
/// used.
Share may_run_in(const wire::CellPartChanged& changed);
/// What can still run or be held at the broker when a part resumes. A part that a ceiling of this
/// incarnation has made void runs nothing, and neither does one of another incarnation. Nothing
/// while workers have not confirmed the limit, which may be zero: then wait.
std::optional<Share> may_run_at_resume(const wire::TenantView& view, Incarnation incarnation);

/// True if the broker may have the key although its reply to `key.create` was this error.
bool may_have_key(Errc error);

}  // namespace leasehold::cell
