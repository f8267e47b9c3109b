// No token of a cell's tenant is committed past the ceiling.
#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/judge.hpp"

namespace leasehold::simulation {

std::size_t Judge::ceiling_sent(TimePoint ceiling) {
  ceilings_.push_back({.at = ceiling, .replaced_at = {}});
  return ceilings_.size() - 1;
}

void Judge::ceiling_applied(std::size_t number) {
  for (; applied_ < number; ++applied_) ceilings_[applied_].replaced_at = machine_->clock.now();
}

/// A ceiling that was sent after the applied one counts if it is higher, because its broker may
/// have raised deadlines and then died before it replied.
TimePoint Judge::highest_ceiling() const {
  TimePoint highest;
  for (std::size_t i = applied_; i < ceilings_.size(); ++i)
    highest = std::max(highest, ceilings_[i].at);
  return highest;
}

/// A lower ceiling may be applied after a worker has read the clock for a commit. Then the ceilings
/// that it replaced count for this commit, which the revocation stops unless it has begun.
TimePoint Judge::highest_replaced_since(TimePoint begin) const {
  TimePoint highest;
  for (std::size_t i = applied_; i > 0 && ceilings_[i - 1].replaced_at >= begin; --i)
    highest = std::max(highest, ceilings_[i - 1].at);
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
  if (!is_of_cell(request.tenant)) return;
  const Lease& lease = at(request.lease);
  const TimePoint highest = std::max(lease.orphaned ? lease.abandoned_ceiling : highest_ceiling(),
                                     highest_replaced_since(decided_at));
  if (decided_at < highest) return;
  violated(fmt::format("a token of {} was committed {} ms past the ceiling",
                       to_string(request.lease), (decided_at - highest).count() / 1'000'000));
}

}  // namespace leasehold::simulation
