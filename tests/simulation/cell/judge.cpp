#include "tests/simulation/cell/judge.hpp"

#include <fmt/format.h>

#include "tools/cell/decide/division.hpp"
#include "tools/cell/decide/ledger.hpp"

namespace leasehold::cell::simulation {

void Judge::broken(const std::string& what) const {
  std::string members;
  for (const auto& [host, incarnation] : members_)
    members += fmt::format(" {}={}", host.value, incarnation.value);
  throw Violation{fmt::format("after {:.3f} s: {}; members{}; ledger {}",
                              static_cast<double>(network_.now().boottime_ns) / 1e9, what, members,
                              text_of(ledger_))};
}

void Judge::read() {
  seen_ = network_.etcd().revision();
  ledger_ = {};
  for (const auto& entry :
       network_.etcd().read(etcd::KeyRange::one(terms_.keys.ledger(terms_.tenant)))) {
    auto read = read_ledger(entry.key, entry.value);
    if (!read) broken(read.error().detail);
    ledger_ = *std::move(read);
  }
  members_.clear();
  for (const etcd::KeyValue& entry : network_.etcd().read(terms_.keys.hosts()))
    members_.emplace(*terms_.keys.host_in(entry.key), entry.created);
}

void Judge::check_revision() {
  if (network_.etcd().revision() == seen_) return;
  read();
  const Share sum = counting_sum(ledger_, members_);
  if (!sum.fits(terms_.limits))
    broken(fmt::format("the counting parts are {}, and the limits are {}", to_string(sum),
                       to_string(terms_.limits)));
}

void Judge::check_running() const {
  Share sum;
  for (const auto& host : hosts_) {
    const Share running = host->may_run();
    if (running.is_zero()) continue;
    sum = sum + running;
    if (is_revoked_)
      broken(fmt::format("{} may run {} after the revocation has ended", host->name().value,
                         to_string(running)));
    const auto owner = host->served_as();
    const Part* part = owner ? ledger_.find(*owner) : nullptr;
    if (!part || !counts(*owner, members_))
      broken(
          fmt::format("{} may run {} under a void part", host->name().value, to_string(running)));
    if (!running.fits(part->share))
      broken(fmt::format("{} may run {}, and its part is {}", host->name().value,
                         to_string(running), to_string(part->share)));
  }
  if (!sum.fits(terms_.limits))
    broken(fmt::format("all hosts may run {}, and the limits are {}", to_string(sum),
                       to_string(terms_.limits)));
}

void Judge::check_end() const {
  Share demand;
  Share running;
  for (const auto& host : hosts_) {
    if (!host->is_member()) broken(host->name().value + " has not joined again");
    demand = demand + host->demand();
    running = running + host->may_run();
  }
  const Share due = is_revoked_ ? Share() : smaller(demand, terms_.limits);
  if (!due.fits(running))
    broken(fmt::format("all hosts want {} and may run {}", to_string(demand), to_string(running)));
  network_.count(Counted::Settled);
}

}  // namespace leasehold::cell::simulation
