#include "broker/server/effects.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "broker/decide/merged_batch.hpp"
#include "common/fault_point.hpp"
#include "common/machine/process.hpp"

namespace leasehold {

ServerEffects::ServerEffects(EffectDependencies dependencies, std::function<void(Event)> post)
    : dependencies_(dependencies),
      post_(std::move(post)),
      worker_calls_({.io = dependencies_.io,
                     .links = dependencies_.links,
                     .timeout = dependencies_.call_timeout,
                     .post = post_}),
      returns_(dependencies_.io, dependencies_.host,
               {.unmap = [this](const effect::SendUnmap& effect) { worker_calls_.unmap(effect); },
                .on_verified = [this](ExtentsVerified verified) { post_(std::move(verified)); }}) {}

LentMemory& ServerEffects::memory_of(MemoryPool pool) {
  if (pool == MemoryPool::Swap) return dependencies_.host;
  return dependencies_.memory;
}

void ServerEffects::perform(const effect::CreateExtents& effect) {
  for (const ExtentId extent : effect.extents) {
    const auto created = dependencies_.host.create_extent(
        extent, effect.size_bytes,
        effect.may_stay_idle ? ExtentPages::Absent : ExtentPages::ClearedIfReady);
    if (!created) refused_extents_.emplace(extent, created.error());
  }
}

void ServerEffects::identify_memory(journal::Batch& batch) const {
  for (journal::Row& row : batch.rows) {
    auto* extent = std::get_if<journal::ExtentRow>(&row);
    if (extent == nullptr || extent->state != ExtentState::Owned) continue;
    const MemoryIdentity identity = dependencies_.host.identity(extent->id);
    extent->device = identity.device;
    extent->inode = identity.inode;
  }
}

/// The caller gets the journal's error also if the memory could not be created.
void ServerEffects::note_refused(const journal::Batch& batch, const Error& why) {
  for (const journal::Row& row : batch.rows) {
    const auto* extent = std::get_if<journal::ExtentRow>(&row);
    if (extent && extent->state == ExtentState::Owned)
      refused_extents_.insert_or_assign(extent->id, why);
    const auto* lease = std::get_if<journal::LeaseRow>(&row);
    const bool engine = lease != nullptr && lease->scope == wire::LeaseScope::Engine;
    if (engine && lease->state == LeaseState::Live) unwritten_weights_.emplace(lease->id, why);
  }
}

template <class Id>
std::optional<Error> ServerEffects::take_refusal(std::map<Id, Error>& refused, Id id) {
  const auto node = refused.extract(id);
  return node.empty() ? std::nullopt : std::optional(node.mapped());
}

/// With `when_idle` the batch is written from the event loop, after the current effects, so that
/// what a large revocation does next does not wait until its records are written.
void ServerEffects::perform(const effect::Journal& effect) {
  if (!effect.when_idle) return write(effect.batch);
  boost::asio::post(dependencies_.io, [this, batch = effect.batch] { write(batch); });
}

bool ServerEffects::write_together(const std::vector<const journal::Batch*>& batches) {
  journal::Batch batch = journal::merged(batches);
  identify_memory(batch);
  if (!dependencies_.journal.write_together(batch)) return false;
  fault_point(FaultSite::BrokerJournalWritten);
  note_written();
  return true;
}

void ServerEffects::note_written() {
  if (std::exchange(unwritten_, std::nullopt)) spdlog::info("the journal is written again");
}

void ServerEffects::write(journal::Batch batch) {
  identify_memory(batch);
  const auto written = dependencies_.journal.write(batch);
  fault_point(FaultSite::BrokerJournalWritten);
  if (written) return note_written();
  const bool was_written = !unwritten_.has_value();
  unwritten_ = written.error();
  ++journal_faults_;
  if (was_written) {  // log only the first failure: on a full disk, tenants could cause any number
    spdlog::error("could not journal a decision rows={} grants={} error={} detail=\"{}\"",
                  batch.rows.size(), batch.has_grants, name(written.error().code),
                  written.error().detail);
  }
  if (batch.has_grants) note_refused(batch, written.error());
}

void ServerEffects::perform(const effect::PublishGrant& effect) {
  fault_point(FaultSite::BrokerGrantDecided);
  dependencies_.table.grant(effect.lease, effect.deadline);
  fault_point(FaultSite::BrokerGrantPublished);
}

void ServerEffects::perform(const effect::StoreWords& effect) {
  std::vector<LeaseTable::LeaseChange> changes;
  for (const auto& change : effect.changes)
    changes.push_back({change.lease, change.to, change.reason});
  const bool fences = changes.front().to == LeaseState::Fenced;
  if (fences) fault_point(FaultSite::BrokerFenceDecided);
  const TimePoint stored_at = clock_.now();  // the time of the store, not of the decision
  dependencies_.table.store_words(effect.worker, changes, stored_at);
  if (fences) return;
  fault_point(FaultSite::BrokerRevokePublished);
  WordsStored stored{.leases = {}, .at = stored_at};
  for (const auto& change : effect.changes) stored.leases.push_back(change.lease);
  post_(std::move(stored));
}

void ServerEffects::perform(const effect::SetDeadline& effect) {
  dependencies_.table.set_deadline(effect.lease, effect.deadline);
}

void ServerEffects::perform(const effect::SetDrainDeadline& effect) {
  dependencies_.table.set_drain_deadline(effect.lease, effect.deadline);
  worker_calls_.drain(effect);
}

void ServerEffects::perform(const effect::BindWorker& effect) {
  dependencies_.links.bind(effect.connection, effect.worker);
  const WorkerLink& link = *dependencies_.links.find(effect.worker);
  keep(kept::pidfd(effect.worker.value), link.pidfd);
  keep(kept::wakeup_fd(effect.worker.value), link.wakeup_fd);
  if (const auto segment = link.segment.writer_fd())
    keep(kept::segment(effect.worker.value), *segment);
  spdlog::info("worker attached attachment={}", effect.worker.value);
}

void ServerEffects::perform(const effect::ResumeWorker& effect) {
  dependencies_.links.resume(effect.connection, effect.worker);
  spdlog::info("worker resumed after a broker restart attachment={}", effect.worker.value);
}

void ServerEffects::perform(const effect::ForgetWorker& effect) {
  for (const auto& name : {kept::pidfd(effect.worker.value), kept::wakeup_fd(effect.worker.value),
                           kept::segment(effect.worker.value), kept::spill(effect.worker.value)}) {
    dependencies_.fd_store.remove(name);
  }
  dependencies_.spill.forget(effect.worker);
  dependencies_.quiet.forget(effect.worker);
  dependencies_.links.forget(effect.worker);
  spdlog::info("worker exited attachment={}", effect.worker.value);
}

void ServerEffects::perform(const effect::SendGrant& effect) {
  const wire::LeaseGrant& grant = effect.grant;
  std::optional<Error> refused;
  for (const ExtentId extent : grant.extents) {
    if (auto why = take_refusal(refused_extents_, extent)) refused = std::move(why);
  }
  if (refused) return post_(GrantAnswered{grant.lease, grant.extents, refused, false});
  memory_of(grant.pool).lend(grant.extents, grant.extent_size_bytes, [this, effect](auto fds) {
    send_grant(effect, std::move(fds));
  });
}

/// Sends the grant, unless the lease was revoked while its device memory was allocated: the worker
/// may already have unmapped the lease and would then map this memory.
void ServerEffects::send_grant(const effect::SendGrant& effect, Result<std::vector<UniqueFd>> fds) {
  const wire::LeaseGrant& grant = effect.grant;
  const LeaseWord word = dependencies_.table.word(grant.lease.slot);
  const bool live = word.generation() == grant.lease.generation && word.state() == LeaseState::Live;
  if (fds && !live) {
    fds =
        fail(Errc::LeaseRevoked, fmt::format("lease {} was revoked before its memory was allocated",
                                             to_string(grant.lease)));
  }
  if (!fds) {
    return post_(GrantAnswered{grant.lease, grant.extents, std::move(fds).error(), false});
  }
  worker_calls_.grant(effect, *std::move(fds));
}

void ServerEffects::perform(const effect::SendUnmap& effect) {
  returns_.unmap(effect);
}

void ServerEffects::perform(const effect::BeginQuietWatch& effect) {
  const WorkerLink* link = dependencies_.links.find(effect.worker);
  if (link == nullptr) return;  // the worker's exit event is already queued
  dependencies_.quiet.watch(link->segment, {effect.worker, effect.scope, effect.leases});
}

void ServerEffects::perform(const effect::PunchExtents& effect) {
  memory_of(effect.pool).punch(effect.extents);
}

void ServerEffects::perform(const effect::ClearExtents& effect) {
  dependencies_.memory.clear(effect.extents,
                             [this](ExtentsCleared cleared) { post_(std::move(cleared)); });
}

void ServerEffects::perform(const effect::VerifyExtents& effect) {
  returns_.verify(effect, memory_of(effect.pool));
}

void ServerEffects::perform(const effect::CreateRegion& effect) {
  if (auto refused = take_refusal(unwritten_weights_, effect.lease)) {
    return post_(RegionLent{effect.lease, std::move(refused)});
  }
  dependencies_.memory.create_region(
      effect.region, effect.size_bytes,
      [this, lease = effect.lease](auto refused) { post_(RegionLent{lease, std::move(refused)}); });
}

void ServerEffects::perform(const effect::ShareRegion& effect) {
  post_(RegionLent{effect.lease, take_refusal(unwritten_weights_, effect.lease)});
}

void ServerEffects::perform(const effect::SealRegion& effect) {
  const auto sealed = dependencies_.memory.seal_region(effect.region);
  const UniqueFd* fd = sealed ? dependencies_.memory.keepable_fd(effect.region) : nullptr;
  if (fd != nullptr) keep(kept::weights(effect.region.value), *fd);
  post_(RegionSealed{effect.region, error_of(sealed)});
}

void ServerEffects::perform(const effect::ScrubRegion& effect) {
  dependencies_.memory.scrub_region(effect.region,
                                    [this, id = effect.region](std::uint64_t allocated) {
                                      post_(RegionScrubbed{id, allocated});
                                    });
}

void ServerEffects::perform(const effect::CloseRegion& effect) {
  dependencies_.fd_store.remove(kept::weights(effect.region.value));
  dependencies_.memory.close_region(effect.region);
}

void ServerEffects::perform(const effect::KillWorker& effect) {
  const UniqueFd* pidfd = dependencies_.links.pidfd(effect.worker);
  if (pidfd == nullptr) return;
  const auto killed = signal_pidfd(*pidfd, SIGKILL);
  if (killed) return;
  spdlog::error(
      "could not kill a worker; its leases are over, and it ends when it runs again and finds its "
      "connection closed; end it by hand, or give the broker CAP_KILL attachment={} detail=\"{}\"",
      effect.worker.value, killed.error().detail);
  const WorkerLink* link = dependencies_.links.find(effect.worker);
  if (link != nullptr && link->peer != nullptr) link->peer->close_now();
}

void ServerEffects::perform(const effect::Reply& effect) {
  dependencies_.replies.answer(effect.call, effect.answer);
}

void ServerEffects::perform(const effect::ReplyWhenJournaled& effect) {
  post_(JournalWritten{effect.call, effect.answer, unwritten_});
}

void ServerEffects::perform(const effect::AppendEvent& effect) {
  logger_.log(effect.event, effect.at);
  logger_.log_file(dependencies_.log.append(effect.event, effect.at));
}

void ServerEffects::perform(const effect::Warn& effect) {
  spdlog::warn("{}", effect.message);
}

/// A descriptor that cannot be stored is lost at the next restart; the broker serves without it.
void ServerEffects::keep(const std::string& name, const UniqueFd& fd) {
  const auto kept = dependencies_.fd_store.keep(name, fd);
  if (!kept) {
    spdlog::warn("could not store a descriptor name={} detail=\"{}\"", name, kept.error().detail);
  }
}

}  // namespace leasehold
