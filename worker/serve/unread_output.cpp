#include "worker/serve/unread_output.hpp"

#include <fmt/format.h>

#include "common/fair_shares.hpp"

namespace leasehold {

std::shared_ptr<control::QueueMeter> UnreadOutput::meter_of(const TenantId& tenant) {
  auto& meter = by_tenant_[tenant];
  if (!meter) meter = std::make_shared<control::QueueMeter>(0, total_);
  return meter;
}

std::optional<Error> UnreadOutput::excess(const TenantId& tenant,
                                          std::size_t connection_bytes) const {
  if (connection_bytes > kMaxUnreadOutputBytesPerConnection) {
    return Error{Errc::QueueFull,
                 fmt::format("the client has left {} bytes unread, at most {} are "
                             "kept; read faster",
                             connection_bytes, kMaxUnreadOutputBytesPerConnection)};
  }
  const auto found = by_tenant_.find(tenant);
  const ResourceShare share{.held = found == by_tenant_.end() ? 0 : found->second->queued_bytes,
                            .taken = total_->queued_bytes,
                            .capacity = kMaxUnreadOutputBytes};
  if (may_take_more(share)) return std::nullopt;
  return Error{Errc::QueueFull,
               fmt::format("tenant {} has left {} bytes unread, its share of {} with {} in use; "
                           "read faster",
                           tenant.value, share.held, share.capacity, share.taken)};
}

}  // namespace leasehold
