#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

struct Serving : ServingWorld {
  Serving() { forget_effects(); }
  std::size_t position_of(auto matches) const {
    const auto found = std::find_if(effects.begin(), effects.end(), matches);
    return static_cast<std::size_t>(found - effects.begin());
  }
  template <class Wanted>
  std::size_t first() const {
    return position_of([](const Effect& each) { return std::holds_alternative<Wanted>(each); });
  }
  std::size_t first_flip(LeaseState to) const {
    return position_of([to](const Effect& each) {
      const auto* taken = std::get_if<effect::StoreWords>(&each);
      return taken != nullptr && taken->changes.front().to == to;
    });
  }
  /// The journal effect with a row of this lease in this state.
  std::size_t written(LeaseId lease, LeaseState wanted) const {
    return position_of([&](const Effect& each) {
      const auto* entry = std::get_if<effect::Journal>(&each);
      if (entry == nullptr) return false;
      return std::any_of(entry->batch.rows.begin(), entry->batch.rows.end(), [&](auto& row) {
        const auto* lease_row = std::get_if<journal::LeaseRow>(&row);
        return lease_row != nullptr && lease_row->id == lease && lease_row->state == wanted;
      });
    });
  }
};

}  // namespace

TEST_CASE("journal: a grant is written before its word, its descriptors and its answer") {
  Serving world;
  const LeaseId lease = world.acquired("a");
  const std::size_t written = world.written(lease, LeaseState::Live);
  CHECK(written < world.first<effect::PublishGrant>());
  CHECK(written < world.first<effect::SendGrant>());
  CHECK(world.performed<effect::Journal>().size() == 1);
}

TEST_CASE("journal: a revocation is not delayed by the disk, a fence is") {
  Serving world;
  const LeaseId lease = world.acquired("a");
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.forget_effects();

  world.revoke(lease);
  const std::size_t revoked = world.written(lease, LeaseState::Revoked);
  CHECK(world.first_flip(LeaseState::Revoked) < revoked);
  CHECK(world.first<effect::BeginQuietWatch>() < revoked);
  CHECK(world.first<effect::Reply>() < revoked);

  world.end_unit(world.worker);
  CHECK(world.written(lease, LeaseState::Fenced) < world.first_flip(LeaseState::Fenced));
}

TEST_CASE("journal: admit, attach and ready are written before their answers") {
  World world;
  world.admit_tenant("a");
  world.attach_worker("w0", kWorkerSocket);
  std::size_t waiting = 0;
  for (const Effect& effect : world.effects) {
    if (std::holds_alternative<effect::Journal>(effect)) waiting = 1;
    if (!std::holds_alternative<effect::Reply>(effect)) continue;
    CHECK(waiting == 1);
    waiting = 0;
  }
  CHECK(world.journal.tenants.contains({"a"}));
  CHECK(world.journal.workers.at({1}).state == WorkerState::Ready);
  CHECK(world.journal.extent_size_bytes == 2 * kMiB);
}

TEST_CASE("journal: the image holds a lease, its holder and its extents until it is closed") {
  Serving world;
  const LeaseId lease = world.acquired("a", 16);

  const journal::LeaseRow& row = world.journal.leases.at(lease);
  CHECK(row.holder.pid == 1000);
  CHECK_FALSE(row.request.request_id.empty());
  CHECK(row.charged_blocks == 16);
  CHECK(row.deadline_ns > 0);
  CHECK(world.journal.extents.size() == 2);

  world.revoke(lease);
  CHECK(world.journal.leases.empty());
  CHECK(world.journal.extents.empty());
  CHECK(world.journal.workers.size() == 1);
  world.post(WorkerExited{exit_of(world.worker)});
  CHECK(world.journal.workers.empty());
}

TEST_CASE("journal: a renewal, a drain and a changed size are written") {
  Serving world;
  const LeaseId lease = world.acquired("a", 8);
  const auto before = world.journal.leases.at(lease);
  world.advance(1s);

  world.call(kHolder, wire::LeaseRenew{.lease = lease});
  CHECK(world.journal.leases.at(lease).deadline_ns == before.deadline_ns + 1'000'000'000);

  world.call(kHolder, wire::LeaseGrow{.lease = lease, .extents = 1});
  CHECK(world.journal.leases.at(lease).charged_blocks == 16);
  CHECK(world.journal.extents.size() == 2);

  world.call(kOperator, wire::LeaseDrain{.lease = lease, .grace_ms = 5000});
  CHECK(world.journal.leases.at(lease).drain_deadline_ns != 0);
}

TEST_CASE("journal: an extent returned by a live lease is written as Scrubbing until verified") {
  Serving world;
  const LeaseId lease = world.acquired("a", 16);
  const ExtentId given = world.record(lease).extents.back();
  world.touched.insert(given);

  world.call(kHolder, wire::LeaseShrink{.lease = lease});
  const auto asked = world.reclaims.front();
  world.post(ReclaimAnswered{lease, asked.call, std::vector{given}});

  CHECK(world.journal.extents.at(given).state == ExtentState::Quarantined);
  CHECK(world.journal.leases.empty());  // a worker that writes to returned memory loses all leases
}

TEST_CASE("journal: a mark is raised durably before the first id above it is used") {
  Serving world;
  CHECK(world.journal.reserved.attachments == 1024);
  CHECK(world.journal.reserved.generations == 0);

  world.acquired("a");

  CHECK(world.journal.reserved.generations == 1024);
  CHECK(world.journal.reserved.extents == 65'536);
  CHECK(world.performed<effect::Journal>().front().batch.durable);
  world.forget_effects();
  world.acquired("a");
  CHECK_FALSE(world.performed<effect::Journal>().front().batch.durable);
}

TEST_CASE("journal: on a full disk grants are refused, and nothing else changes") {
  Serving world;
  const LeaseId before = world.acquired("a");
  world.disk_full = true;

  CHECK(world.refusal(world.acquire("a")) == Errc::DiskFull);
  CHECK(world.performed<effect::SendGrant>().size() == 2);  // the second grant was not sent
  CHECK(world.state.extents.records().size() == 1);
  CHECK(world.record(before).is(LeaseState::Live));

  world.revoke(before);
  CHECK(world.state.extents.records().empty());
  CHECK(world.journal.leases.empty());
  world.disk_full = false;
  CHECK(world.acquired("a").generation > 0);
}

TEST_CASE("journal: an admission that is not on disk takes effect and answers DiskFull") {
  World world;
  const wire::TenantAdmit admit{.tenant = {"b"}, .max_blocks = 8, .request_id = {"once"}};
  world.disk_full = true;
  CHECK(world.refusal(world.call(kOperator, admit)) == Errc::DiskFull);
  CHECK_FALSE(world.journal.tenants.contains({"b"}));
  CHECK(world.state.tenants.find({"b"}) != nullptr);

  world.disk_full = false;
  world.answer<wire::TenantPolicy>(world.call(kOperator, admit));  // repeats the call
  CHECK(world.journal.tenants.contains({"b"}));
}

TEST_CASE("journal: a removal that is not on disk takes effect, answers DiskFull, is repeated") {
  Serving world;
  const wire::TenantRemove remove{.tenant = {"a"}, .request_id = {"once"}};
  world.disk_full = true;
  CHECK(world.refusal(world.call(kOperator, remove)) == Errc::DiskFull);
  CHECK(world.state.tenants.find({"a"}) == nullptr);
  CHECK(world.journal.tenants.contains({"a"}));

  world.disk_full = false;
  CHECK(world.answer<wire::LeasesTouched>(world.call(kOperator, remove)).leases.empty());
  CHECK_FALSE(world.journal.tenants.contains({"a"}));
  CHECK(world.refusal(world.call(kOperator, wire::TenantRemove{.tenant = {"a"}})) ==
        Errc::UnknownTenant);
}

TEST_CASE("journal: a region is written with its loader and erased when evicted") {
  World world;
  world.attach_worker("w0", kWorkerSocket);
  const wire::WeightsOpen open{
      .model = "m", .file_inode = 1, .file_size_bytes = 9, .size_bytes = 40 * kMiB};

  const CallId opened = world.call(kWorkerSocket, open);
  const RegionId region = world.answer<wire::WeightsOpened>(opened).region;
  CHECK(world.journal.regions.at(region).state == RegionState::Loading);
  CHECK(world.journal.leases.size() == 1);

  world.call(kWorkerSocket, wire::WeightsPublish{.region = region});
  CHECK(world.journal.regions.at(region).state == RegionState::Published);
  world.post(WorkerExited{exit_of({1})});
  CHECK(world.journal.regions.at(region).state == RegionState::Retained);
  CHECK(world.journal.leases.empty());
}

TEST_CASE("journal: on a full disk weights.open is refused") {
  World world;
  world.attach_worker("w0", kWorkerSocket);
  world.disk_full = true;
  const wire::WeightsOpen open{.model = "m", .file_size_bytes = 9, .size_bytes = 40 * kMiB};
  CHECK(world.refusal(world.call(kWorkerSocket, open)) == Errc::DiskFull);
  CHECK(world.state.weights.regions().empty());
}

TEST_CASE("journal: on a full disk published weights get no new user and stay published") {
  World world;
  world.attach_worker("w0", kWorkerSocket);
  const ConnectionId second{41};
  const AttachmentId other = world.attach_worker("w1", second);
  const wire::WeightsOpen open{.model = "m", .file_size_bytes = 9, .size_bytes = 40 * kMiB};
  const auto first = world.answer<wire::WeightsOpened>(world.call(kWorkerSocket, open));
  world.call(kWorkerSocket, wire::WeightsPublish{.region = first.region});
  const auto known = world.journal.leases.size();

  world.disk_full = true;
  CHECK(world.refusal(world.call(second, open)) == Errc::DiskFull);
  CHECK(world.state.leases.index().of(other).open.empty());
  CHECK(world.journal.leases.size() == known);

  world.disk_full = false;
  const auto shared = world.answer<wire::WeightsOpened>(world.call(second, open));
  CHECK(shared.published);
  CHECK(shared.region == first.region);
  CHECK(world.journal.leases.contains(shared.lease));
}
