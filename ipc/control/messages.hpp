/// Everything broker, workers, tenants and operators say to each other, in one place.
///
/// Each message is a struct with its method name, `to_json()` and `from_json()`. `from_json` treats
/// its argument as input: a missing field, a wrong type or a value out of range is BadRequest
/// naming the field; unknown fields are ignored. A member that is a std::optional may be missing,
/// and is left out when empty; every other must be there. Names in JSON are the member names. Ids
/// travel as text (a lease "17.4", all others a decimal number), times as boot-time nanoseconds,
/// durations as milliseconds with the unit in the name.
///
/// Every call that changes something carries `request_id`; the same id with the same parameters
/// gives the same answer, with other parameters RequestIdConflict.
#pragma once

#include "ipc/control/messages_common.hpp"
#include "ipc/control/messages_holder.hpp"
#include "ipc/control/messages_operator.hpp"
#include "ipc/control/messages_tenant.hpp"
#include "ipc/control/messages_views.hpp"
#include "ipc/control/messages_worker.hpp"
