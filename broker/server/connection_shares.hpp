/// Which connection makes room for a new one, so that no user locks the others out. Pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>

#include "broker/books/ids.hpp"

namespace leasehold {

struct HeldConnection {
  ConnectionId id;
  uid_t uid = 0;
  bool is_kept = false;  ///< Holds a lease, or is an operator's or a worker's.
};

/// The oldest connection that is not kept, of the user with the most connections; nothing unless
/// that user keeps at least as many as the newcomer's user will have.
std::optional<ConnectionId> connection_to_close(std::span<const HeldConnection> held,
                                                uid_t newcomer);

}  // namespace leasehold
