#include "broker/memory/agent_memory.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace leasehold {
namespace {

/// The driver may still be tearing down an exited process, so its counters are polled for a second.
constexpr int kMaxPolls = 20;
constexpr auto kMemoryPollInterval = std::chrono::milliseconds(50);
/// Extents released between two polls. Another program's allocation can put at most this many in
/// doubt.
constexpr std::size_t kReleaseBatchSize = 16;

std::optional<Error> error_of(const Result<control::Payload>& reply) {
  return reply ? std::nullopt : std::optional(reply.error());
}

}  // namespace

/// Collects the results of one `lend`: each extent completes separately, and the caller gets one
/// reply.
struct AgentMemory::Lending {
  std::vector<ExtentId> extents;
  std::size_t size_bytes = 0;
  OnFds on_fds;
  std::vector<UniqueFd> fds;
  std::size_t missing = 0;
  std::optional<Error> refused;

  void complete(std::size_t index, Result<UniqueFd> fd) {
    if (fd) {
      fds[index] = *std::move(fd);
    } else if (!refused) {
      refused = fd.error();
    }
    if (--missing > 0) return;
    if (refused) return on_fds(std::unexpected(*refused));
    on_fds(std::move(fds));
  }
};

/// Collects the results of one `clear`.
struct AgentMemory::Clearing {
  ExtentsCleared cleared;
  OnCleared on_cleared;
  std::size_t missing = 0;

  void complete() {
    if (--missing == 0) on_cleared(std::move(cleared));
  }
};

/// Extents that are released together. The driver's counters are then polled, at most `kMaxPolls`
/// times, until they show the memory as free.
struct AgentMemory::ReleaseBatch {
  std::vector<ExtentId> released;
  std::vector<std::uint64_t> objects;
  std::shared_ptr<OnVerified> on_verified;
  std::uint64_t extent_bytes = 0;
  std::optional<std::uint64_t> bytes_before;  ///< Free plus allocated bytes before the release.
  int polls = 0;

  void end(std::size_t missing) {
    ExtentsVerified verified;
    for (std::size_t i = 0; i < released.size(); ++i) {
      const std::uint64_t allocated = i < missing ? extent_bytes : 0;
      verified.entries.push_back({released[i], allocated, allocated == 0});
    }
    (*on_verified)(std::move(verified));
  }
};

/// Batches that wait for release drop their object ids, too: the next agent numbers its objects
/// from 1, so an old id would name another object.
void AgentMemory::forget_all() {
  for (const ReleaseBatchPtr& batch : release_batches_) {
    batch->objects.clear();
    batch->bytes_before.reset();
  }
  extents_.clear();
  regions_.clear();
}

void AgentMemory::allocate(std::size_t size_bytes, OnObject on_object) {
  const wire::AgentAllocate ask{.size_bytes = size_bytes};
  agent_.call(ask.kMethod, ask.to_json(),
              [on_object = std::move(on_object)](Result<control::Payload> reply) mutable {
                const auto object = [&]() -> Result<Object> {
                  control::Payload payload = TRY(std::move(reply));
                  const auto made = TRY(wire::AgentAllocated::from_json(payload.body));
                  if (payload.fds.size() != 1) {
                    return fail(Errc::MalformedMessage, "the device agent sent no descriptor");
                  }
                  return Object{.id = made.object,
                                .size_bytes = made.size_bytes,
                                .fd = std::move(payload.fds[0])};
                };
                on_object(object());
              });
}

void AgentMemory::clear_object(std::uint64_t object, OnDone on_done) {
  agent_.call(wire::AgentObject::kClear, wire::AgentObject{.object = object}.to_json(),
              [on_done = std::move(on_done)](const Result<control::Payload>& reply) mutable {
                on_done(error_of(reply));
              });
}

/// Logs a failure, unless the agent has ended: then all its memory is released.
void AgentMemory::release_object(std::uint64_t object) {
  agent_.call(wire::AgentObject::kRelease, wire::AgentObject{.object = object}.to_json(),
              [object](const Result<control::Payload>& reply) {
                if (reply || reply.error().code == Errc::ConnectionLost) return;
                spdlog::error("device memory was not released object={} detail=\"{}\"", object,
                              reply.error().detail);
              });
}

void AgentMemory::lend(std::vector<ExtentId> extents, std::size_t size_bytes, OnFds on_fds) {
  const auto lending = std::make_shared<Lending>();
  lending->extents = std::move(extents);
  lending->size_bytes = size_bytes;
  lending->on_fds = std::move(on_fds);
  lending->fds.resize(lending->extents.size());
  lending->missing = lending->extents.size();
  if (lending->missing == 0) return lending->on_fds(std::vector<UniqueFd>{});
  for (std::size_t i = 0; i < lending->extents.size(); ++i) lend_one(lending, i);
}

/// Clears the extent first if a worker has unmapped it. An extent that its worker still maps keeps
/// its contents.
void AgentMemory::lend_one(const std::shared_ptr<Lending>& lending, std::size_t index) {
  const ExtentId id = lending->extents[index];
  const auto found = extents_.find(id);
  if (found == extents_.end()) return make_one(lending, index);
  const std::shared_ptr<UniqueFd> fd =
      std::make_shared<UniqueFd>(found->second.fd.duplicate().value_or(UniqueFd()));
  const auto complete = [lending, index, fd](std::optional<Error> refused) {
    if (!refused && !*fd) refused = Error{Errc::SystemError, "the descriptor limit is reached"};
    if (refused) return lending->complete(index, std::unexpected(*std::move(refused)));
    lending->complete(index, std::move(*fd));
  };
  if (!std::exchange(found->second.unmapped, false)) {
    return agent_.post([complete] { complete(std::nullopt); });
  }
  clear_object(found->second.id, complete);
}

void AgentMemory::make_one(const std::shared_ptr<Lending>& lending, std::size_t index) {
  const ExtentId id = lending->extents[index];
  allocating_.insert(id);
  allocate(lending->size_bytes, [this, lending, index, id](Result<Object> object) {
    allocating_.erase(id);
    const auto unwanted = cancelled_.extract(id);
    if (unwanted) {
      if (object) release_object(object->id);
      for (const auto& complete : unwanted.mapped()) complete();
      return lending->complete(
          index, fail(Errc::LeaseRevoked,
                      fmt::format("extent {} was released while it was allocated", id.value)));
    }
    if (!object) {
      failed_allocations_.insert(id);
      return lending->complete(index, std::unexpected(object.error()));
    }
    auto fd = object->fd.duplicate();
    extents_.insert_or_assign(id, *std::move(object));
    lending->complete(index, std::move(fd));
  });
}

void AgentMemory::clear(std::vector<ExtentId> extents, OnCleared on_cleared) {
  const auto clearing = std::make_shared<Clearing>();
  clearing->on_cleared = std::move(on_cleared);
  std::erase_if(extents, [this](ExtentId id) { return is_being_released(id); });
  clearing->missing = extents.size();
  for (const ExtentId id : extents) clearing->cleared.entries.push_back({.extent = id});
  for (std::size_t i = 0; i < extents.size(); ++i) clear_one(clearing, i);
}

/// An extent that is still being allocated has not reached a worker, because a grant is sent with
/// all of its extents or not at all. It counts as free once its release is sent: the agent handles
/// calls in order, so a later allocation comes after the release.
void AgentMemory::clear_one(const std::shared_ptr<Clearing>& clearing, std::size_t index) {
  ExtentsCleared::Entry& entry = clearing->cleared.entries[index];
  const auto complete = [clearing] { clearing->complete(); };
  if (allocating_.contains(entry.extent)) {
    entry.never_sent = true;
    return cancelled_[entry.extent].push_back(complete);
  }
  const auto found = extents_.find(entry.extent);
  if (found == extents_.end()) {
    entry.never_sent = failed_allocations_.erase(entry.extent) != 0;
    if (!entry.never_sent) {
      entry.refused = Error{Errc::ConnectionLost, "the device agent that allocated it has ended"};
    }
    return agent_.post(complete);
  }
  found->second.unmapped = true;
  clear_object(found->second.id, [clearing, index](std::optional<Error> refused) {
    clearing->cleared.entries[index].refused = std::move(refused);
    clearing->complete();
  });
}

void AgentMemory::verify(Verification request, OnVerified on_verified) {
  const auto shared = std::make_shared<OnVerified>(std::move(on_verified));
  ExtentsVerified without_object;
  std::vector<ReleaseBatchPtr> batches;
  for (const ExtentId id : request.extents) {
    if (is_being_released(id)) continue;  // its batch reports it
    if (allocating_.contains(id)) {
      cancelled_[id].push_back([shared, id] { (*shared)(ExtentsVerified{{{id, 0, true}}}); });
      continue;
    }
    failed_allocations_.erase(id);
    const auto found = extents_.find(id);
    if (found == extents_.end()) {
      without_object.entries.push_back({id, 0, true});
      continue;
    }
    if (batches.empty() || batches.back()->released.size() == kReleaseBatchSize) {
      batches.push_back(std::make_shared<ReleaseBatch>());
      batches.back()->on_verified = shared;
    }
    ReleaseBatch& batch = *batches.back();
    batch.released.push_back(id);
    batch.extent_bytes = found->second.size_bytes;
    batch.objects.push_back(found->second.id);
    extents_.erase(found);
  }
  if (!without_object.entries.empty()) {
    agent_.post([shared, without_object] { (*shared)(without_object); });
  }
  const bool idle = release_batches_.empty();
  release_batches_.insert(release_batches_.end(), batches.begin(), batches.end());
  if (idle) release_next();
}

bool AgentMemory::is_being_released(ExtentId id) const {
  return std::ranges::any_of(release_batches_, [id](const ReleaseBatchPtr& batch) {
    return std::ranges::find(batch->released, id) != batch->released.end();
  });
}

/// Releases one batch at a time, so that missing bytes belong to this batch. The agent handles the
/// calls of one connection in order, so the two polls enclose the releases.
void AgentMemory::release_next() {
  if (release_batches_.empty()) return;
  const ReleaseBatchPtr batch = release_batches_.front();
  poll_memory(batch);
  for (const std::uint64_t object : batch->objects) release_object(object);
  poll_memory(batch);
}

void AgentMemory::poll_memory(const ReleaseBatchPtr& batch) {
  agent_.call(
      wire::AgentMemory::kMethod, wire::Empty{}.to_json(),
      [this, batch](const Result<control::Payload>& reply) { on_memory_polled(batch, reply); });
}

/// If the agent does not reply, nothing can be compared, so nothing counts as missing. A drop of
/// less than one extent is attributed to other programs.
void AgentMemory::on_memory_polled(const ReleaseBatchPtr& batch,
                                   const Result<control::Payload>& reply) {
  const auto counted = reply ? wire::AgentMemory::from_json(reply->body)
                             : Result<wire::AgentMemory>(std::unexpected(reply.error()));
  const std::uint64_t bytes_now = counted ? counted->free_bytes + counted->allocated_bytes : 0;
  if (batch->polls++ == 0) {
    if (counted) batch->bytes_before = bytes_now;
    return;
  }
  if (!counted || bytes_now >= batch->bytes_before.value_or(0)) return finish_batch(batch, 0);
  const std::uint64_t missing = (*batch->bytes_before - bytes_now) / batch->extent_bytes;
  if (missing == 0 || batch->polls > kMaxPolls) return finish_batch(batch, missing);
  agent_.after(kMemoryPollInterval, [this, batch] { poll_memory(batch); });
}

void AgentMemory::finish_batch(const ReleaseBatchPtr& batch, std::size_t missing) {
  release_batches_.pop_front();  // first, because the callback may verify the same extents again
  batch->end(missing);
  release_next();
}

void AgentMemory::create_region(RegionId region, std::size_t size_bytes, OnDone on_done) {
  allocating_regions_.insert(region);
  allocate(size_bytes, [this, region, on_done = std::move(on_done)](Result<Object> object) mutable {
    allocating_regions_.erase(region);
    const bool unwanted = cancelled_regions_.erase(region) != 0;
    if (!object) return on_done(object.error());
    if (unwanted) {
      release_object(object->id);
    } else {
      regions_.insert_or_assign(region, *std::move(object));
    }
    on_done(std::nullopt);
  });
}

Result<void> AgentMemory::seal_region(RegionId region) {
  if (regions_.contains(region)) return {};
  return fail(
      Errc::DeviceFault,
      fmt::format("weights region {} ended with the device agent; open it again", region.value));
}

void AgentMemory::scrub_region(RegionId region, OnScrubbed on_scrubbed) {
  close_region(region);
  agent_.post([on_scrubbed = std::move(on_scrubbed)]() mutable { on_scrubbed(0); });
}

void AgentMemory::close_region(RegionId region) {
  if (allocating_regions_.contains(region)) cancelled_regions_.insert(region);
  const auto found = regions_.find(region);
  if (found == regions_.end()) return;
  release_object(found->second.id);
  regions_.erase(found);
}

Result<UniqueFd> AgentMemory::region_fd(RegionId region, bool) const {
  const auto found = regions_.find(region);
  if (found == regions_.end()) {
    return fail(Errc::LeaseRevoked,
                fmt::format("weights region {} is closed; open it again", region.value));
  }
  return found->second.fd.duplicate();
}

}  // namespace leasehold
