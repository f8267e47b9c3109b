#include "tests/checks/soak/judge.hpp"

#include <fmt/format.h>

#include "tests/checks/soak/judge_checks.hpp"

namespace leasehold::soak {

void Finding::wrong(std::string what) {
  if (wrong_++ == 0) first_ = std::move(what);
}

demo::Check Finding::check(std::uint64_t at_least) const {
  demo::Check check{.promise = promise_,
                    .ok = wrong_ == 0 && checked_ >= at_least,
                    .seen = fmt::format("{} {}", checked_, unit_)};
  if (wrong_ > 0) check.seen += fmt::format("; {} wrong, the first: {}", wrong_, first_);
  if (checked_ < at_least) check.seen += ", too few to check";
  return check;
}

std::vector<demo::Check> judge(const History& history) {
  Case all{.history = history};
  for (const BrokerInstance& broker : history.brokers) {
    all.instances.push_back(lease_traces(broker));
  }
  std::vector<demo::Check> checks;
  judge_leases(all, checks);
  judge_holders(all, checks);
  judge_sharing(all, checks);
  judge_memory(all, checks);
  return checks;
}

}  // namespace leasehold::soak
