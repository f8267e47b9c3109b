#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/broker/journal/state_dir.hpp"

using namespace leasehold;
using namespace leasehold::journal;

namespace {

/// Written, closed, opened again.
Image reopened(const StateDir& dir, const Batch& batch) {
  SqliteJournal::open(dir.path()).value()->write(batch).value();
  return SqliteJournal::open(dir.path()).value()->load(kNowUnixS).value();
}

}  // namespace

TEST_CASE("journal: operator actions are read newest first, up to the limit") {
  const StateDir dir;
  const auto journal = SqliteJournal::open(dir.path()).value();
  for (const char* object : {"lease:1.1", "lease:2.1", "lease:3.1"}) {
    journal->write({.rows = {OperatorActionRow{.uid = 7, .action = "revoke", .object = object}}})
        .value();
  }
  journal
      ->write({.rows = {OperatorActionRow{.action = "quarantine_release",
                                          .object = "extent:5",
                                          .reason = "looked",
                                          .done = false}}})
      .value();

  const auto actions = journal->newest_operator_actions(2).value();

  REQUIRE(actions.size() == 2);
  CHECK(actions[0].object == "extent:5");
  CHECK(actions[0].reason == "looked");
  CHECK_FALSE(actions[0].done);
  CHECK(actions[1].object == "lease:3.1");
  CHECK(actions[1].uid == 7);
  CHECK(actions[1].at_unix_s > 1'700'000'000);
  CHECK(NullJournal().newest_operator_actions(2).error().code == Errc::BadRequest);
}

TEST_CASE("journal: a lease is read as it was written") {
  const StateDir dir;
  const Image image = reopened(dir, {.rows = {worker_row(1), lease_row(4, LeaseState::Fenced)}});

  CHECK(image.leases.at({4, 3}) == lease_row(4, LeaseState::Fenced));
}

TEST_CASE("journal: workers, tenants, extents, regions and marks are read as written") {
  const StateDir dir;
  const wire::TenantPolicy policy{.tenant = {"a"},
                                  .max_blocks = 77,
                                  .reserved_blocks = 33,
                                  .tier = wire::Tier::Guaranteed,
                                  .ttl_ms = 500,
                                  .rebinds_per_minute = 7,
                                  .rebind_burst = 5,
                                  .rates = {.tokens_per_minute = 4'321},
                                  .uid = 9,
                                  .cell = CellName{"c1"}};
  const RegionRow region{.id = {2},
                         .key = {1, 2, 3, -4, "digest", 5, 6},
                         .size_bytes = 4096,
                         .state = RegionState::Published,
                         .loader = {1},
                         .quarantine = {{1}, "w1", 5, 4096}};
  WorkerRow untrusted = worker_row(2);
  untrusted.untrusted = true;
  untrusted.draining = true;
  LeaseRow lease = lease_row(4);
  lease.region = region.id;
  const ExtentRow extent{.id = {7},
                         .lease = {4, 3},
                         .state = ExtentState::Scrubbing,
                         .size_bytes = 2u << 20,
                         .device = 8,
                         .inode = 9,
                         .quarantine = {{1}, "w1", 6, 8192, QuarantineReason::NotReturned},
                         .pool = MemoryPool::Swap};
  const Image image =
      reopened(dir, {.rows = {TenantRow{policy, true, 6u << 20, 7, {5, 6}, {8, 9}}, worker_row(1),
                              untrusted, ExtentSizeRow{2u << 20}, lease, extent, region,
                              HighWaterMarks{1024, 2048, 3072, 4096}},
                     .durable = true});

  const TenantRow& tenant = image.tenants.at({"a"});
  CHECK(tenant.policy.to_json() == policy.to_json());
  CHECK(tenant.draining);
  CHECK(tenant.reserved_bytes == 6u << 20);
  CHECK(tenant.admitted_unix_ms == 7);
  CHECK(tenant.use == DayUse{5, 6});
  CHECK(tenant.part.incarnation == 8);
  CHECK(tenant.part.revision == 9);
  CHECK(image.workers.at({1}) == worker_row(1));
  CHECK(image.workers.at({2}) == untrusted);
  CHECK(image.leases.at({4, 3}) == lease);
  CHECK(image.extents.at({7}) == extent);
  CHECK(image.regions.at({2}) == region);
  CHECK(image.reserved == HighWaterMarks{1024, 2048, 3072, 4096});
  CHECK(image.extent_size_bytes == 2u << 20);
}

TEST_CASE("journal: adapters are read as written, and a damaged one is refused") {
  const StateDir dir;
  const AdapterRow own{.id = {"support"},
                       .version = 2,
                       .tenant = {"a"},
                       .file = "a/support.gguf",
                       .pinned = true,
                       .digest = std::string(64, 'a')};
  const AdapterRow removed{
      .id = {"old"}, .version = 1, .tenant = {"gone"}, .file = "old", .removed = true};
  const Image image =
      reopened(dir, {.rows = {TenantRow{.policy = {.tenant = {"a"}}}, own, removed}});
  CHECK(image.adapters.at({"support"}) == own);
  CHECK(image.adapters.at({"old"}) == removed);

  const char* damage = GENERATE("version=0", "file='../x'", "tenant='gone'", "digest='12'");
  run_sql(dir.file("journal.db"), (std::string("UPDATE adapter SET ") + damage).c_str());
  CHECK(SqliteJournal::open(dir.path()).value()->load(kNowUnixS).error().code == Errc::FileCorrupt);
}

TEST_CASE("journal: API keys are read as written, and a damaged one is refused") {
  const StateDir dir;
  const std::string hash(64, 'a');
  const ApiKeyRow kept{
      .id = {hash.substr(0, 16)},
      .tenant = {"a"},
      .hash = hash,
      .name = "ci",
      .created_unix_ms = 1,
      .expires_unix_ms = 2,
      .last_used_unix_ms = 3,
      .limits = {.max_concurrent = 4,
                 .rates = {.requests_per_minute = 6, .tokens_per_day = 1'000'000'000'000}},
      .use = {.day = 8, .tokens = 9}};
  const ApiKeyRow gone{.id = {"bb"}, .tenant = {"a"}, .hash = "bb"};
  const Image image = reopened(
      dir, {.rows = {TenantRow{.policy = {.tenant = {"a"}}}, kept, gone, ApiKeyGone{{"bb"}}}});
  REQUIRE(image.api_keys.size() == 1);
  CHECK(image.api_keys.at(kept.id).tenant.value == "a");
  const ApiKeyRow& key = image.api_keys.at(kept.id);
  CHECK(key.hash == hash);
  CHECK(key.name == "ci");
  CHECK(std::tuple(key.created_unix_ms, key.expires_unix_ms, key.last_used_unix_ms) ==
        std::tuple(1, 2, 3));
  CHECK(key.limits.max_concurrent == 4u);
  CHECK(key.limits.rates == kept.limits.rates);
  CHECK(key.use == kept.use);

  const char* damage = GENERATE("hash='cc'", "max_concurrent=65", "tokens_per_minute=-1",
                                "requests_per_minute=10000001", "expires_unix_ms=-1");
  run_sql(dir.file("journal.db"), (std::string("UPDATE api_key SET ") + damage).c_str());
  CHECK(SqliteJournal::open(dir.path()).value()->load(kNowUnixS).error().code == Errc::FileCorrupt);
}

TEST_CASE("journal: held and quarantined extents need no lease") {
  const StateDir dir;
  const Image image =
      reopened(dir, {.rows = {ExtentSizeRow{2u << 20},
                              ExtentRow{.id = {6},
                                        .lease = {3, 9},
                                        .state = ExtentState::Held,
                                        .size_bytes = 2u << 20,
                                        .quarantine = {.worker = {12}}},
                              ExtentRow{.id = {7},
                                        .lease = {3, 9},
                                        .state = ExtentState::Quarantined,
                                        .size_bytes = 2u << 20,
                                        .quarantine = {.worker = {12},
                                                       .allocated_bytes = 2u << 20,
                                                       .why = QuarantineReason::NotReturned},
                                        .pool = MemoryPool::Swap}}});
  CHECK(image.extents.at({6}).state == ExtentState::Held);
  CHECK(image.extents.at({6}).quarantine.worker == AttachmentId{12});
  CHECK(image.extents.at({6}).pool == MemoryPool::Kv);
  CHECK(image.extents.at({7}).quarantine.why == QuarantineReason::NotReturned);
  CHECK(image.extents.at({7}).pool == MemoryPool::Swap);
}

TEST_CASE("journal: a newer row replaces the older one, and erased rows stay erased") {
  const StateDir dir;
  auto journal = SqliteJournal::open(dir.path()).value();
  journal->write({.rows = {worker_row(1), lease_row(4), lease_row(5)}}).value();
  journal->write({.rows = {lease_row(4, LeaseState::Revoked), LeaseGone{{5, 3}}}}).value();

  const Image image = journal->load(kNowUnixS).value();

  CHECK(image.leases.size() == 1);
  CHECK(image.leases.at({4, 3}).state == LeaseState::Revoked);
}

TEST_CASE("journal: erasing an old lease keeps the next one in its slot") {
  const StateDir dir;
  auto journal = SqliteJournal::open(dir.path()).value();
  journal->write({.rows = {worker_row(1), lease_row(4), LeaseGone{{4, 2}}}}).value();
  CHECK(journal->load(kNowUnixS).value().leases.contains({4, 3}));
}

TEST_CASE("journal: the last boot id is kept") {
  const StateDir dir;
  CHECK(reopened(dir, {.rows = {BootRow{"boot-1"}}, .durable = true}).boot_id == "boot-1");
  CHECK(reopened(dir, {.rows = {BootRow{"boot-2"}}, .durable = true}).boot_id == "boot-2");
}

TEST_CASE("journal: an image applies rows as the file does") {
  Image image;
  for (const Row& row : std::vector<Row>{worker_row(1), lease_row(4), LeaseGone{{4, 2}},
                                         lease_row(5), LeaseGone{{5, 3}}, WorkerGone{{1}}}) {
    apply(image, row);
  }
  CHECK(image.workers.empty());
  CHECK(image.leases.size() == 1);
  CHECK(image.leases.contains({4, 3}));
}
