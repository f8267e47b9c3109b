/// All messages between broker, workers, tenants and operators.
///
/// Each message is a struct with its method name. Its base Message<T> gives it `to_json()` and
/// `from_json()`. `from_json` treats its argument as input: a missing field, a wrong type or a
/// value out of range is BadRequest naming the field; unknown fields are ignored. A field whose
/// member is a std::optional may be missing, and an empty member is not written. All other fields
/// are required unless noted. Names in JSON are the member names. Ids travel as text (a lease as
/// "17.4", all others as a decimal number), times as boot-time nanoseconds, durations as
/// milliseconds with the unit in the name.
///
/// Calls to the broker that change state carry a `request_id`, except those of cell/cell.hpp,
/// `adapter.filled`, `adapter.close`, `lease.attach`, `lease.drained`, `lease.redeliver`,
/// `request.stop`, `step.watch`, `step.report` and `usage_record.report`, which may be repeated. A
/// repeated call with the same id and parameters gets the same reply; with other parameters it gets
/// RequestIdConflict. Retryable errors and the replies to `lease.renew`, `lease.hold` and
/// `worker.attach` are not cached: the broker decides these calls again.
#pragma once

#include "ipc/control/messages/adapters/adapters.hpp"
#include "ipc/control/messages/audit.hpp"
#include "ipc/control/messages/cell/cell.hpp"
#include "ipc/control/messages/common.hpp"
#include "ipc/control/messages/holder.hpp"
#include "ipc/control/messages/keys.hpp"
#include "ipc/control/messages/operator.hpp"
#include "ipc/control/messages/requests.hpp"
#include "ipc/control/messages/steps.hpp"
#include "ipc/control/messages/tenant.hpp"
#include "ipc/control/messages/views.hpp"
#include "ipc/control/messages/worker.hpp"
