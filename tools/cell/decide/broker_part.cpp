#include "tools/cell/decide/broker_part.hpp"

#include <algorithm>

#include "common/expects.hpp"
#include "ipc/control/messages/rates.hpp"
#include "ipc/segment/gate_set.hpp"

namespace leasehold::cell {
namespace {

constexpr std::uint32_t kMostBlocks = 1u << 20;  // of TenantPolicy

/// Every admission has a revision, so a part without one is what a ceiling left.
bool is_void(const wire::CellPart& part, Incarnation incarnation) {
  return part.incarnation != number_of(incarnation) || part.revision == 0;
}

}  // namespace

bool can_run(const Share& share) {
  return share.concurrent > 0 && share.blocks > 0 && share.tokens_per_minute > 0;
}

wire::CellAdmit admission_of(const CellName& cell, const TenantId& tenant, const PartOwner& owner,
                             const BrokerLimit& limit) {
  expects(limit.revision > 0, "a limit that is sent has a revision");
  wire::CellAdmit admission;
  admission.policy.tenant = tenant;
  admission.policy.cell = cell;
  admission.incarnation = number_of(owner.incarnation);
  admission.revision = limit.revision;
  admission.first_credit_ms = kFirstCreditMs;
  const Share share = can_run(limit.share) ? limit.share : Share();
  admission.policy.max_concurrent = std::min<std::uint32_t>(share.concurrent, kMaxStepSequences);
  admission.policy.max_blocks = std::min(share.blocks, kMostBlocks);
  admission.policy.reserved_blocks = std::min(share.reserved, admission.policy.max_blocks);
  admission.policy.max_adapters = limit.adapters.count;
  admission.policy.max_adapter_bytes = limit.adapters.bytes;
  if (share.reserved > 0) admission.policy.tier = wire::Tier::Guaranteed;
  if (share.tokens_per_minute > 0)
    admission.policy.rates.tokens_per_minute =
        std::min(share.tokens_per_minute, wire::kMostPerMinute);
  return admission;
}

BrokerLimit limit_in(const wire::TenantView& view, Incarnation incarnation) {
  if (!view.part) return {};
  // Later limits have greater revisions than any that the broker has seen. The policy of a void
  // part keeps its rate.
  const wire::TenantPolicy& policy = view.policy;
  const AdapterLimits adapters{.count = policy.max_adapters, .bytes = policy.max_adapter_bytes};
  if (is_void(*view.part, incarnation))
    return {.share = {}, .adapters = adapters, .revision = view.part->revision};
  return {.share = {.concurrent = policy.max_concurrent,
                    .blocks = policy.max_blocks,
                    .reserved = policy.reserved_blocks,
                    .tokens_per_minute = policy.rates.tokens_per_minute.value_or(0)},
          .adapters = adapters,
          .revision = view.part->revision};
}

wire::CellPartChanged changed_in(const wire::TenantView& view) {
  wire::CellPartChanged changed;
  changed.tenant = view.policy.tenant;
  changed.part = view.part.value();
  changed.blocks_held = view.blocks_held;
  return changed;
}

Share may_run_in(const wire::CellPartChanged& changed) {
  return {.concurrent = changed.part.may_run, .blocks = changed.blocks_held};
}

std::optional<Share> may_run_at_resume(const wire::TenantView& view, Incarnation incarnation) {
  if (!view.part) return Share();
  if (is_void(*view.part, incarnation)) return Share();
  if (!view.part->confirmed) return std::nullopt;
  return may_run_in(changed_in(view));
}

bool may_have_key(Errc error) {
  return error == Errc::BadRequest ||  // it has the key already
         error == Errc::TimedOut || error == Errc::ConnectionLost;
}

}  // namespace leasehold::cell
