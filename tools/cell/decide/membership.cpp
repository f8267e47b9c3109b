#include "tools/cell/decide/membership.hpp"

#include <algorithm>
#include <utility>

#include "common/expects.hpp"

namespace leasehold::cell {
namespace {

TimePoint ceiling_of(const SentBeat& beat) {
  return beat.ttl == Duration::zero() ? kNoCeiling : beat.sent + beat.ttl - kCeilingMargin;
}

/// A TTL of zero has no end.
bool is_shorter(Duration ttl, Duration than) {
  return ttl != Duration::zero() && (than == Duration::zero() || ttl < than);
}

}  // namespace

void Membership::resume(SavedMembership saved) {
  expects(!is_member() && sent_.empty(), "a fresh membership resumes");
  incarnation_ = saved.incarnation;
  modified_ = saved.modified;
  ceiling_ = saved.ceiling;
  sent_ = std::move(saved.sent);
}

BeatId Membership::next_beat(BeatId fresh) const {
  return sent_.size() < kMaxSent ? fresh : sent_.back().beat;
}

Result<etcd::Transaction> Membership::next_call(const HostRecord& record) const {
  const std::string key = keys_.host(host_);
  std::string text = TRY(text_of(record));
  const auto condition =
      is_member() ? etcd::Compare::modified_at(key, modified_) : etcd::Compare::absent(key);
  return etcd::Transaction{.conditions = {condition},
                           .success = {etcd::Put{key, std::move(text)},
                                       etcd::Get{etcd::KeyRange::one(keys_.wanted(host_))}},
                           .failure = {etcd::Get{etcd::KeyRange::one(key)}}};
}

Duration Membership::next_ttl(Duration wanted, TimePoint now) const {
  if (!is_member() || wanted == Duration::zero()) return wanted;
  TimePoint latest = ceiling_;
  for (const SentBeat& beat : sent_) latest = std::max(latest, ceiling_of(beat));
  if (latest == kNoCeiling) return wanted;
  return std::max(wanted, latest + kCeilingMargin - now);
}

Duration Membership::time_to_beat(Duration ttl, TimePoint now) const {
  const TimePoint sent = ceiling_ + kCeilingMargin - ttl;
  return std::clamp(sent + ttl / 3 - now, Duration::zero(), ttl / 3);
}

/// From now on others may see this beat and count from it. So a shorter TTL applies at once.
/// A repeated number counts from when it was first sent, with the shorter TTL.
void Membership::sent(const HostRecord& record, TimePoint now) {
  const bool is_repeated = !sent_.empty() && sent_.back().beat == record.beat;
  if (!is_repeated) {
    expects(sent_.size() < kMaxSent, "no beat is forgotten");
    sent_.push_back({record.beat, now, record.ttl()});
  } else if (is_shorter(record.ttl(), sent_.back().ttl)) {
    sent_.back().ttl = record.ttl();
  }
  if (is_member()) ceiling_ = std::min(ceiling_, ceiling_of(sent_.back()));
}

/// The newest beat that arrived decides. The key has changed since the others were sent, so etcd
/// refuses them if they arrive.
void Membership::confirm(std::size_t index) {
  ceiling_ = ceiling_of(sent_[index]);
  sent_.clear();
}

Result<MembershipChange> Membership::replied(const etcd::TransactionReply& reply) {
  expects(!sent_.empty(), "a reply follows a call");
  if (reply.found.size() != 1)
    return fail(Errc::MalformedMessage, "etcd's reply to a beat has not one list; check etcd");
  return reply.succeeded ? accepted(reply) : refused(reply);
}

MembershipChange Membership::accepted(const etcd::TransactionReply& reply) {
  const bool has_joined = !is_member();
  if (has_joined) incarnation_ = reply.revision;
  modified_ = reply.revision;
  confirm(sent_.size() - 1);
  wanted_ = WantedHost{};
  const auto& wanted = reply.found.front();
  if (!wanted.empty()) wanted_ = read_wanted(wanted.front().key, wanted.front().value);
  return has_joined ? MembershipChange::Joined : MembershipChange::Renewed;
}

/// The refusal shows the key as it is.
MembershipChange Membership::refused(const etcd::TransactionReply& reply) {
  const auto& found = reply.found.front();
  const auto own = found.empty() ? sent_.end() : find_sent(found.front());
  const bool is_same = !found.empty() && (!is_member() || found.front().created == incarnation_);
  if (own != sent_.end() && is_same) {
    const bool has_joined = !is_member();
    incarnation_ = found.front().created;
    modified_ = found.front().modified;
    confirm(static_cast<std::size_t>(own - sent_.begin()));
    return has_joined ? MembershipChange::Joined : MembershipChange::Renewed;
  }
  if (!is_member()) return MembershipChange::NameInUse;
  incarnation_.reset();
  ceiling_ = {};
  sent_.clear();
  return MembershipChange::Fenced;
}

/// A value that is not a record was not written by this process.
std::vector<SentBeat>::iterator Membership::find_sent(const etcd::KeyValue& entry) {
  const auto record = read_host(entry.key, entry.value);
  return record ? std::ranges::find(sent_, record->beat, &SentBeat::beat) : sent_.end();
}

std::optional<PartOwner> Membership::owner() const {
  if (!is_member()) return std::nullopt;
  return PartOwner{host_, *incarnation_};
}

std::optional<SavedMembership> Membership::saved() const {
  if (!is_member()) return std::nullopt;
  return SavedMembership{
      .incarnation = *incarnation_, .modified = modified_, .ceiling = ceiling_, .sent = sent_};
}

}  // namespace leasehold::cell
