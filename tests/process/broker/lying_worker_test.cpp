// A worker that claims kept memory which it may not adopt: each claim is refused, and the memory
// goes to its owner, or is scrubbed when the grace ends.
#include <algorithm>
#include <catch2/catch.hpp>

#include "common/cli/print_error.hpp"
#include "ipc/region/memory_object.hpp"
#include "tests/checks/runner/check.hpp"
#include "tests/checks/runner/memory_check.hpp"
#include "tests/process/broker/fake_worker.hpp"

namespace leasehold::testing::lying_worker {
namespace {

constexpr const char* kIdentity = "same";
constexpr std::uint32_t kBlocks = 16;  // two extents
constexpr const char* kLong_ms = "600000";
constexpr const char* kShort_ms = "300";

/// Memory of tenant a, whose worker w0 was killed, is kept for the connection `owner`.
struct KeptMemory {
  explicit KeptMemory(const char* grace_ms)
      : broker({"--adopt-grace-ms", grace_ms, "--allow-memory-check", "--fence-timeout-ms",
                "3600000"}) {
    for (const char* tenant : {"a", "b"}) broker.admit(owner, tenant);
    lease = broker.acquire(owner, "a", kBlocks).value().lease;
    kept = runner::open_extents(view, lease).value();
    REQUIRE(kept.size() == 2);
    for (const runner::OpenedExtent& each : kept) REQUIRE(each.before.nonzero_bytes == 1);
    look();
    old.kill();
  }
  bool becomes_retained() {
    return eventually([this] { return look().retained_bytes > 0; });
  }
  /// Every byte of the pool is in one state.
  wire::StatusView look() {
    const wire::StatusView status = view.status().value();
    CHECK(runner::not_conserved(status) == "");
    return status;
  }
  /// Neither scrubbed nor changed.
  void check_untouched() {
    for (const runner::OpenedExtent& each : kept)
      CHECK(runner::read_memory(each.object).value().nonzero_bytes == 1);
    CHECK(look().retained_bytes > 0);
  }
  bool is_scrubbed() {
    return eventually([this] {
      return std::ranges::all_of(kept, [](const runner::OpenedExtent& each) {
        const runner::MemoryReading now = runner::read_memory(each.object).value();
        return now.allocated_bytes == 0 && now.nonzero_bytes == 0;
      });
    });
  }
  /// The owner's next lease has the kept bytes, on the worker's successor.
  void check_owner_adopts() {
    check_untouched();
    FakeWorker successor(broker.socket(), "w0", kIdentity);
    const auto acquired = acquire(owner, "a", "w0");
    REQUIRE(acquired);
    CHECK(acquired->adopted_blocks == kBlocks);
    CHECK(successor.adopted_from(acquired->lease) == lease);
    CHECK(successor.extents_of(acquired->lease) == ids());
    CHECK(look().retained_bytes == 0);
    for (const runner::OpenedExtent& each : kept)
      CHECK(runner::read_memory(each.object).value().nonzero_bytes == 1);
    broker.revoke(owner, acquired->lease).value();
    CHECK(is_scrubbed());
    CHECK(eventually([this] { return look().free_bytes == look().capacity_bytes; }));
  }

  std::vector<ExtentId> ids() const {
    std::vector<ExtentId> ids;
    for (const runner::OpenedExtent& each : kept) ids.push_back(each.extent);
    return ids;
  }
  wire::LeaseAcquire message(const std::string& tenant, const std::string& worker) const {
    return {.tenant = {tenant},
            .blocks = 8,
            .worker = worker,
            .replaces = lease,
            .request_id = next_request_id()};
  }
  Result<wire::LeaseAcquired> acquire(control::Client& from, const std::string& tenant,
                                      const std::string& worker) const {
    const auto reply = TRY(from.call("lease.acquire", {.body = message(tenant, worker).to_json()}));
    return wire::LeaseAcquired::from_json(reply.body);
  }
  Result<wire::LeaseAcquired> acquire(FakeWorker& from, const std::string& tenant) const {
    const auto reply = TRY(from.ask("lease.acquire", {.body = message(tenant, "w9").to_json()}));
    return wire::LeaseAcquired::from_json(reply.body);
  }
  /// Claims the kept extents as its own.
  Result<void> claim(FakeWorker& from) const { return from.redeliver(lease, ids(), {}); }
  /// The same with memory of its own in their place.
  Result<void> claim_with_forged(FakeWorker& from) const {
    std::vector<UniqueFd> forged;
    for (std::size_t i = 0; i < kept.size(); ++i)
      forged.push_back(
          MemoryObject::create({.name = "forged", .size_bytes = 2u << 20}).value().release());
    return from.redeliver(lease, ids(), std::move(forged));
  }

  BrokerProcess broker;
  ForkedProcess old = start_stuck_worker(broker.socket(), "w0", kIdentity);
  control::Client owner = broker.connect();
  BrokerView view = BrokerView::connect(broker.socket()).value();
  LeaseId lease;
  std::vector<runner::OpenedExtent> kept;
};

std::string code_of(const auto& refused) {
  REQUIRE_FALSE(refused);
  UNSCOPED_INFO(refused.error().detail);
  return std::string(name(refused.error().code));
}

}  // namespace

TEST_CASE("lying worker: it cannot deliver, grow or resume what is kept of another worker") {
  KeptMemory memory(kLong_ms);
  REQUIRE(memory.becomes_retained());
  FakeWorker liar(memory.broker.socket(), "w9", kIdentity);

  CHECK(code_of(memory.claim(liar)) == "PermissionDenied");
  const wire::LeaseGrow grow{.lease = memory.lease, .request_id = next_request_id()};
  CHECK(code_of(liar.ask("lease.grow", {.body = grow.to_json()})) == "PermissionDenied");
  const wire::LeaseAttach attach{.lease = memory.lease};
  CHECK(code_of(liar.ask("lease.attach", {.body = attach.to_json()})) == "PermissionDenied");
  const wire::WorkerAttach resume{
      .worker = "w0", .resume = AttachmentId{1}, .request_id = next_request_id()};
  auto stranger = memory.broker.connect();
  CHECK(code_of(stranger.call("worker.attach", {.body = resume.to_json()})) == "BrokerLost");
  // The broker reads no descriptors of a worker that does not resume.
  CHECK(code_of(memory.claim_with_forged(liar)) == "ConnectionLost");

  memory.check_owner_adopts();
}

TEST_CASE("lying worker: it adopts nothing under another tenant, or as another holder") {
  KeptMemory memory(kLong_ms);
  REQUIRE(memory.becomes_retained());
  FakeWorker liar(memory.broker.socket(), "w9", kIdentity);

  CHECK(code_of(memory.acquire(liar, "b")) == "UnknownLease");
  const auto fresh = memory.acquire(liar, "a");
  REQUIRE(fresh);
  CHECK(fresh->adopted_blocks == 0);
  CHECK_FALSE(liar.adopted_from(fresh->lease));
  for (const ExtentId extent : liar.extents_of(fresh->lease))
    CHECK(std::ranges::count(memory.ids(), extent) == 0);
  memory.broker.revoke(memory.owner, fresh->lease).value();

  memory.check_owner_adopts();
}

TEST_CASE("lying worker: after the grace it adopts nothing, and the memory is scrubbed") {
  KeptMemory memory(kShort_ms);
  REQUIRE(memory.is_scrubbed());
  REQUIRE(eventually([&] { return memory.look().retained_bytes == 0; }));
  FakeWorker liar(memory.broker.socket(), "w0", kIdentity);

  CHECK(code_of(memory.claim(liar)) == "PermissionDenied");
  CHECK(code_of(memory.acquire(liar, "b")) == "UnknownLease");
  const auto acquired = memory.acquire(memory.owner, "a", "w0");

  REQUIRE(acquired);
  CHECK(acquired->adopted_blocks == 0);
  CHECK_FALSE(liar.adopted_from(acquired->lease));
  for (const ExtentId extent : liar.extents_of(acquired->lease))
    CHECK(std::ranges::count(memory.ids(), extent) == 0);
  CHECK(memory.is_scrubbed());
  memory.look();
}

}  // namespace leasehold::testing::lying_worker
