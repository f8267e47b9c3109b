#include "worker/adapter/adapter_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace leasehold {
namespace {

using Phase = AdapterLoad::Phase;

/// How often the version that the broker named may be gone when the worker opens it.
constexpr std::uint32_t kMaxMisses = 3;

Error in_adapter_scope(Error why) {
  why.scope = FailureScope::Adapter;
  return why;
}

bool has_lease_ended(Errc code) {
  return is_lease_ended(code) || code == Errc::UnknownLease;
}

}  // namespace

std::string_view name(AdapterEviction why) {
  switch (why) {
    case AdapterEviction::Room:
      return "room";
    case AdapterEviction::Unloaded:
      return "unloaded";
    case AdapterEviction::Replaced:
      return "replaced";
    case AdapterEviction::Revoked:
      return "revoked";
  }
  std::unreachable();
}

// --------------------------------------------------------------------------------------- callers

AdapterTicket AdapterBook::use(const TenantId& tenant, const std::string& name, TimePoint now) {
  const AdapterTicket ticket{++last_ticket_};
  enter({.ticket = ticket, .tenant = tenant, .since = now}, name, now);
  return ticket;
}

void AdapterBook::enter(AdapterWaiter waiter, const std::string& name, TimePoint now) {
  const AdapterNames::Key key{waiter.tenant, name};
  if (const ResolvedAdapter* adapter = names_.find(key))
    return join(std::move(waiter), ResolvedAdapter(*adapter), now);
  if (names_.wait(key, std::move(waiter))) actions_.push_back(ResolveAdapter{key.first, name});
}

void AdapterBook::join(AdapterWaiter waiter, const ResolvedAdapter& adapter, TimePoint now) {
  AdapterLoad* load = find(adapter);
  if (load == nullptr) load = &start(adapter, now);
  if (!load->is_loaded()) {
    load->waiters.push_back(std::move(waiter));
    return;
  }
  load->phase = Phase::Ready;
  hand_out(*load, waiter.ticket, now);
}

AdapterLoad& AdapterBook::start(const ResolvedAdapter& adapter, TimePoint now) {
  const AdapterLoadId id{++last_load_};
  actions_.push_back(OpenAdapterFile{id, adapter.file});
  return loads_.emplace(id, AdapterLoad{.id = id, .adapter = adapter, .began = now}).first->second;
}

void AdapterBook::hand_out(AdapterLoad& load, AdapterTicket ticket, TimePoint now) {
  load.last_used = now;
  actions_.push_back(AnswerAdapterUse{ticket, load.use});
}

void AdapterBook::unload(const std::string& name) {
  for (auto& [id, load] : loads_) {
    if (load.adapter.name != name || load.phase != Phase::Ready) continue;
    load.phase = Phase::Draining;
    load.drains_for = AdapterEviction::Unloaded;
  }
}

/// Asks about the loaded versions too, because those that were removed or replaced leave.
void AdapterBook::changed() {
  names_.forget();
  for (const auto& [id, load] : loads_)
    if (names_.ask(load.key())) actions_.push_back(ResolveAdapter{load.owner(), load.adapter.name});
}

// --------------------------------------------------------------------------------------- answers

void AdapterBook::resolved(const AdapterNames::Key& key, const Result<ResolvedAdapter>& answer,
                           TimePoint now) {
  std::vector<AdapterWaiter> waiters = names_.answered(key, answer, now);
  retire(key, answer, now);
  for (AdapterWaiter& waiter : waiters) {
    if (answer) {
      join(std::move(waiter), *answer, now);
    } else {
      refuse(waiter, answer.error());
    }
  }
}

/// Lets the versions leave that the broker no longer gives to new requests.
void AdapterBook::retire(const AdapterNames::Key& key, const Result<ResolvedAdapter>& answer,
                         TimePoint now) {
  if (!answer && answer.error().code != Errc::UnknownAdapter) return;
  std::vector<AdapterWaiter> waiters;
  for (auto next = loads_.begin(); next != loads_.end();) {
    AdapterLoad& load = (next++)->second;
    const bool is_outdated = answer ? load.adapter != *answer : load.owner() == key.first;
    if (load.adapter.name != key.second || !is_outdated) continue;
    if (load.is_loaded()) {
      load.phase = Phase::Draining;
      load.drains_for = AdapterEviction::Replaced;
    } else {
      std::ranges::move(abandon(load), std::back_inserter(waiters));
    }
  }
  for (AdapterWaiter& waiter : waiters) {
    if (!answer && waiter.tenant == key.first) {
      refuse(waiter, answer.error());
    } else {
      enter(std::move(waiter), key.second, now);
    }
  }
}

void AdapterBook::file_opened(AdapterLoadId id, const Result<AdapterContent>& content) {
  AdapterLoad* load = find(id, Phase::Opening);
  if (load == nullptr) return;
  if (!content) return fail_load(*load, content.error());
  load->content = *content;
  call(*load);
}

void AdapterBook::lease_opened(AdapterLoadId id, const Result<LeaseId>& lease, TimePoint now) {
  AdapterLoad* load = find(id, Phase::Opening);
  if (load == nullptr) {
    if (lease) actions_.push_back(CloseAdapterLease{*lease});
    return;
  }
  if (lease) {
    load->lease = *lease;
    load->phase = Phase::Filling;
    load->repeated.failure.reset();
    actions_.push_back(CopyAdapter{id, *lease});
    return;
  }
  const Error& why = lease.error();
  if (why.code == Errc::QuotaAdapters || why.code == Errc::PoolExhausted)
    return make_room(*load, why, now);
  if (why.code == Errc::UnknownAdapter) return resolve_again(*load, why, now);
  if (is_call_repeated(why.code)) return call_later(*load, why, now);
  fail_load(*load, why);
}

void AdapterBook::copied(AdapterLoadId id, Result<std::shared_ptr<const AdapterMatrices>> matrices,
                         TimePoint now) {
  AdapterLoad* load = find(id, Phase::Filling);
  if (load == nullptr) return;
  if (!matrices && has_lease_ended(matrices.error().code))
    return load_again(*load, matrices.error(), now);
  if (!matrices) return fail_load(*load, matrices.error());
  load->matrices = *std::move(matrices);
  call(*load);
}

void AdapterBook::confirmed(AdapterLoadId id, const Result<void>& answer, TimePoint now) {
  AdapterLoad* load = find(id, Phase::Filling);
  if (load == nullptr) return;
  if (answer) return become_ready(*load, now);
  const Error& why = answer.error();
  if (is_call_repeated(why.code)) return call_later(*load, why, now);
  if (has_lease_ended(why.code)) return load_again(*load, why, now);
  fail_load(*load, why);
}

void AdapterBook::become_ready(AdapterLoad& load, TimePoint now) {
  load.phase = Phase::Ready;
  load.repeated.failure.reset();
  load.use = std::make_shared<const LoadedAdapter>(
      LoadedAdapter{.name = load.adapter.name,
                    .version = load.adapter.version,
                    .digest = load.content->digest,
                    .lease = *load.lease,
                    .size_bytes = load.content->size_bytes,
                    .matrices = std::exchange(load.matrices, nullptr)});
  actions_.push_back(DropAdapterFile{load.id});
  actions_.push_back(ReportAdapterLoaded{load.use});
  for (const AdapterWaiter& waiter : std::exchange(load.waiters, {}))
    hand_out(load, waiter.ticket, now);
}

// ---------------------------------------------------------------------------- the end of a load

void AdapterBook::refuse(const AdapterWaiter& waiter, const Error& why) {
  actions_.push_back(AnswerAdapterUse{waiter.ticket, std::unexpected(in_adapter_scope(why))});
}

void AdapterBook::fail_load(AdapterLoad& load, const Error& why) {
  for (const AdapterWaiter& waiter : abandon(load)) refuse(waiter, why);
}

/// Removes a load that is not ready, and returns its waiters.
std::vector<AdapterWaiter> AdapterBook::abandon(AdapterLoad& load) {
  std::vector<AdapterWaiter> waiters = std::move(load.waiters);
  actions_.push_back(DropAdapterFile{load.id});
  if (load.lease) actions_.push_back(CloseAdapterLease{*load.lease});
  loads_.erase(AdapterLoadId(load.id));
  return waiters;
}

/// The lease of a load was revoked before it was ready.
void AdapterBook::load_again(AdapterLoad& load, const Error& why, TimePoint now) {
  if (load.reloads == kMaxReloads) {
    return fail_load(
        load, {Errc::LeaseRevoked,
               fmt::format("the lease of adapter {} was revoked {} times before it was loaded, the "
                           "last time: {}; find the reason with `brokerctl actions`",
                           load.adapter.name, kMaxReloads + 1, why.detail)});
  }
  const ResolvedAdapter adapter = load.adapter;
  const std::uint32_t reloads = load.reloads + 1;
  load.lease.reset();  // has ended
  std::vector<AdapterWaiter> waiters = abandon(load);
  AdapterLoad& next = start(adapter, now);
  next.reloads = reloads;
  next.waiters = std::move(waiters);
}

/// The broker named this version, and does not know it any more.
void AdapterBook::resolve_again(AdapterLoad& load, const Error& why, TimePoint now) {
  const std::string name = load.adapter.name;
  for (AdapterWaiter& waiter : abandon(load)) {
    if (++waiter.misses == kMaxMisses) {
      refuse(waiter, why);
      continue;
    }
    names_.forget({waiter.tenant, name});
    enter(std::move(waiter), name, now);
  }
}

void AdapterBook::lease_lost(LeaseId lease, TimePoint now) {
  const auto found = std::ranges::find_if(
      loads_, [lease](const auto& entry) { return entry.second.lease == lease; });
  if (found == loads_.end()) return;
  AdapterLoad& load = found->second;
  if (load.is_loaded()) return evict(load, AdapterEviction::Revoked);
  load_again(load, {Errc::LeaseRevoked, fmt::format("lease {} was revoked", to_string(lease))},
             now);
}

// -------------------------------------------------------------------------------------- eviction

void AdapterBook::evict(AdapterLoad& load, AdapterEviction why) {
  if (why != AdapterEviction::Revoked) actions_.push_back(CloseAdapterLease{*load.lease});
  actions_.push_back(ReportAdapterEvicted{load.use, why});
  loads_.erase(AdapterLoadId(load.id));
}

AdapterLoad* AdapterBook::victim_for(const std::optional<TenantId>& owner, RoomIn room,
                                     const std::vector<LeaseId>* among) {
  std::vector<AdapterLoad*> loads;
  std::vector<EvictionCandidate> candidates;
  for (auto& [id, each] : loads_) {
    if (among != nullptr && (!each.lease || std::ranges::find(*among, *each.lease) == among->end()))
      continue;
    loads.push_back(&each);
    candidates.push_back(each.candidate());
  }
  const auto victim = adapter_victim(candidates, owner, room);
  return victim ? loads[*victim] : nullptr;
}

/// The broker refused a lease for lack of room. Memory of an evicted adapter reaches the broker's
/// pool only after its fence, so that the next refusals do not mean that another one has to leave.
void AdapterBook::make_room(AdapterLoad& load, const Error& why, TimePoint now) {
  const RoomIn room = why.code == Errc::QuotaAdapters ? RoomIn::Quota : RoomIn::Pool;
  const std::uint64_t wanted_bytes = room == RoomIn::Quota ? 1 : load.content->memory_bytes;
  const bool is_freeing = load.freed.bytes >= wanted_bytes && now < load.freed.at + kReclaimTime;
  AdapterLoad* victim = is_freeing ? nullptr : victim_for(load.adapter.owner, room);
  if (victim == nullptr && !is_freeing && room == RoomIn::Quota) return fail_load(load, why);
  if (victim == nullptr) {
    call_later(load, why, now);
    if (is_freeing) load.repeated.at = now + kFreedRetryDelay;
    return;
  }
  load.freed.bytes += victim->content->memory_bytes;
  load.freed.at = now;
  evict(*victim, AdapterEviction::Room);
  call(load);
}

/// The broker asks again while the memory of those that left is on its way.
void AdapterBook::yield(const wire::AdaptersYield& asked, TimePoint now) {
  if (now >= yielded_.at + kReclaimTime) yielded_ = {};
  while (yielded_.bytes < asked.size_bytes) {
    AdapterLoad* victim = victim_for(asked.tenant, RoomIn::Pool, &asked.leases);
    if (victim == nullptr) return;
    yielded_ = {.bytes = yielded_.bytes + victim->content->memory_bytes, .at = now};
    evict(*victim, AdapterEviction::Room);
  }
}

// ------------------------------------------------------------------------------------------ calls

/// Calls the broker with what the load needs next.
void AdapterBook::call(AdapterLoad& load) {
  load.repeated.at = kNoRetry;
  if (load.phase == Phase::Filling) {
    actions_.push_back(ConfirmAdapter{load.id, *load.lease});
  } else {
    actions_.push_back(OpenAdapterLease{.load = load.id,
                                        .owner = load.owner(),
                                        .name = load.adapter.name,
                                        .version = load.adapter.version,
                                        .content = *load.content});
  }
}

void AdapterBook::call_later(AdapterLoad& load, const Error& why, TimePoint now) {
  load.repeated.failure = why;
  load.repeated.at = next_attempt(why, now);
}

TimePoint AdapterBook::tick(TimePoint now) {
  for (const AdapterNames::Key& key : names_.take_due(now))
    actions_.push_back(ResolveAdapter{key.first, key.second});
  for (const auto& [waiter, why] : names_.take_expired(now)) refuse(waiter, why);
  TimePoint due = names_.next_due();
  for (auto next = loads_.begin(); next != loads_.end();) {
    AdapterLoad& load = (next++)->second;
    due = std::min(due, load.is_loaded() ? tick_loaded(load, now) : tick_loading(load, now));
  }
  return due;
}

TimePoint AdapterBook::tick_loaded(AdapterLoad& load, TimePoint now) {
  if (!load.is_idle()) load.last_used = now;
  if (load.phase != Phase::Draining) return kNoRetry;
  if (!load.is_idle()) return now + kDrainInterval;
  evict(load, load.drains_for);
  return kNoRetry;
}

TimePoint AdapterBook::tick_loading(AdapterLoad& load, TimePoint now) {
  if (!load.repeated.failure) return kNoRetry;
  if (now >= load.began + kAdapterTimeout) {
    fail_load(load, given_up(*load.repeated.failure));
    return kNoRetry;
  }
  if (now >= load.repeated.at) call(load);
  return std::min(load.repeated.at, load.began + kAdapterTimeout);
}

AdapterLoad* AdapterBook::find(AdapterLoadId id, AdapterLoad::Phase phase) {
  const auto found = loads_.find(id);
  return found == loads_.end() || found->second.phase != phase ? nullptr : &found->second;
}

/// The load of this version that new requests may use.
AdapterLoad* AdapterBook::find(const ResolvedAdapter& adapter) {
  for (auto& [id, load] : loads_) {
    const bool is_replaced =
        load.phase == Phase::Draining && load.drains_for == AdapterEviction::Replaced;
    if (load.adapter == adapter && !is_replaced) return &load;
  }
  return nullptr;
}

}  // namespace leasehold
