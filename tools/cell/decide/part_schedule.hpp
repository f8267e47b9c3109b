/// When a host looks at its part of a tenant again, and when the tenant is due for a step without
/// any news. Between these times a tenant costs nothing.
///
/// Hosts that take a part of a ledger of many parts write at random times after a refusal, and
/// those that give some up write in the order of their parts, so that few writes are refused. A
/// host that many others ask waits until they have all asked, and then divides once. With one or
/// two hosts nothing waits.
///
/// Time is an argument, and so is chance: any random number. Threads: one.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.hpp"
#include "tools/cell/decide/tenant_demand.hpp"
#include "tools/cell/decide/tenant_part.hpp"

namespace leasehold::cell {

class PartSchedule {
 public:
  /// How often the hosts of a tenant, together, look for parts that have become void. A host whose
  /// part has just become too small looks sooner.
  static constexpr Duration kLookAgain = std::chrono::seconds(1);
  /// How soon steps that failed are tried again.
  static constexpr Duration kRetry = std::chrono::milliseconds(200);

  /// A worker of this host could use more of the part. True: the host looks at the part now. False:
  /// it did so less than PartWant::kPause ago, and for a text that `has_moved` here it does so
  /// again after the pause.
  bool wants_more(bool has_moved, TimePoint now);
  /// Another host wants some of the part: its mail has come.
  void wanted(const TenantPart& part, TimePoint now);
  /// The steps of the tenant have ended at `now`. `has_failed`: something remains to be done.
  void stepped(const TenantPart& part, bool has_failed, TimePoint now, std::uint64_t random);
  /// When the tenant needs a step. Nothing: not before there is news.
  std::optional<TimePoint> due_at(const TenantDemand& demand) const;
  /// A step begins. True if the part is looked at again in it.
  bool begin_step(TimePoint now);

 private:
  void look_at(TimePoint time);

  /// Mails of hosts that want some of the part.
  struct Burst {
    TimePoint since;  // its beginning, or the last look in it
    TimePoint newest;
    unsigned mails = 0;
  };

  std::optional<TimePoint> look_at_;
  TimePoint not_before_;  // after a refused write, if others want some
  std::optional<Burst> burst_;
  std::optional<TimePoint> retry_at_;
  unsigned looks_ = 0;                    // since the part has been short
  std::optional<TimePoint> followed_at_;  // when a request for more was followed
};

}  // namespace leasehold::cell
