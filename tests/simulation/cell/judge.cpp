#include "tests/simulation/cell/judge.hpp"

#include <fmt/format.h>

#include <map>

namespace leasehold::cell::simulation {
namespace {

/// What the amounts of parts are together, by this rule: a part and those instead of it, while both
/// count, are as much as the greater of them. Written again here, so that an error in the hosts'
/// own sum is found.
class Sum {
 public:
  Sum(const Ledger& ledger, const Incarnations& members) : ledger_(ledger), members_(members) {}

  void add(const Part& part, const Share& amount) {
    if (!counts(part.owner, members_)) return;
    const bool is_replacement =
        part.instead_of && counts(*part.instead_of, members_) && ledger_.find(*part.instead_of);
    auto& [own, others] = groups_[is_replacement ? *part.instead_of : part.owner];
    Share& side = is_replacement ? others : own;
    side = side + amount;
  }
  Share total() const {
    Share sum;
    for (const auto& [owner, group] : groups_) sum = sum + greater(group.first, group.second);
    return sum;
  }

 private:
  const Ledger& ledger_;
  const Incarnations& members_;
  std::map<PartOwner, std::pair<Share, Share>> groups_;
};

Share amounts_of_requests(const Share& share) {
  return {.concurrent = share.concurrent, .blocks = share.blocks};
}

}  // namespace

void Judge::broken(const std::string& what) const {
  std::string text = fmt::format("after {:.3f} s: {}; members",
                                 static_cast<double>(network_.now().boottime_ns) / 1e9, what);
  for (const auto& [host, incarnation] : members_)
    text += fmt::format(" {}={}", host.value, incarnation.value);
  for (const TenantRecord& record : tenants_)
    text += fmt::format("; ledger {}", text_of(record.ledger));
  throw Violation{text};
}

void Judge::read_members() {
  members_.clear();
  for (const etcd::KeyValue& entry : network_.etcd().read(terms_.keys.hosts()))
    members_.emplace(*terms_.keys.host_in(entry.key), entry.created);
}

void Judge::read_ledger_of(std::size_t tenant) {
  TenantRecord& record = tenants_[tenant];
  const auto found =
      network_.etcd().read(etcd::KeyRange::one(terms_.keys.ledger(terms_.tenants[tenant])));
  const etcd::Revision modified = found.empty() ? etcd::Revision() : found.front().modified;
  if (modified == record.ledger_modified && modified.value > 0) return;
  record = {.ledger_modified = modified, .ledger = {}};
  if (found.empty()) return;
  auto read = read_ledger(found.front().key, found.front().value);
  if (!read) broken(read.error().detail);
  record.ledger = *std::move(read);
  network_.trace(
      fmt::format("ledger of {}: {}", terms_.tenants[tenant].value, found.front().value));
  for (const Part& part : record.ledger.parts)
    network_.count(Counted::Replacements, part.instead_of.has_value());
}

void Judge::check_revision() {
  if (network_.etcd().revision() == seen_) return;
  seen_ = network_.etcd().revision();
  read_members();
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    read_ledger_of(i);
    check_law(tenants_[i]);
  }
}

void Judge::check_law(const TenantRecord& record) const {
  Sum sum(record.ledger, members_);
  for (const Part& part : record.ledger.parts) sum.add(part, part.share);
  if (!sum.total().fits(terms_.limits))
    broken(fmt::format("the counting parts are {}, and the limits are {}", to_string(sum.total()),
                       to_string(terms_.limits)));
}

void Judge::check_running() {
  for (std::size_t i = 0; i < tenants_.size(); ++i) check_tenant(i);
}

void Judge::check_tenant(std::size_t tenant) {
  running_.clear();
  for (const auto& host : hosts_) host->worker().add_running(tenant, running_);
  if (running_.empty()) return;
  const Ledger& ledger = tenants_[tenant].ledger;
  Sum sum(ledger, members_);
  Share computed;
  for (const Running& each : running_) {
    const std::string_view host = each.owner.host.value;
    if (tenant == 0 && revocation_ == Revocation::Ended)
      broken(
          fmt::format("{} may run {} after the revocation has ended", host, to_string(each.share)));
    const Part* const part = ledger.find(each.owner);
    if (!part || !counts(each.owner, members_))
      broken(fmt::format("{} may run {} under a void part of incarnation {}", host,
                         to_string(each.share), each.owner.incarnation.value));
    if (!each.share.fits(part->share))
      broken(fmt::format("{} may run {}, and its part is {}", host, to_string(each.share),
                         to_string(part->share)));
    sum.add(*part, each.share);
    computed = computed + each.share;
  }
  const Share limits = amounts_of_requests(terms_.limits);
  if (!sum.total().fits(limits) || !computed.fits(limits + limits))
    broken(fmt::format("all hosts may run {}, and the limits are {}", to_string(computed),
                       to_string(terms_.limits)));
}

void Judge::committed(std::size_t tenant, const PartOwner& owner) {
  network_.count(Counted::Commits);
  const bool is_void = !counts(owner, members_) || !tenants_[tenant].ledger.find(owner);
  if (is_void)
    broken(fmt::format("{} commits a token under a void part of incarnation {}", owner.host.value,
                       owner.incarnation.value));
  if (tenant == 0 && revocation_ == Revocation::Ended)
    broken(owner.host.value + " commits a token after the revocation has ended");
}

void Judge::delivered(std::uint32_t expected, std::uint32_t position) const {
  if (position != expected)
    broken(fmt::format("a client reads position {} of a text instead of {}", position, expected));
}

void Judge::refused(std::size_t tenant) const {
  if (tenant != 0 || revocation_ == Revocation::None)
    broken(terms_.tenants[tenant].value + " is refused, and was not revoked");
}

}  // namespace leasehold::cell::simulation
