/// Reads the messages of a chat from a body. Pure.
#pragma once

#include <vector>

#include "ipc/control/messages_tenant.hpp"
#include "worker/http/body_field.hpp"

namespace leasehold::http {

/// `messages` may be null: it is missing then. Errors: BadRequest, also for parts that are not
/// text.
Result<std::vector<wire::ChatMessage>> read_chat_messages(const OrderedJson* messages);

}  // namespace leasehold::http
