/// The adapters of one worker: which versions are loaded or being loaded, who waits for them, and
/// which one leaves when memory or a quota is short.
///
///   use ─► resolve ─► Opening ──lease──► Filling ──filled──► Ready ──unloaded──► Draining
///
///   Opening             no room: another adapter leaves, or the load waits
///   Opening, Filling    replaced or failed: gone; its lease revoked: Opening again
///   Ready               replaced or removed: Draining; evicted while idle, or revoked: gone
///   Draining            idle, or revoked: gone; used after an unload: Ready again
///
/// Invariants: an adapter that a request holds is not evicted. A name and version is loaded at most
/// once. Each ticket is answered exactly once. A load that ends by an error gives its lease back. A
/// version that was replaced or removed is not given to a new request once the broker has said so.
///
/// The broker decides who may use an adapter, and counts quotas and memory; the book only reacts to
/// its answers. It waits at most kAdapterTimeout for memory or for a broker.
///
/// Pure: time is an argument, and decisions are AdapterActions. Threads: one (the engine's).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control/messages/adapters/adapters_yield.hpp"
#include "worker/adapter/adapter_load.hpp"

namespace leasehold {

class AdapterBook {
 public:
  /// How often one load may be repeated because its lease was revoked before it was ready.
  static constexpr std::uint32_t kMaxReloads = 8;
  /// How long memory of an evicted adapter may take to reach the broker's pool before another
  /// adapter is evicted.
  static constexpr Duration kReclaimTime = std::chrono::milliseconds(250);
  /// How often a Draining adapter is examined.
  static constexpr Duration kDrainInterval = std::chrono::milliseconds(20);

  // ---- callers

  /// Asks for the version that a new request of the tenant uses. An AnswerAdapterUse follows; at
  /// once if the version is loaded.
  AdapterTicket use(const TenantId& tenant, const std::string& name, TimePoint now);
  /// Lets the adapter leave once no request holds it. A new request may use it until then.
  void unload(const std::string& name);
  /// A text finds no memory: `size_bytes` of these leases leave while they are idle.
  void yield(const wire::AdaptersYield& asked, TimePoint now);
  /// The broker's registry changed: asks again for every name before it is used again.
  void changed();

  // ---- answers; those to a load that has ended are ignored, or undone

  void resolved(const AdapterNames::Key& key, const Result<ResolvedAdapter>& answer, TimePoint now);
  void file_opened(AdapterLoadId load, const Result<AdapterContent>& content);
  void lease_opened(AdapterLoadId load, const Result<LeaseId>& lease, TimePoint now);
  void copied(AdapterLoadId load, Result<std::shared_ptr<const AdapterMatrices>> matrices,
              TimePoint now);
  void confirmed(AdapterLoadId load, const Result<void>& answer, TimePoint now);

  // ---- between steps

  /// A lease was revoked. Does nothing for a lease of no load.
  void lease_lost(LeaseId lease, TimePoint now);
  /// Repeats calls, ends waits, and closes what drains. Returns when it should be called again;
  /// kNoRetry for not before another function.
  TimePoint tick(TimePoint now);

  std::vector<AdapterAction> take_actions() { return std::exchange(actions_, {}); }
  const std::map<AdapterLoadId, AdapterLoad>& loads() const { return loads_; }

 private:
  AdapterLoad* find(AdapterLoadId id, AdapterLoad::Phase phase);
  AdapterLoad* find(const ResolvedAdapter& adapter);
  void enter(AdapterWaiter waiter, const std::string& name, TimePoint now);
  void join(AdapterWaiter waiter, const ResolvedAdapter& adapter, TimePoint now);
  AdapterLoad& start(const ResolvedAdapter& adapter, TimePoint now);
  void hand_out(AdapterLoad& load, AdapterTicket ticket, TimePoint now);
  void become_ready(AdapterLoad& load, TimePoint now);
  void retire(const AdapterNames::Key& key, const Result<ResolvedAdapter>& answer, TimePoint now);
  void refuse(const AdapterWaiter& waiter, const Error& why);
  void fail_load(AdapterLoad& load, const Error& why);
  std::vector<AdapterWaiter> abandon(AdapterLoad& load);
  void load_again(AdapterLoad& load, const Error& why, TimePoint now);
  void resolve_again(AdapterLoad& load, const Error& why, TimePoint now);
  void make_room(AdapterLoad& load, const Error& why, TimePoint now);
  /// `among`: only these leases.
  AdapterLoad* victim_for(const std::optional<TenantId>& owner, RoomIn room,
                          const std::vector<LeaseId>* among = nullptr);
  void evict(AdapterLoad& load, AdapterEviction why);
  void call(AdapterLoad& load);
  void call_later(AdapterLoad& load, const Error& why, TimePoint now);
  TimePoint tick_loaded(AdapterLoad& load, TimePoint now);
  TimePoint tick_loading(AdapterLoad& load, TimePoint now);

  std::map<AdapterLoadId, AdapterLoad> loads_;
  AdapterNames names_;
  AdapterLoad::Freed yielded_;
  std::vector<AdapterAction> actions_;  // since the last `take_actions`
  std::uint64_t last_load_ = 0;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace leasehold
