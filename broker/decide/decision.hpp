/// A decision under construction: the state it changes and the effects it adds.
///
/// Nothing here knows sockets, descriptors or clocks. Threads: one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "broker/books/state.hpp"
#include "broker/decide/effect.hpp"

namespace leasehold {

/// The objects that a decision changed. Their journal rows are created when the decision is
/// complete.
struct Touched {
  std::vector<LeaseId> leases;
  std::vector<ExtentId> extents;
  std::vector<AttachmentId> workers;
  std::vector<RegionId> regions;
  std::vector<TenantId> tenants;
  std::vector<ApiKeyId> api_keys;
  std::vector<AdapterName> adapters;
  /// Tenants whose quotas must be settled again: a worker reported usage, or a limit of a key or
  /// the day changed.
  std::vector<TenantId> usage;
  std::vector<TenantId> counted;  ///< Tenants whose tokens of the day were counted.
  /// Extents whose memory must be created before the journal is written.
  std::vector<ExtentId> taken;
  std::vector<ExtentId> taken_idle;  ///< As `taken`; see effect::CreateExtents::may_stay_idle.
  bool shape = false;                ///< The extent size was chosen.
  std::vector<journal::OperatorActionRow> operator_actions;
  std::vector<journal::UsageRow> usage_records;
  std::vector<journal::RevocationRow> revocations;
  /// Leases with memory of their own that were closed.
  std::vector<std::pair<LeaseId, TenantId>> closed;
  bool durable = false;  ///< The decision must survive a power cut.
};

class Decision {
 public:
  Decision(State& the_state, TimePoint the_now) : state(the_state), now(the_now) {}

  State& state;
  const TimePoint now;

  Touched touched;
  /// A worker became ready or a retention ended, so waiting acquires must be decided again.
  bool waits_may_end = false;

  void touch(LeaseId lease) { touched.leases.push_back(lease); }
  void touch(ExtentId extent) { touched.extents.push_back(extent); }
  void touch(AttachmentId worker) { touched.workers.push_back(worker); }
  void touch(RegionId region) { touched.regions.push_back(region); }

  void add(Effect effect) { effects_.push_back(std::move(effect)); }
  void record(events::Event event) { add(effect::AppendEvent{std::move(event), now}); }
  void warn(std::string message) { add(effect::Warn{std::move(message)}); }

  /// Answers the call and all calls with the same request id that wait for it.
  void reply(CallId call, const Result<Answer>& answer) {
    if (call == kInternalCall) return;
    for (const CallId waiting : state.requests.finish(call, answer)) {
      add(effect::Reply{waiting, answer});
    }
  }

  /// Adds a row to the journal, with the current time.
  void record_operator_action(journal::OperatorActionRow row) {
    row.at_boottime_ns = now.boottime_ns;
    touched.operator_actions.push_back(std::move(row));
  }

  std::vector<Effect>& effects() { return effects_; }
  std::vector<Effect> take_effects() { return std::move(effects_); }

 private:
  std::vector<Effect> effects_;
};

}  // namespace leasehold
