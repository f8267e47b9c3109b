#include "tools/cell/decide/tenant_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/expects.hpp"

namespace leasehold::cell {

void TenantPart::joined(PartOwner owner) {
  fenced();
  owner_ = std::move(owner);
  is_due_ = !demand_.is_zero();
}

void TenantPart::fenced() {
  owner_.reset();
  set_limit({});
  may_run_ = recorded_ = {};
  moved_ = {};
  writes_ = {};
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
  writes_ = {.are_known = false, .compared = {}, .refusals = 0};
  is_due_ = true;
}

/// While this host has all, the others need not know how much of it is used. One that wants some
/// sends a mail.
void TenantPart::wants(const Share& demand) {
  if (demand == demand_) return;
  const bool has_all = !limits().is_zero() && limits().fits(limit_.share);
  const bool begins_or_ends = demand.is_zero() || demand_.is_zero();
  demand_ = demand;
  if (!has_all || begins_or_ends) is_due_ = true;
}

void TenantPart::replaces(const HostName& host) {
  moved_.from = host;
  is_due_ = true;
}

std::size_t TenantPart::parts_before() const {
  const auto is_before = [&](const Part& part) { return owner_ && part.owner < *owner_; };
  return static_cast<std::size_t>(std::ranges::count_if(view_.ledger.parts, is_before));
}

/// Limits of adapters are the tenant's on each host, so they are not divided.
void TenantPart::set_limit(const Share& share) {
  const AdapterLimits& adapters = owner_ ? view_.policy.adapters : limit_.adapters;
  if (share == limit_.share && adapters == limit_.adapters) return;
  limit_ = {.share = share, .adapters = adapters, .revision = limit_.revision + 1};
}

/// A confirmation can only lower `may_run_`: the broker runs at most what it could run before.
void TenantPart::confirmed(std::uint64_t revision, const Share& may_run) {
  if (revision != limit_.revision) return;
  may_run_ = greater(limit_.share, smaller(may_run, may_run_));
  if (may_run_ == recorded_) return;
  const bool is_planned = stage_ == Stage::Write && next_.has_value();
  if (is_planned) {  // It was not sent, and compares what was read, which need not be read again.
    stage_ = Stage::Idle;
    next_.reset();
  }
  if (!is_planned || !decide()) is_due_ = true;
}

// ---------------------------------------------------------------- calls

std::optional<etcd::Transaction> TenantPart::next_call() {
  if (!owner_ || caller_) return std::nullopt;
  if (next_ && stage_ == Stage::Write && !plan_.is_needed) end_without_write();
  if (stage_ == Stage::Idle && is_due_) {
    is_due_ = false;
    stage_ = Stage::ReadLedger;
    next_ = part_read(keys_, tenant_, owner_->host, view_);
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
      return decide_on_view();
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
  writes_.are_known = false;
  writes_.compared = view_.ledger_modified;
}

Result<void> TenantPart::take_view(const etcd::TransactionReply& reply) {
  const bool is_first = view_.policy_modified.value == 0;
  const std::set<HostName> known = hosts_of(view_);
  auto view = view_of(reply);
  // Until an operator has mended it, it is read again. A host without a part can wait for requests.
  if (!view) is_due_ = !demand_.is_zero() || !recorded_.is_zero();
  view_ = TRY(std::move(view));
  const auto& mail = reply.found.at(2);
  view_.mail = mail.empty() ? etcd::Revision() : mail.front().modified;
  view_.members = members_in(keys_, reply);
  if (!is_first) {
    assume_new_members(known);
    return decide_on_view();
  }
  if (view_.ledger.parts.empty()) return decide_on_view();
  next_ = members_read(keys_, view_);
  stage_ = Stage::ReadMembers;
  return {};
}

/// A part that the view before this one did not have was written since then, by a host that was a
/// member. If its host is lost meanwhile, the part counts until the next read, which includes the
/// host.
void TenantPart::assume_new_members(const std::set<HostName>& known) {
  for (const Part& part : view_.ledger.parts) {
    if (known.contains(part.owner.host)) continue;
    Incarnation& member = view_.members[part.owner.host];
    member = std::max(member, part.owner.incarnation);
  }
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

/// A write that compares an earlier revision of the ledger has been executed or never will be. If
/// no other one is on its way, only this host can lower what the ledger gives it.
void TenantPart::trust_view() {
  if (!writes_.are_known) {
    const auto compared = std::exchange(writes_.compared, view_.ledger_modified);
    writes_.are_known = compared && *compared != view_.ledger_modified;
  }
  if (!writes_.are_known) return;
  const Part* const own = view_.ledger.find(*owner_);
  recorded_ = greater(may_run_, own ? own->share : Share());
}

/// The shares of the others, in their order, then that of this host: zero if it demands nothing.
/// All hosts compute the same division, so it is made in the order of the owners. A part whose
/// texts have moved demands nothing.
std::vector<Share> TenantPart::divide_among(const Ledger& others) const {
  std::vector<std::pair<PartOwner, Claim>> claims;
  const Part* const replaced = find_replaced(others);
  for (const Part& part : others.parts) {
    const bool has_moved = &part == replaced || !replacements_of(part.owner, others).is_zero();
    claims.push_back({part.owner, {part.share, has_moved ? Share() : part.demand}});
  }
  if (!demand().is_zero()) claims.push_back({*owner_, {recorded_, demand()}});
  std::vector<std::size_t> order(claims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return claims[i].first; });
  std::vector<Claim> sorted;
  for (const std::size_t i : order) sorted.push_back(claims[i].second);
  const std::vector<Share> divided = divide(view_.policy.limits, sorted);
  std::vector<Share> shares(others.parts.size() + 1);
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
    return earlier ? part.owner == *earlier : part.owner == moved_.part;
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

/// Lowers the broker's limit to the target, or raises it to what the ledger has for sure.
void TenantPart::follow_plan() {
  const Share sure = writes_.are_known ? smaller(recorded_, plan_.written) : Share();
  set_limit(smaller(plan_.target, greater(limit_.share, sure)));
  may_run_ = greater(may_run_, limit_.share);
}

/// Gives the others what is free, one after the other, so that few hosts need a mail. This is safe
/// without their consent: a host runs at most what it has read. Parts that are counted together are
/// left to their own hosts.
void TenantPart::raise_others(Ledger& ledger, const Ledger& others,
                              const std::vector<Share>& shares) const {
  Share free = without(view_.policy.limits, counting_sum(ledger, view_.members));
  for (std::size_t i = 0; i < others.parts.size(); ++i) {
    Part& part = ledger.parts[i];
    if (is_paired(part, ledger)) continue;
    const Share more = smaller(without(shares[i], part.share), free);
    part.share = part.share + more;
    free = without(free, more);
  }
}

/// Mails hosts that have too much, if this one asks for more, hosts whose parts were raised, and
/// hosts whose parts are counted together with others, if this one changes. A short host that only
/// lowers its part has asked already.
void TenantPart::add_mails(const Ledger& ledger, const Ledger& others,
                           const std::vector<Share>& shares, etcd::Transaction& write) const {
  const bool is_short = !demand().fits(plan_.written);
  const bool is_lowering = !recorded_.fits(plan_.written);
  const Part* const earlier = view_.ledger.find(*owner_);
  const bool is_asking = is_short && (!is_lowering || !earlier || !demand().fits(earlier->demand));
  for (std::size_t i = 0; i < others.parts.size(); ++i) {
    const Part& part = ledger.parts[i];
    const bool is_raised = part.share != others.parts[i].share;
    const bool may_raise_itself =
        is_lowering && is_paired(part, ledger) && !shares[i].fits(part.share);
    const bool has_too_much = is_asking && !part.share.fits(shares[i]);
    const bool is_urgent = is_raised || may_raise_itself || plan_.instead_of == part.owner;
    if (!is_urgent && !has_too_much) continue;
    write.success.emplace_back(etcd::Put{keys_.mail(part.owner.host, tenant_),
                                         std::string(is_urgent ? kRaisedMail : kWantedMail)});
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

/// The parts of the others in their order, then that of this host, if it needs one.
Result<Ledger> TenantPart::plan_ledger(const Ledger& others) const {
  Ledger ledger = others;
  if (auto part = new_part()) ledger.parts.push_back(*std::move(part));
  if (ledger.parts.size() <= Ledger::kMaxParts) return ledger;
  return fail(Errc::PoolExhausted,
              fmt::format("{} hosts have parts of tenant {}, which is the most; serve it on fewer "
                          "hosts",
                          Ledger::kMaxParts, tenant_.value));
}

/// A mail is deleted by the next write. While this host has a part, a mail alone needs no write.
bool TenantPart::needs_write(const Ledger& ledger) const {
  const bool has_left_mail = view_.mail.value > 0 && ledger.find(*owner_) == nullptr;
  return !writes_.are_known || has_left_mail || ledger != view_.ledger;
}

void TenantPart::delete_mail(etcd::Transaction& write) const {
  if (view_.mail.value == 0) return;
  const std::string key = keys_.mail(owner_->host, tenant_);
  write.conditions.push_back(etcd::Compare::modified_at(key, view_.mail));
  write.success.emplace_back(etcd::Delete{etcd::KeyRange::one(key)});
}

void TenantPart::end_without_write() {
  stage_ = Stage::Idle;
  next_.reset();
  moved_.part.reset();
  writes_.refusals = 0;
}

/// A text that has moved is of the incarnation that its host has now. Should that host join again
/// later, its new part is not replaced.
Result<void> TenantPart::decide_on_view() {
  if (const auto host = std::exchange(moved_.from, std::nullopt)) {
    const auto is_its = [&](const Part& part) {
      return part.owner.host == *host && counts(part.owner, view_.members);
    };
    const auto found = std::ranges::find_if(view_.ledger.parts, is_its);
    if (found != view_.ledger.parts.end()) moved_.part = found->owner;
  }
  return decide();
}

Result<void> TenantPart::decide() {
  view_.members[owner_->host] = owner_->incarnation;
  trust_view();
  etcd::Transaction write{
      .conditions = {etcd::Compare::modified_at(keys_.ledger(tenant_), view_.ledger_modified),
                     etcd::Compare::modified_at(keys_.tenant(tenant_), view_.policy_modified),
                     etcd::Compare::created_at(keys_.host(owner_->host), owner_->incarnation)},
      .success = {},
      .failure = {}};
  const Ledger others = drop_void_parts(write);
  const std::vector<Share> shares = divide_among(others);
  plan_share(others, shares.back());
  follow_plan();
  Ledger ledger = TRY(plan_ledger(others));
  raise_others(ledger, others, shares);
  add_mails(ledger, others, shares, write);
  delete_mail(write);
  std::ranges::sort(ledger.parts, {}, &Part::owner);
  plan_.is_needed = needs_write(ledger);
  if (!ledger.parts.empty()) {
    write.success.emplace_back(etcd::Put{keys_.ledger(tenant_), text_of(ledger)});
  } else if (view_.ledger_modified.value > 0) {
    write.success.emplace_back(etcd::Delete{etcd::KeyRange::one(keys_.ledger(tenant_))});
  }
  next_ = std::move(write);
  stage_ = Stage::Write;
  const bool is_crowded = parts() > kFewParts;  // a write that waits would be refused
  if (!plan_.is_needed && (is_crowded || !awaits_confirmation())) end_without_write();
  return {};
}

void TenantPart::finish_write(bool has_succeeded) {
  if (!has_succeeded) {
    distrust_write();  // a proxy may have sent it twice
    ++writes_.refusals;
    return;
  }
  writes_ = {};
  moved_.part.reset();
  recorded_ = plan_.written;
  set_limit(greater(limit_.share, smaller(plan_.target, recorded_)));
  may_run_ = greater(may_run_, limit_.share);
  ensures(may_run_.fits(recorded_), "the broker has at most what the ledger says");
}

}  // namespace leasehold::cell
