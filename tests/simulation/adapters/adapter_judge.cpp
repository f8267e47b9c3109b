#include "tests/simulation/adapters/adapter_judge.hpp"

#include <fmt/format.h>

namespace leasehold::simulation {

void AdapterJudge::granted(const wire::LeaseGrant& grant, const Process& worker) {
  Watched& lease = leases_[grant.lease];
  lease.version = {grant.adapter->value, grant.adapter_version};
  lease.worker = &worker;
  lease.extents.insert(grant.extents.begin(), grant.extents.end());
  for (const ExtentId extent : grant.extents) {
    if (contents_.contains(extent))
      violated(
          fmt::format("extent {} was granted to an adapter with an earlier content", extent.value));
  }
  extents_.insert(grant.extents.begin(), grant.extents.end());
}

std::uint64_t AdapterJudge::content_in(ExtentId extent) const {
  const auto found = contents_.find(extent);
  return found == contents_.end() ? 0 : found->second;
}

void AdapterJudge::filled(LeaseId id, std::uint64_t content) {
  Watched& lease = leases_.at(id);
  for (const ExtentId extent : lease.extents) {
    if (content_in(extent) != content)
      violated(fmt::format("{} was reported as filled, but extent {} is not", to_string(id),
                           extent.value));
  }
  const auto [known, fresh] = versions_.try_emplace(lease.version, content);
  if (known->second != content)
    violated(fmt::format("version {} of adapter {} was filled with two contents",
                         lease.version.second, lease.version.first));
  if (lease.is_filled) return;  // reported again
  const bool is_first = loaded_.emplace(lease.worker, content).second;
  coverage_->happened(is_first ? AdapterEvent::Loaded : AdapterEvent::LoadedAgain);
  lease.is_filled = true;
}

void AdapterJudge::read(const Reading& reading, std::span<const ExtentId> extents) const {
  const Watched& lease = leases_.at(reading.lease);
  if (!lease.is_filled)
    violated(fmt::format("a text read {}, which is not filled", to_string(reading.lease)));
  if (extents.size() != lease.extents.size())
    violated(fmt::format("a text read a part of {}", to_string(reading.lease)));
  for (const ExtentId extent : extents) {
    if (content_in(extent) == reading.content) continue;
    violated(fmt::format("a text under content {} read content {} in {}", reading.content,
                         content_in(extent), to_string(reading.lease)));
  }
  const std::string& owner = disk_->owner_of(reading.content);
  if (!owner.empty() && owner != reading.tenant)
    violated(
        fmt::format("a text of tenant {} read an adapter of tenant {}", reading.tenant, owner));
}

void AdapterJudge::closes(LeaseId lease) const {
  if (leases_.at(lease).texts != 0)
    violated(fmt::format("{} was closed while a text used its adapter", to_string(lease)));
}

void AdapterJudge::publishes(std::span<const ExtentId> extents) {
  for (const ExtentId extent : extents) published_[extent] = kTorn;
}

void AdapterJudge::published(std::span<const ExtentId> extents) {
  for (const ExtentId extent : extents) published_[extent] = 0;
}

void AdapterJudge::published(const Version& version, std::uint64_t content,
                             std::span<const ExtentId> extents) {
  const auto known = versions_.find(version);
  if (known == versions_.end() || known->second != content)
    violated(
        fmt::format("a text was published under version {} of adapter {}, but content {} "
                    "computed it",
                    version.second, version.first, content));
  for (const ExtentId extent : extents) published_[extent] = content;
  coverage_->happened(AdapterEvent::Published);
}

void AdapterJudge::read_published(LeaseId lease, std::uint64_t content,
                                  std::span<const ExtentId> extents) const {
  for (const ExtentId extent : extents) {
    const auto found = published_.find(extent);
    if (found == published_.end() || found->second == kTorn)
      violated(fmt::format("a text read {}, which holds no published text", to_string(lease)));
    if (found->second != content)
      violated(fmt::format("a text under content {} read a published text of content {} in {}",
                           content, found->second, to_string(lease)));
  }
}

void AdapterJudge::died(const Process& worker) {
  for (auto& [id, lease] : leases_) {
    if (lease.worker != &worker) continue;
    lease.texts = 0;
    bool any = false;
    for (const ExtentId extent : lease.extents) any = any || contents_.contains(extent);
    if (any && !lease.is_filled) coverage_->happened(AdapterEvent::WorkerDiedWhileFilling);
  }
}

void AdapterJudge::broker_died() {
  for (auto& [id, lease] : leases_) {
    if (!lease.is_filled) lease.is_unfilled_at_restart = true;
  }
}

void AdapterJudge::returned(LeaseId id, bool is_live) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  Watched& lease = found->second;
  if (is_live && lease.is_unfilled_at_restart)
    violated(fmt::format("{} was not filled when its broker died, and goes on", to_string(id)));
  if (lease.is_unfilled_at_restart) coverage_->happened(AdapterEvent::UnfilledEnded);
  if (is_live) coverage_->happened(AdapterEvent::Redelivered);
  lease.is_unfilled_at_restart = false;
}

}  // namespace leasehold::simulation
