/// The deciders by subject. Each changes the state and adds effects; none performs them.
///
/// A decider for a call returns the answer, nothing if a later event brings the answer, or an
/// error. If it returns an error, it has changed nothing.
#pragma once

#include <optional>

#include "broker/decide/decision.hpp"
#include "broker/decide/event.hpp"

namespace leasehold {

using CallResult = Result<std::optional<Answer>>;

// worker/liveness.cpp
void decide_event(Decision& decision, const PingAnswered& answered);

// tenant/admit.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::TenantAdmit& admit);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::TenantRemove& remove);
void decide_event(Decision& decision, const JournalWritten& written);

// tenant/cell.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::CellAttach& attach);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::CellCeiling& moved);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::CellAdmit& admit);

// tenant/keys.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::KeyCreate& create);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::KeyUpdate& update);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::KeyRevoke& revoke);
void decide_event(Decision& decision, const ClockSet& set);

// tenant/adapters.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterAdd& add);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterRemove& remove);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterLoad& load);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterUnload& unload);
void decide_event(Decision& decision, const AdapterOrderAnswered& answered);

// lease/adapter_leases.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterOpen& open);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterFilled& filled);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterClose& close);

// tenant/quota.cpp
void decide_event(Decision& decision, const UsageReported& reported);
void decide_event(Decision& decision, const ServedReported& reported);

// worker/worker_sleep.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::WorkerSleep& sleep);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::WorkerWake& wake_up);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::WeightsSleep& sleep);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::WeightsWake& wake_up);

// worker/worker_service.cpp
void decide_event(Decision& decision, const WeightsReported& reported);

// lease/revoke_command.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseRevoke& revoke);

// memory/drain.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseDrain& drain);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseDrained& drained);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseUndrain& undrain);
void decide_event(Decision& decision, const DrainReported& reported);

// lease/acquire.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseAcquire& acquire);

// lease/grant.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseAttach& attach);
void decide_event(Decision& decision, const GrantAnswered& answered);

// lease/succession.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseReplace& replace);

// memory/swap.cpp
/// Takes swap extents for the lease; the call is answered once the worker has mapped them. Errors:
/// PermissionDenied unless the lease's worker calls; PoolExhausted without --swap-capacity, beyond
/// the share, or when the worker has no descriptors left.
CallResult grow_swap(Decision& decision, const Caller& caller, LeaseRecord& record,
                     std::uint32_t extents);

// tenant/publish.cpp
CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::PrefixPublish& publish);
void decide_event(Decision& decision, const FillAnswered& answered);

// tenant/requests.cpp
void decide_event(Decision& decision, const RequestsCancelled& cancelled);

// worker/worker_replace.cpp
CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::WorkerReplace& replace);

// lease/holder.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseRenew& renew);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseRelease& release);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseHold& hold);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseQuery& query);
void decide_event(Decision& decision, const ConnectionClosed& closed);
void decide_event(Decision& decision, const HolderExited& exited);
void decide_event(Decision& decision, const PreviousHolderExited& exited);

// lease/resize.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseGrow& grow);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseShrink& shrink);
void decide_event(Decision& decision, const ReclaimAnswered& answered);

// worker/worker_life.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::WorkerAttach& attach);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::WorkerReady& ready);
void decide_event(Decision& decision, const WorkerExited& exited);
void decide_event(Decision& decision, const WorkerReported& reported);
void mark_worker_lost(Decision& decision, Worker& worker);
/// Sends whether the worker admits requests. Call it when the worker becomes ready and after each
/// change. A worker that is not ready gets the message when it becomes ready.
void send_admission(Decision& decision, const Worker& worker);

// worker/reattach.cpp
CallResult resume_worker(Decision& decision, const Caller& caller,
                         const wire::WorkerAttach& attach);
CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::LeaseRedeliver& redeliver);
/// Errors: PermissionDenied (the worker is not resuming), UnknownLease, StaleGeneration.
Result<void> check_redelivery(State& state, ConnectionId connection,
                              const wire::LeaseRedeliver& redeliver);
/// Called when the worker has redelivered everything that it still maps. Frees the other extents.
void reconcile_resumed(Decision& decision, Worker& worker);
/// Treats workers that did not resume within the reattach grace as lost.
void expire_grace(Decision& decision);

// worker/weights.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::WeightsOpen& open);
CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::WeightsPublish& publish);
void decide_event(Decision& decision, const RegionLent& lent);
void decide_event(Decision& decision, const RegionSealed& sealed);
void decide_event(Decision& decision, const RegionScrubbed& scrubbed);

// memory/quarantine.cpp
CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::QuarantineRelease& release);

// lease/steps.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::StepWatch& watch);
CallResult decide_call(Decision& decision, const Caller& caller, const wire::WorkerStep& step);
/// Makes a worker that became ready sample its steps, if an operator watches.
void start_sampling(Decision& decision, const Worker& worker);
/// Ends the watch of this connection, if it has one. Workers stop sampling when no watcher is left.
void end_step_watch(Decision& decision, ConnectionId connection);

// tenant/usage.cpp
CallResult decide_call(Decision& decision, const Caller& caller, const wire::UsageReport& report);

// worker/tamper.cpp
void decide_event(Decision& decision, const TableTampered& tampered);

// lease/fence.cpp
void decide_event(Decision& decision, const WordsStored& stored);
void decide_event(Decision& decision, const QuietObserved& observed);
void decide_event(Decision& decision, const UnmapAnswered& answered);
void decide_event(Decision& decision, const ExtentsVerified& verified);

// memory/device.cpp
void decide_event(Decision& decision, const SettleAnswered& answered);
void decide_event(Decision& decision, const ExtentsCleared& cleared);
void decide_event(Decision& decision, const DeviceLost& lost);
void decide_event(Decision& decision, const DeviceRecovered& recovered);

// timers.cpp
void decide_event(Decision& decision, const BrokerStalled& stalled);
void decide_event(Decision& decision, const Tick& tick);
void decide_event(Decision& decision, const ConfigReloaded& reloaded);
void decide_event(Decision& decision, const Shutdown& shutdown);
void apply_deadlines(Decision& decision);

}  // namespace leasehold
