/// Sends a token to a tenant. Most tokens are written directly as a line, without building a tree
/// of JSON values.
#pragma once

#include "ipc/control/messages_tenant.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold {

void notify_token(control::Peer& peer, const wire::TokenEmitted& token);

}  // namespace leasehold
