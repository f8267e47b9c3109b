/// Device memory, allocated by the device agent.
///
/// Lifetime: an object ends with the agent process. A mapping that a worker has imported lives
/// until that worker unmaps it or exits.
///
/// Sealing is a no-op: CUDA cannot prevent an importer from writing, so each worker is trusted to
/// only read weights.
///
/// Verification compares the driver's counters before and after a release: free bytes plus the
/// agent's allocated bytes must not drop by an extent or more. These counters cover the whole card,
/// so another program's allocation looks like memory that was not returned. Extents are therefore
/// released in small batches, which limits how many of them such an allocation can put in doubt.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "broker/memory/agent_calls.hpp"
#include "broker/memory/lent_memory.hpp"
#include "ipc/control/messages/agent.hpp"

namespace leasehold {

class AgentMemory final : public LentMemory {
 public:
  explicit AgentMemory(AgentCalls& agent) : agent_(agent) {}

  /// Drops all objects. Call it when the agent process has ended.
  void forget_all();

  void lend(std::vector<ExtentId> extents, std::size_t size_bytes, OnFds on_fds) override;
  void punch(std::span<const ExtentId>) override {}
  void clear(std::vector<ExtentId> extents, OnCleared on_cleared) override;
  void verify(Verification request, OnVerified on_verified) override;
  void create_region(RegionId region, std::size_t size_bytes, OnDone on_done) override;
  Result<void> seal_region(RegionId region) override;
  void scrub_region(RegionId region, OnScrubbed on_scrubbed) override;
  void close_region(RegionId region) override;
  Result<UniqueFd> region_fd(RegionId region, bool writable) const override;
  const UniqueFd* keepable_fd(RegionId) const override { return nullptr; }

 private:
  struct Object {
    std::uint64_t id = 0;
    std::uint64_t size_bytes = 0;
    UniqueFd fd;
    bool unmapped = false;  ///< A worker used it and unmapped it; clear it before lending it again.
  };
  struct Lending;
  struct Clearing;
  struct ReleaseBatch;
  using ReleaseBatchPtr = std::shared_ptr<ReleaseBatch>;
  using OnObject = std::move_only_function<void(Result<Object>)>;
  void allocate(std::size_t size_bytes, OnObject on_object);
  void clear_object(std::uint64_t object, OnDone on_done);
  void release_object(std::uint64_t object);
  void lend_one(const std::shared_ptr<Lending>& lending, std::size_t index);
  void make_one(const std::shared_ptr<Lending>& lending, std::size_t index);
  void clear_one(const std::shared_ptr<Clearing>& clearing, std::size_t index);
  bool is_being_released(ExtentId id) const;
  void release_next();
  void poll_memory(const ReleaseBatchPtr& batch);
  void on_memory_polled(const ReleaseBatchPtr& batch, const Result<control::Payload>& reply);
  void finish_batch(const ReleaseBatchPtr& batch, std::size_t missing);

  AgentCalls& agent_;
  std::map<ExtentId, Object> extents_;
  std::map<RegionId, Object> regions_;
  std::set<ExtentId> allocating_;  // the agent has not replied yet
  /// Extents of `allocating_` that are no longer wanted, with the callbacks that wait for the
  /// reply.
  std::map<ExtentId, std::vector<std::function<void()>>> cancelled_;
  std::set<ExtentId> failed_allocations_;
  std::set<RegionId> allocating_regions_;
  std::set<RegionId> cancelled_regions_;
  std::deque<ReleaseBatchPtr> release_batches_;  // the first one is in progress
};

}  // namespace leasehold
