// No token of a cell's tenant is committed past the ceiling.
#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/judge.hpp"

namespace leasehold::simulation {

std::size_t Judge::ceiling_sent(TimePoint ceiling) {
  ceilings_.push_back(ceiling);
  return ceilings_.size() - 1;
}

void Judge::ceiling_applied(std::size_t number) {
  applied_ = std::max(applied_, number);
}

/// A ceiling that was sent after the applied one counts if it is higher, because its broker may
/// have raised deadlines and then died before it replied.
TimePoint Judge::highest_ceiling() const {
  TimePoint highest;
  for (std::size_t i = applied_; i < ceilings_.size(); ++i)
    highest = std::max(highest, ceilings_[i]);
  return highest;
}

/// A worker whose table no broker writes any more has the deadlines of the broker that died. No
/// process can lower them, and none has to: a host is expired only after the last ceiling that its
/// agent sent, and the next broker confirms no part before such a worker is quiet.
void Judge::orphan(Lease& lease) {
  if (!lease.orphaned) lease.abandoned_ceiling = ceiling_at_death_;
  lease.orphaned = true;
}

void Judge::check_ceiling(const Request& request, TimePoint decided_at) {
  if (cell_tenant_.empty() || request.tenant != cell_tenant_) return;
  const Lease& lease = at(request.lease);
  const TimePoint highest = lease.orphaned ? lease.abandoned_ceiling : highest_ceiling();
  if (decided_at < highest) return;
  violated(fmt::format("a token of {} was committed {} ms past the ceiling",
                       to_string(request.lease), (decided_at - highest).count() / 1'000'000));
}

}  // namespace leasehold::simulation
