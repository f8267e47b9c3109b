/// The deciders, by subject. Each changes the state and writes down effects; none acts.
///
/// A decider for a call returns the answer, or nothing when the answer comes with a later event, or
/// an error; with an error it has changed nothing.
#pragma once

#include <optional>

#include "broker/decide/decision.hpp"
#include "broker/decide/event.hpp"

namespace leasehold {

using Outcome = Result<std::optional<Answer>>;

// decide/liveness.cpp
void decide_event(Decision& decision, const PingAnswered& answered);

// decide/policy.cpp
Outcome decide_call(Decision& decision, const Caller& caller, const wire::TenantAdmit& admit);
void decide_event(Decision& decision, const JournalWritten& written);
Outcome decide_call(Decision& decision, const Caller& caller, const wire::LeaseRevoke& revoke);
Outcome decide_call(Decision& decision, const Caller& caller, const wire::LeaseDrain& drain);

// decide/grant.cpp
Outcome decide_call(Decision& decision, const Caller& caller, const wire::LeaseAcquire& acquire);
Outcome decide_call(Decision& decision, const Caller& caller, const wire::LeaseAttach& attach);
void decide_event(Decision& decision, const GrantAnswered& answered);

// decide/hold.cpp
Outcome decide_call(Decision& decision, const Caller& caller, const wire::LeaseRenew& renew);
Outcome decide_call(Decision& decision, const Caller& caller, const wire::LeaseRelease& release);
Outcome decide_call(Decision& decision, const Caller& caller, const wire::LeaseHold& hold);
void decide_event(Decision& decision, const ConnectionClosed& closed);
void decide_event(Decision& decision, const HolderExited& exited);
void decide_event(Decision& decision, const PreviousHolderExited& exited);

// decide/resize.cpp
Outcome decide_call(Decision& decision, const Caller& caller, const wire::LeaseGrow& grow);
Outcome decide_call(Decision& decision, const Caller& caller, const wire::LeaseShrink& shrink);
void decide_event(Decision& decision, const ReclaimAnswered& answered);

// decide/worker_life.cpp
Outcome decide_call(Decision& decision, const Caller& caller, const wire::WorkerAttach& attach);
Outcome decide_call(Decision& decision, const Caller& caller, const wire::WorkerReady& ready);
void decide_event(Decision& decision, const WorkerExited& exited);
void decide_event(Decision& decision, const WorkerReported& reported);
void lose_worker(Decision& decision, Worker& worker);

// decide/reattach.cpp
Outcome resume_worker(Decision& decision, const Caller& caller, const wire::WorkerAttach& attach);
Outcome decide_call(Decision& decision, const Caller& caller,
                    const wire::LeaseRedeliver& redeliver);
/// Errors: PermissionDenied (no resume under way), UnknownLease, StaleGeneration.
Result<void> check_redelivery(State& state, ConnectionId connection,
                              const wire::LeaseRedeliver& redeliver);
/// The worker says that it has delivered all it still maps: the rest is not mapped any more.
void settle_resumed(Decision& decision, Worker& worker);
/// Workers that did not come back in time are lost for good.
void end_grace(Decision& decision);

// decide/weights.cpp
Outcome decide_call(Decision& decision, const Caller& caller, const wire::WeightsOpen& open);
Outcome decide_call(Decision& decision, const Caller& caller, const wire::WeightsPublish& publish);
void decide_event(Decision& decision, const RegionLent& lent);
void decide_event(Decision& decision, const RegionSealed& sealed);
void decide_event(Decision& decision, const RegionScrubbed& scrubbed);

// decide/quarantine.cpp
Outcome decide_call(Decision& decision, const Caller& caller, const wire::QuarantineRelease& clear);

// decide/tamper.cpp
void decide_event(Decision& decision, const TableTampered& tampered);

// decide/fence.cpp
void decide_event(Decision& decision, const WordsStored& lowered);
void decide_event(Decision& decision, const QuietObserved& observed);
void decide_event(Decision& decision, const UnmapAnswered& answered);
void decide_event(Decision& decision, const ExtentsVerified& verified);

// decide/device.cpp
void decide_event(Decision& decision, const SettleAnswered& answered);
void decide_event(Decision& decision, const ExtentsCleared& cleared);
void decide_event(Decision& decision, const DeviceLost& lost);
void decide_event(Decision& decision, const DeviceRecovered& back);

// decide/timers.cpp
void decide_event(Decision& decision, const BrokerStalled& stood);
void decide_event(Decision& decision, const Tick& tick);
void decide_event(Decision& decision, const Shutdown& shutdown);
void honour_deadlines(Decision& decision);

}  // namespace leasehold
