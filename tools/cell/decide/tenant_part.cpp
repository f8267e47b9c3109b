#include "tools/cell/decide/tenant_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "common/expects.hpp"

namespace leasehold::cell {
namespace {

/// What the parts have that replace the one of `owner`.
Share replacements_of(const PartOwner& owner, const Ledger& ledger) {
  Share sum;
  for (const Part& part : ledger.parts)
    if (part.instead_of == owner) sum = sum + part.share;
  return sum;
}

}  // namespace

void TenantPart::joined(PartOwner owner) {
  fenced();
  owner_ = std::move(owner);
  is_due_ = !demand_.is_zero();
}

void TenantPart::fenced() {
  owner_.reset();
  set_limit({});
  may_run_ = recorded_ = {};
  replaced_.reset();
  is_certain_ = true;
  is_due_ = false;
  stage_ = Stage::Idle;
  next_.reset();
}

/// A write of the earlier agent may still reach etcd. The ledger then still holds at least what the
/// broker may run, because every write does.
void TenantPart::resumed(PartOwner owner, const BrokerLimit& limit, const Share& may_run) {
  expects(!caller_, "a part resumes between two calls");
  stage_ = Stage::Idle;
  next_.reset();
  owner_ = std::move(owner);
  limit_ = limit;
  may_run_ = recorded_ = greater(limit.share, may_run);
  is_certain_ = false;
  is_due_ = true;
}

void TenantPart::wants(const Share& demand) {
  if (demand == demand_) return;
  demand_ = demand;
  is_due_ = true;
}

void TenantPart::replaces(const HostName& host) {
  replaced_ = host;
  is_due_ = true;
}

void TenantPart::set_limit(const Share& share) {
  if (share != limit_.share) limit_ = {share, limit_.revision + 1};
}

/// A confirmation can only lower `may_run_`: the broker runs at most what it could run before.
void TenantPart::confirmed(std::uint64_t revision, const Share& may_run) {
  if (revision != limit_.revision) return;
  may_run_ = greater(limit_.share, smaller(may_run, may_run_));
  if (may_run_ == recorded_) return;
  const bool is_planned = stage_ == Stage::Write && next_.has_value();
  if (!is_planned || !plan_again()) is_due_ = true;
}

/// Replaces a write that was not sent. It compares what was read, so it need not be read again.
Result<void> TenantPart::plan_again() {
  stage_ = Stage::Idle;
  next_.reset();
  return decide();
}

// ---------------------------------------------------------------- calls

/// Reads the hosts of the last view, too. Most often these are all that have a part.
etcd::Transaction TenantPart::read_ledger() const {
  etcd::Transaction read = ledger_read(keys_, tenant_);
  read.success.emplace_back(etcd::Get{etcd::KeyRange::one(keys_.mail(owner_->host, tenant_))});
  etcd::Transaction members = members_read(keys_, view_);
  std::ranges::move(members.success, std::back_inserter(read.success));
  return read;
}

std::optional<etcd::Transaction> TenantPart::next_call() {
  if (!owner_ || caller_) return std::nullopt;
  if (stage_ == Stage::Idle && is_due_) {
    is_due_ = false;
    stage_ = Stage::ReadLedger;
    next_ = read_ledger();
  }
  if (!next_) return std::nullopt;
  caller_ = owner_;
  return std::exchange(next_, std::nullopt);
}

Result<void> TenantPart::replied(const etcd::TransactionReply& reply) {
  const std::optional<PartOwner> caller = std::exchange(caller_, std::nullopt);
  expects(caller.has_value(), "a reply follows a call");
  if (caller != owner_) return {};  // of an earlier membership, whose part is void
  switch (std::exchange(stage_, Stage::Idle)) {
    case Stage::Idle:
      break;
    case Stage::ReadLedger:
      return take_view(reply);
    case Stage::ReadMembers:
      view_.members = members_in(keys_, reply);
      return decide();
    case Stage::Write:
      finish_write(reply.succeeded);
  }
  return {};
}

void TenantPart::failed() {
  const std::optional<PartOwner> caller = std::exchange(caller_, std::nullopt);
  expects(caller.has_value(), "a failure follows a call");
  if (caller != owner_) return;
  if (std::exchange(stage_, Stage::Idle) == Stage::Write) distrust_write();
  is_due_ = true;
}

/// It is unknown whether the write was executed, so assume the smaller share.
void TenantPart::distrust_write() {
  recorded_ = smaller(recorded_, plan_.written);
  is_certain_ = false;
}

Result<void> TenantPart::take_view(const etcd::TransactionReply& reply) {
  const std::set<HostName> read = hosts_of(view_);
  view_ = TRY(view_of(reply));
  const auto& mail = reply.found.at(2);
  view_.mail = mail.empty() ? etcd::Revision() : mail.front().modified;
  view_.members = members_in(keys_, reply);
  if (std::ranges::includes(read, hosts_of(view_))) return decide();
  next_ = members_read(keys_, view_);
  stage_ = Stage::ReadMembers;
  return {};
}

// ---------------------------------------------------------------- the decision

/// Returns the parts of other hosts that count (see ledger.hpp). The write then requires that the
/// others do not count: the key of this host has another incarnation, or theirs has.
Ledger TenantPart::drop_void_parts(etcd::Transaction& write) const {
  Ledger others;
  for (const Part& part : view_.ledger.parts) {
    if (part.owner.host == owner_->host) continue;
    if (counts(part.owner, view_.members)) {
      others.parts.push_back(part);
    } else {
      write.conditions.push_back(
          etcd::Compare::not_created_at(keys_.host(part.owner.host), part.owner.incarnation));
    }
  }
  return others;
}

/// The shares of this host and of the others, in their order. All hosts compute the same division,
/// so it is made in the order of the owners. A part whose texts have moved demands nothing.
std::vector<Share> TenantPart::divide_among(const Ledger& others) const {
  std::vector<std::pair<PartOwner, Claim>> claims{{*owner_, {recorded_, demand()}}};
  const Part* const replaced = find_replaced(others);
  for (const Part& part : others.parts) {
    const bool has_moved = &part == replaced || !replacements_of(part.owner, others).is_zero();
    claims.push_back({part.owner, {part.share, has_moved ? Share() : part.demand}});
  }
  std::vector<std::size_t> order(claims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return claims[i].first; });
  std::vector<Claim> sorted;
  for (const std::size_t i : order) sorted.push_back(claims[i].second);
  const std::vector<Share> divided = divide(view_.policy.limits, sorted);
  std::vector<Share> shares(claims.size());
  for (std::size_t at = 0; at < order.size(); ++at) shares[order[at]] = divided[at];
  return shares;
}

/// The counting part that this host may replace, or replaces already. Null if there is none: a
/// replacement cannot be replaced itself.
const Part* TenantPart::find_replaced(const Ledger& others) const {
  const Part* const own = view_.ledger.find(*owner_);
  const auto earlier = own ? own->instead_of : std::nullopt;
  const auto is_replaced = [&](const Part& part) {
    if (part.instead_of) return false;
    return earlier ? part.owner == *earlier : part.owner.host == replaced_;
  };
  const auto found = std::ranges::find_if(others.parts, is_replaced);
  const bool is_target = !replacements_of(*owner_, others).is_zero();
  return is_target || found == others.parts.end() ? nullptr : &*found;
}

/// Beyond the free amounts, a replacement gets what other replacements leave of the replaced part.
/// This host returns what others have instead of it, because clients read those texts there.
void TenantPart::plan_share(const Ledger& others, const Share& divided) {
  const Share free = without(view_.policy.limits, counting_sum(others, view_.members));
  const Share lent = replacements_of(*owner_, others);
  const Share wanted = lent.is_zero() ? divided : smaller(divided, without(recorded_, lent));
  const Part* const replaced = find_replaced(others);
  Share most = free;
  if (replaced) most = free + without(replaced->share, replacements_of(replaced->owner, others));
  plan_.target = demand().is_zero() ? Share() : wanted;
  plan_.written = greater(may_run_, smaller(plan_.target, most));
  plan_.instead_of.reset();
  if (replaced && !plan_.written.fits(free)) plan_.instead_of = replaced->owner;
}

/// Mails hosts that have too much, if this one is short, hosts that have too little, if this one
/// lowers its part, and the host whose part this one replaces.
void TenantPart::add_mails(const Ledger& others, const std::vector<Share>& shares,
                           etcd::Transaction& write) const {
  const bool is_short = !demand().fits(plan_.written);
  const bool is_lowering = !recorded_.fits(plan_.written);
  for (std::size_t i = 0; i < others.parts.size(); ++i) {
    const Part& part = others.parts[i];
    const Share& share = shares[i + 1];
    const bool is_concerned = (is_short && !part.share.fits(share)) ||
                              (is_lowering && !share.fits(part.share)) ||
                              plan_.instead_of == part.owner;
    if (!is_concerned) continue;
    write.success.emplace_back(etcd::Put{keys_.mail(part.owner.host, tenant_),
                                         std::to_string(view_.policy_modified.value)});
  }
}

/// Returns nothing if the ledger needs no entry for this host.
std::optional<Part> TenantPart::new_part() const {
  const bool wants_some = !demand().is_zero();
  if (plan_.written.is_zero() && !wants_some) return std::nullopt;
  const Part* const earlier = view_.ledger.find(*owner_);
  Part part{.owner = *owner_,
            .share = plan_.written,
            .demand = demand(),
            .as_of = view_.policy_modified,
            .instead_of = plan_.instead_of};
  if (!may_run_.fits(view_.policy.limits) && earlier) part.as_of = earlier->as_of;
  return part;
}

Result<void> TenantPart::decide() {
  view_.members[owner_->host] = owner_->incarnation;
  etcd::Transaction write{
      .conditions = {etcd::Compare::modified_at(keys_.ledger(tenant_), view_.ledger_modified),
                     etcd::Compare::modified_at(keys_.tenant(tenant_), view_.policy_modified),
                     etcd::Compare::created_at(keys_.host(owner_->host), owner_->incarnation)},
      .success = {},
      .failure = {}};
  Ledger ledger = drop_void_parts(write);
  const std::vector<Share> shares = divide_among(ledger);
  plan_share(ledger, shares.front());
  set_limit(smaller(limit_.share, plan_.target));
  add_mails(ledger, shares, write);
  if (auto part = new_part()) ledger.parts.push_back(*std::move(part));
  if (ledger.parts.size() > Ledger::kMaxParts) {
    return fail(
        Errc::PoolExhausted,
        fmt::format("{} hosts have parts of tenant {}, which is the most; serve it on fewer "
                    "hosts",
                    Ledger::kMaxParts, tenant_.value));
  }
  const std::string mail_key = keys_.mail(owner_->host, tenant_);
  if (view_.mail.value > 0) {
    write.conditions.push_back(etcd::Compare::modified_at(mail_key, view_.mail));
    write.success.emplace_back(etcd::Delete{etcd::KeyRange::one(mail_key)});
  }
  std::ranges::sort(ledger.parts, {}, &Part::owner);
  // A broker's limit that was lowered is raised again only after a write, even if the ledger keeps
  // its content.
  const bool is_raised = smaller(plan_.target, plan_.written).fits(limit_.share);
  if (is_certain_ && is_raised && view_.mail.value == 0 && ledger == view_.ledger) {
    replaced_.reset();
    return {};
  }
  if (!ledger.parts.empty()) {
    write.success.emplace_back(etcd::Put{keys_.ledger(tenant_), text_of(ledger)});
  } else if (view_.ledger_modified.value > 0) {
    write.success.emplace_back(etcd::Delete{etcd::KeyRange::one(keys_.ledger(tenant_))});
  }
  next_ = std::move(write);
  stage_ = Stage::Write;
  return {};
}

void TenantPart::finish_write(bool has_succeeded) {
  if (!has_succeeded) {
    distrust_write();  // a proxy may have sent it twice
    is_due_ = true;
    return;
  }
  is_certain_ = true;
  replaced_.reset();
  recorded_ = plan_.written;
  set_limit(greater(limit_.share, smaller(plan_.target, recorded_)));
  may_run_ = greater(may_run_, limit_.share);
  ensures(may_run_.fits(recorded_), "the broker has at most what the ledger says");
}

}  // namespace leasehold::cell
