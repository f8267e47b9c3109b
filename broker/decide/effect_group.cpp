#include "broker/decide/effect_group.hpp"

namespace leasehold {
namespace {

/// The leases about which the effect stores or sends something.
std::vector<LeaseId> leases_of(const Effect& effect) {
  std::vector<LeaseId> leases;
  if (const auto* stored = std::get_if<effect::StoreWords>(&effect))
    for (const auto& change : stored->changes) leases.push_back(change.lease);
  if (const auto* watch = std::get_if<effect::BeginQuietWatch>(&effect)) leases = watch->leases;
  if (const auto* grant = std::get_if<effect::PublishGrant>(&effect)) leases = {grant->lease};
  if (const auto* grant = std::get_if<effect::SendGrant>(&effect)) leases = {grant->grant.lease};
  if (const auto* deadline = std::get_if<effect::SetDeadline>(&effect)) leases = {deadline->lease};
  if (const auto* drain = std::get_if<effect::SetDrainDeadline>(&effect)) leases = {drain->lease};
  return leases;
}

}  // namespace

bool EffectGroup::has_rows(const Effect& effect) {
  const auto* journal = std::get_if<effect::Journal>(&effect);
  return journal != nullptr && !journal->when_idle;
}

bool EffectGroup::is_creation(const Effect& effect) {
  return std::holds_alternative<effect::CreateExtents>(effect);
}

bool EffectGroup::binds_worker(const Effect& effect) {
  return std::holds_alternative<effect::BindWorker>(effect) ||
         std::holds_alternative<effect::ResumeWorker>(effect);
}

/// A settle call and the end of a worker are not urgent: they wait for rows that were decided
/// before, which each decision would have written before them by itself, too.
bool EffectGroup::is_urgent(const Effect& effect) {
  const auto* stored = std::get_if<effect::StoreWords>(&effect);
  return (stored != nullptr && stored->changes.front().to == LeaseState::Revoked) ||
         std::holds_alternative<effect::BeginQuietWatch>(effect);
}

void EffectGroup::note_leases(const Effect& effect) {
  for (const LeaseId lease : leases_of(effect)) leases_.insert(lease);
}

bool EffectGroup::follows_waiting(const Effect& effect) const {
  if (leases_.empty()) return false;
  return std::ranges::any_of(leases_of(effect),
                             [this](LeaseId lease) { return leases_.contains(lease); });
}

}  // namespace leasehold
