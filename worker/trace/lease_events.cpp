#include "worker/trace/lease_events.hpp"

#include <utility>

namespace leasehold {

SpanEvent lease_revoked_event(LeaseId lease, std::string reason, std::string scope, TimePoint at) {
  return {.name = "lease.revoked",
          .at = at,
          .attributes = {{"leasehold.lease", to_string(lease)},
                         {"leasehold.revoke_reason", std::move(reason)},
                         {"leasehold.scope", std::move(scope)}}};
}

SpanEvent lease_rebound_event(LeaseId old_lease, LeaseId new_lease, std::uint32_t emitted_tokens,
                              TimePoint at) {
  return {.name = "lease.rebound",
          .at = at,
          .attributes = {{"leasehold.old_lease", to_string(old_lease)},
                         {"leasehold.new_lease", to_string(new_lease)},
                         {"leasehold.emitted_tokens", std::int64_t{emitted_tokens}}}};
}

}  // namespace leasehold
