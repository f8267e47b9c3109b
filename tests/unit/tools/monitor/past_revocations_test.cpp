#include "tools/monitor/past_revocations.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace leasehold::monitor;

namespace {

wire::LeaseView ended(std::uint32_t slot, std::uint64_t generation, RevokeReason reason,
                      std::int64_t at_ns) {
  wire::LeaseView lease{.lease = {slot, generation}, .state = LeaseState::Fenced, .reason = reason};
  lease.times.revoked_boottime_ns = at_ns;
  return lease;
}

std::vector<LeaseId> ids(const std::vector<wire::LeaseView>& leases) {
  std::vector<LeaseId> found;
  for (const wire::LeaseView& lease : leases) found.push_back(lease.lease);
  return found;
}

}  // namespace

TEST_CASE("past revocations: what an operator revoked stays when the slot is used again") {
  PastRevocations past;
  CHECK(past.update({ended(1, 1, RevokeReason::Operator, 10)}).empty());
  const std::vector<wire::LeaseView> next{ended(1, 2, RevokeReason::Released, 20),
                                          ended(2, 1, RevokeReason::WorkerHung, 30)};
  CHECK(ids(past.update(next)) == std::vector<LeaseId>{{1, 1}});
  CHECK(ids(past.update({})) == std::vector<LeaseId>{{2, 1}, {1, 1}});
}

TEST_CASE("past revocations: a lease that its tenant ended is not kept, and the newest 50 are") {
  PastRevocations past;
  (void)past.update({ended(1, 1, RevokeReason::Released, 10),
                     ended(2, 1, RevokeReason::HolderGone, 11),
                     ended(3, 1, RevokeReason::TtlExpired, 12)});
  CHECK(past.update({}).empty());
  for (std::uint32_t i = 0; i < 60; ++i)
    (void)past.update({ended(i, 1, RevokeReason::Operator, i + 1)});
  const auto kept = past.update({});
  CHECK(kept.size() == 50);
  CHECK(kept.front().lease == LeaseId{59, 1});
}
