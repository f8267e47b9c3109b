// `brokerctl requests cancel`: after the worker has ended requests, the broker records an operator
// action for each of them.
#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/record.hpp"
#include "ipc/control/messages/json_fields.hpp"

namespace leasehold {

void decide_event(Decision& decision, const RequestsCancelled& cancelled) {
  for (const std::string& request : cancelled.requests) {
    record_operator_action(
        decision, {.uid = cancelled.uid,
                   .action = "cancel",
                   .object = to_sentence(fmt::format("request:{}@{}", request, cancelled.worker))});
  }
}

}  // namespace leasehold
