#include "worker/serve/unread_output.hpp"

#include <fmt/format.h>

namespace leasehold {

std::optional<Error> UnreadOutput::excess(const TenantId& tenant,
                                          std::size_t connection_bytes) const {
  if (connection_bytes > kMaxUnreadOutputBytesPerConnection) {
    return Error{Errc::QueueFull,
                 fmt::format("the client has left {} bytes unread, at most {} are "
                             "kept; read faster",
                             connection_bytes, kMaxUnreadOutputBytesPerConnection)};
  }
  const ResourceShare share = shares_.owner_share(tenant);
  if (may_take_more(share)) return std::nullopt;
  return Error{Errc::QueueFull,
               fmt::format("tenant {} has left {} bytes unread, its share of {} with {} in use; "
                           "read faster",
                           tenant.value, share.held, share.capacity, share.taken)};
}

}  // namespace leasehold
