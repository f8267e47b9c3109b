#include "broker/decide/lease/revoke_clock.hpp"

#include <utility>

namespace leasehold {
namespace {

std::int64_t& value_of(wire::RevokeClocks& clocks, RevokeClock clock) {
  switch (clock) {
    case RevokeClock::Refuse:
      return clocks.refuse_ns;
    case RevokeClock::Error:
      return clocks.error_ns;
    case RevokeClock::Quiet:
      return clocks.quiet_ns;
    case RevokeClock::Reuse:
      return clocks.reuse_ns;
  }
  std::unreachable();
}

}  // namespace

void note_latency(Decision& decision, LeaseRecord& record, RevokeClock clock, Duration since_flip) {
  std::int64_t& value_ns = value_of(record.clocks, clock);
  if (value_ns >= 0) return;
  value_ns = since_flip.count();
  if (!is_revocation(reason_of(record.lease))) return;
  decision.state.clocks[static_cast<std::size_t>(clock)].add(since_flip, decision.now);
}

}  // namespace leasehold
