#include "broker/decide/memory/reclaim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"

namespace leasehold {
namespace {

/// The retry time is short, because a drain may end at any time.
constexpr std::chrono::milliseconds kRetryAfter{50};
/// A claim ends if the tenant does not retry for this long.
constexpr Duration kClaimTime = std::chrono::seconds(5);

/// True if memory of the worker `holder` can serve the demand: device memory stays with the worker
/// that mapped it.
bool can_serve(const State& state, AttachmentId holder, const ExtentDemand& demand) {
  return !state.config.lends_device() || holder == demand.worker;
}

bool ends_by(const LeaseRecord& record, TimePoint until) {
  return record.drain_deadline != TimePoint{} && record.drain_deadline <= until;
}

/// Number of extents that will become free without another victim.
std::uint64_t returning_extents(const State& state, const ExtentDemand& demand, TimePoint until) {
  std::uint64_t count = 0;
  for (const auto& [id, extent] : state.extents.records()) {
    const bool returning =
        extent.state == ExtentState::Draining || extent.state == ExtentState::Scrubbing;
    if (extent.pool == MemoryPool::Kv && returning && can_serve(state, extent.lent_to, demand))
      ++count;
  }
  state.leases.for_each_open([&](const LeaseRecord& record) {
    if (!record.is(LeaseState::Live) || !ends_by(record, until)) return;
    if (!can_serve(state, record.worker(), demand)) return;
    count += owned_extents(state, record, MemoryPool::Kv).size();
  });
  return count;
}

/// The leases that a scavenger can lose.
struct Scavenger {
  std::uint32_t weight = 1;
  std::uint64_t extents = 0;
  std::vector<const LeaseRecord*> leases;  // the oldest first
};

/// Orders scavengers: the greatest is the victim. It holds the most extents relative to its weight;
/// between equals, it has the smallest weight, and then the newest lease.
bool is_spared_for(const Scavenger& one, const Scavenger& other) {
  const std::uint64_t exceeds = one.extents * other.weight;
  const std::uint64_t other_exceeds = other.extents * one.weight;
  if (exceeds != other_exceeds) return exceeds < other_exceeds;
  if (one.weight != other.weight) return one.weight > other.weight;
  return one.leases.back()->granted_at < other.leases.back()->granted_at;
}

/// `promised`: the demand is within a reserve, to which all scavengers give way; to another demand
/// only scavenger leases do.
std::vector<Scavenger> find_scavengers(State& state, const ExtentDemand& demand, TimePoint until,
                                       bool promised) {
  const std::vector<LeaseId> leases = open_leases_where(state, [&](const LeaseRecord& record) {
    return (promised || record.scavenger) && record.is(LeaseState::Live) &&
           is_of_scavenger(state, record.tenant, record.scavenger) && !ends_by(record, until) &&
           can_serve(state, record.worker(), demand);
  });
  std::map<TenantId, Scavenger> all;
  for (const LeaseId id : leases) {
    const LeaseRecord& record = state.leases.at(id);
    Scavenger& scavenger = all[record.tenant];
    scavenger.weight = state.tenants.find(record.tenant)->policy.weight;
    scavenger.extents += kv_extents(state, record);
    scavenger.leases.push_back(&record);
  }
  std::vector<Scavenger> scavengers;
  for (auto& [tenant, scavenger] : all) {
    std::ranges::sort(scavenger.leases, {}, [](const LeaseRecord* record) {
      return std::tuple(record->granted_at, record->id());
    });
    scavengers.push_back(std::move(scavenger));
  }
  return scavengers;
}

/// The leases to drain for `missing` extents. Nothing if the scavengers do not have enough extents.
std::optional<std::vector<LeaseId>> choose_victims(State& state, const ExtentDemand& demand,
                                                   TimePoint until, bool promised,
                                                   std::uint64_t missing) {
  std::vector<Scavenger> scavengers = find_scavengers(state, demand, until, promised);
  std::vector<LeaseId> victims;
  while (missing > 0) {
    const auto next = std::ranges::max_element(scavengers, is_spared_for);
    if (next == scavengers.end()) return std::nullopt;
    const LeaseRecord& record = *next->leases.back();
    victims.push_back(record.id());
    const std::uint64_t extents = kv_extents(state, record);
    missing -= std::min(missing, extents);
    next->extents -= extents;
    next->leases.pop_back();
    if (next->leases.empty()) scavengers.erase(next);
  }
  return victims;
}

void take_from(Decision& decision, std::span<const LeaseId> victims, TimePoint until,
               const char* why =
                   "the memory is reclaimed for a guaranteed tenant; retry when "
                   "leases end") {
  const Error refusal{Errc::PoolExhausted, why};
  for (const LeaseId id : victims) {
    start_drain(decision, decision.state.leases.at(id),
                {.until = until, .reason = RevokeReason::PreemptedByPriority}, refusal);
  }
  if (until <= decision.now) revoke_leases(decision, victims, RevokeReason::PreemptedByPriority);
}

/// Keeps what becomes free for the tenant while it retries.
void claim_for(Decision& decision, const TenantId& tenant, std::uint32_t extents) {
  Claim& claim = decision.state.tenants.find(tenant)->claim;
  if (claim.until <= decision.now) claim = {};
  claim = {std::max(claim.extents, extents), decision.now + kClaimTime};
}

/// Scrubs retained memory that can serve the demand, and returns the refusal. Returns nothing if no
/// retained memory can serve the demand.
std::optional<Error> scrub_for(Decision& decision, const ExtentDemand& demand, const Error& why) {
  if (why.code != Errc::PoolExhausted || !require_lendable(decision.state, demand)) return {};
  return end_retentions_for(decision, demand.extents);
}

/// The filled adapters of each worker that may leave for the demand. The reserves of other tenants
/// are spared: memory that leaves a reserve is kept for its tenant.
std::map<AttachmentId, std::vector<LeaseId>> yielding_adapters(State& state,
                                                               const ExtentDemand& demand) {
  std::map<AttachmentId, std::vector<LeaseId>> yielding;
  std::map<TenantId, std::uint64_t> spare = extents_beyond_reserves(state);
  for (const LeaseId id : open_leases_where(state, [&](const LeaseRecord& record) {
         return record.scope == wire::LeaseScope::Adapter && record.filled &&
                record.is(LeaseState::Live) && can_serve(state, record.worker(), demand);
       })) {
    const LeaseRecord& record = state.leases.at(id);
    std::uint64_t& left = spare[record.tenant];
    const std::uint64_t extents = kv_extents(state, record);
    std::vector<LeaseId>& leases = yielding[record.worker()];
    const bool may_leave = record.tenant == demand.tenant || extents <= left;
    if (!may_leave || leases.size() == wire::AdaptersYield::kMaxLeases) continue;
    left -= std::min(left, extents);
    leases.push_back(id);
  }
  std::erase_if(yielding, [](const auto& entry) { return entry.second.empty(); });
  return yielding;
}

/// Asks workers for the memory of adapters that no request uses, which only they know, and returns
/// the refusal. A growth gets no time to retry: if all adapters are in use, the worker has to
/// preempt. A worker that opens an adapter chooses itself which one leaves.
Error ask_for_adapters(Decision& decision, const ExtentDemand& demand, Error why) {
  State& state = decision.state;
  if (why.code != Errc::PoolExhausted || demand.purpose == ExtentDemand::For::Adapter) return why;
  const std::uint64_t lacking = lacking_extents(state, demand, decision.now);
  const std::uint64_t coming = returning_extents(state, demand, decision.now);
  if (lacking <= coming) return why;
  const std::uint64_t size_bytes = (lacking - coming) * state.extents.extent_size_bytes();
  auto yielding = yielding_adapters(state, demand);
  if (!yielding.empty() && demand.purpose == ExtentDemand::For::NewLease)
    why.retry_after_ms = kRetryAfter.count();
  for (auto& [worker, leases] : yielding)
    decision.add(effect::NotifyAdapters{worker, wire::AdaptersYield{.tenant = demand.tenant,
                                                                    .leases = std::move(leases),
                                                                    .size_bytes = size_bytes}});
  return why;
}

}  // namespace

CallResult refuse_or_scrub(Decision& decision, const ExtentDemand& demand, const Error& why) {
  return std::unexpected(scrub_for(decision, demand, why).value_or(why));
}

CallResult refuse_or_reclaim(Decision& decision, CallId call, const ExtentDemand& demand,
                             const Error& why) {
  State& state = decision.state;
  if (const auto retry = scrub_for(decision, demand, why)) return std::unexpected(*retry);
  const bool promised = demand.extents <= unused_reserve(state, demand.tenant);
  const bool may_reclaim = promised || (why.code == Errc::PoolExhausted &&
                                        !is_of_scavenger(state, demand.tenant, demand.scavenger));
  if (demand.scavenger || !may_reclaim || !require_lendable(state, demand))
    return std::unexpected(why);
  if (state.tenants.find(demand.tenant) == nullptr) return std::unexpected(why);
  const TimePoint until = decision.now + state.config.timeouts.reclaim_grace;
  const std::uint64_t free = state.extents.free_extents_for(demand.worker);
  const std::uint64_t wanted =
      demand.extents + claimed_by_others(state, demand.tenant, decision.now);
  const std::uint64_t coming = free + returning_extents(state, demand, until);
  const auto victims =
      choose_victims(state, demand, until, promised, wanted - std::min(wanted, coming));
  if (!victims || (!promised && victims->empty()))
    return std::unexpected(ask_for_adapters(decision, demand, why));
  claim_for(decision, demand.tenant, demand.extents);
  take_from(decision, *victims, until);
  decision.reply(
      call, std::unexpected(Error{
                .code = Errc::PoolExhausted,
                .detail = fmt::format("{} extents requested, {} are free; {}, and "
                                      "memory is being reclaimed for tenant {}: retry "
                                      "in {} ms",
                                      demand.extents, free,
                                      promised ? "its reserve covers them" : "batches give way",
                                      demand.tenant.value, kRetryAfter.count()),
                .retry_after_ms = kRetryAfter.count()}));
  return std::nullopt;
}

CallResult refuse_or_end_own_scavengers(Decision& decision, const TenantId& tenant,
                                        const Error& why) {
  const TimePoint until = decision.now + decision.state.config.timeouts.reclaim_grace;
  bool are_ending = false;
  const std::vector<LeaseId> own =
      open_leases_where(decision.state, [&](const LeaseRecord& record) {
        const bool is_own =
            record.is(LeaseState::Live) && record.scavenger && record.tenant == tenant;
        are_ending = are_ending || is_own;
        return is_own && !ends_by(record, until);
      });
  if (why.code != Errc::QuotaBlocks || !are_ending) return std::unexpected(why);
  claim_for(decision, tenant, 1);
  take_from(decision, own, until, "the tenant's clients need its blocks; retry when they end");
  Error retry = why;
  retry.detail +=
      fmt::format("; batches of the tenant give way: retry in {} ms", kRetryAfter.count());
  retry.retry_after_ms = kRetryAfter.count();
  return std::unexpected(retry);
}

}  // namespace leasehold
