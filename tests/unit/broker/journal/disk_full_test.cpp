#include <catch2/catch.hpp>

#include "tests/support/file_size_limit.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/unit/broker/journal/state_dir.hpp"

using namespace leasehold;
using namespace leasehold::journal;
using testing::FileSizeLimit;

namespace {

struct GrantedLeases {
  StateDir dir;
  std::unique_ptr<SqliteJournal> journal = SqliteJournal::open(dir.path()).value();
  GrantedLeases() {
    journal->write({.rows = {worker_row(1), lease_row(0), lease_row(1)}, .has_grants = true})
        .value();
  }
  std::uintmax_t log_bytes() const {
    return std::filesystem::file_size(dir.file("journal.db-wal"));
  }
};

/// Returns 0, or the number of the failed step.
int fence_on_a_full_disk(const std::string& path) {
  const auto journal = SqliteJournal::open(path).value();
  const Batch granted{.rows = {worker_row(1), lease_row(0), lease_row(1)}, .has_grants = true};
  if (!journal->write(granted)) return 1;
  const std::uint64_t held = journal->reserve_bytes();
  testing::fill_disk(path + "/full");
  if (journal->write({.rows = {TenantRow{{.tenant = {"b"}}}}})) return 2;
  if (!journal->write({.rows = {lease_row(0, LeaseState::Revoked)}})) return 3;
  const std::uint64_t left = journal->reserve_bytes();
  return left < held && left > held / 2 ? 0 : 4;
}

}  // namespace

TEST_CASE("journal: a grant reserves space for its fence") {
  GrantedLeases world;
  CHECK(world.journal->reserve_bytes() >= 2 * 8192);
  CHECK(std::filesystem::file_size(world.dir.file("journal.reserve")) ==
        world.journal->reserve_bytes());
}

TEST_CASE("journal: on a full disk a grant is refused with advice") {
  GrantedLeases world;
  const FileSizeLimit limit(world.log_bytes());

  const auto written = world.journal->write({.rows = {lease_row(2)}, .has_grants = true});

  REQUIRE_FALSE(written.has_value());
  CHECK(written.error().code == Errc::DiskFull);
  CHECK(written.error().detail.ends_with("; make room in " + world.dir.path()));
  CHECK(world.journal->load(kNowUnixS).value().leases.size() == 2);
}

TEST_CASE("journal: waiting rows are written once there is space, the newest per object") {
  GrantedLeases world;
  {
    const FileSizeLimit limit(world.log_bytes());
    CHECK_FALSE(world.journal->write({.rows = {lease_row(0, LeaseState::Revoked)}}));
    CHECK_FALSE(world.journal->write({.rows = {lease_row(0, LeaseState::Fenced)}}));
    CHECK_FALSE(world.journal->write({.rows = {LeaseGone{{1, 3}}}}));
    CHECK(world.journal->waiting() == 2);
    CHECK(world.journal->reserve_bytes() == 0);  // released for the fence
  }
  REQUIRE(world.journal->write({.rows = {lease_row(7)}, .has_grants = true}).has_value());

  const Image image = world.journal->load(kNowUnixS).value();
  CHECK(world.journal->waiting() == 0);
  CHECK(image.leases.at({0, 3}).state == LeaseState::Fenced);
  CHECK_FALSE(image.leases.contains({1, 3}));
  CHECK(image.leases.contains({7, 3}));
  CHECK(world.journal->reserve_bytes() != 0);
}

TEST_CASE("journal: on a full disk the reserve is spent on revocations only") {
  GrantedLeases world;
  const std::uint64_t held = world.journal->reserve_bytes();
  const FileSizeLimit limit(world.log_bytes());

  const TenantRow tenant{{.tenant = {"b"}}};
  CHECK(world.journal->write({.rows = {tenant}}).error().code == Errc::DiskFull);
  CHECK(world.journal->write({.rows = {LeaseGone{{1, 3}}}}).error().code == Errc::DiskFull);
  CHECK(world.journal->write({.rows = {lease_row(0)}}).error().code ==
        Errc::DiskFull);  // a renewal
  CHECK(world.journal->reserve_bytes() == held);

  (void)world.journal->write({.rows = {lease_row(0, LeaseState::Revoked)}});
  CHECK(world.journal->reserve_bytes() < held);
}

TEST_CASE("journal: many decisions are written together, or nothing of them") {
  GrantedLeases world;
  CHECK(world.journal->write_together({.rows = {lease_row(2), lease_row(1, LeaseState::Revoked)}}));
  {
    const FileSizeLimit limit(world.log_bytes());
    const Batch batch{.rows = {lease_row(3), lease_row(0, LeaseState::Revoked)},
                      .has_grants = true};
    CHECK_FALSE(world.journal->write_together(batch));
  }
  CHECK(world.journal->waiting() == 0);
  const Image image = world.journal->load(kNowUnixS).value();
  CHECK(image.leases.size() == 3);
  CHECK(image.leases.at(lease_row(0).id).state == LeaseState::Live);
  CHECK(image.leases.at(lease_row(1).id).state == LeaseState::Revoked);
}

TEST_CASE("journal: refused grants on a full disk cost no reserve and leave no waiting rows") {
  GrantedLeases world;
  const std::uint64_t held = world.journal->reserve_bytes();
  const FileSizeLimit limit(world.log_bytes());
  for (std::uint32_t slot = 2; slot < 100; ++slot) {
    const LeaseId lease = lease_row(slot).id;
    const ExtentRow extent{.id = {slot}, .lease = lease, .size_bytes = 2u << 20};
    CHECK_FALSE(world.journal->write({.rows = {lease_row(slot), extent}, .has_grants = true}));
    CHECK_FALSE(world.journal->write({.rows = {lease_row(slot, LeaseState::Revoked)}}));
    CHECK_FALSE(world.journal->write({.rows = {lease_row(slot, LeaseState::Fenced)}}));
    CHECK_FALSE(world.journal->write({.rows = {ExtentGone{{slot}}, LeaseGone{lease}}}));
  }
  CHECK(world.journal->reserve_bytes() == held);
  CHECK(world.journal->waiting() == 0);
}

TEST_CASE("journal: a refused growth leaves no waiting rows of its extents") {
  GrantedLeases world;
  const FileSizeLimit limit(world.log_bytes());
  for (std::uint64_t id = 1; id < 50; ++id) {
    const ExtentRow extent{.id = {id}, .lease = lease_row(0).id, .size_bytes = 2u << 20};
    CHECK_FALSE(world.journal->write({.rows = {lease_row(0), extent}, .has_grants = true}));
    CHECK_FALSE(world.journal->write({.rows = {lease_row(0), ExtentGone{{id}}}}));
  }
  CHECK(world.journal->waiting() == 1);  // the lease itself
}

TEST_CASE("journal: the end of an object on disk waits, also after a refused grant") {
  GrantedLeases world;
  const ExtentRow extent{.id = {1}, .lease = lease_row(0).id, .size_bytes = 2u << 20};
  world.journal->write({.rows = {ExtentSizeRow{2u << 20}, extent}, .has_grants = true}).value();
  {
    const FileSizeLimit limit(world.log_bytes());
    CHECK_FALSE(world.journal->write({.rows = {lease_row(0), extent}, .has_grants = true}));
    CHECK_FALSE(world.journal->write({.rows = {ExtentGone{{1}}, LeaseGone{lease_row(0).id}}}));
  }
  world.journal->write({.rows = {}}).value();
  const Image image = world.journal->load(kNowUnixS).value();
  CHECK(image.extents.empty());
  CHECK(image.leases.size() == 1);
}

TEST_CASE("journal: the reserve is released in parts, so that one fence leaves space for others") {
  const StateDir dir;
  auto reserve = ReserveFile::open(dir.file("journal.reserve")).value();
  reserve.grow_to(1).value();
  const std::uint64_t held = reserve.size_bytes();

  reserve.give_up(8192);

  CHECK(reserve.size_bytes() == held - 8192);
  CHECK(std::filesystem::file_size(dir.file("journal.reserve")) == held - 8192);
  reserve.give_up(2 * held);
  CHECK(std::filesystem::file_size(dir.file("journal.reserve")) == 0);
}

TEST_CASE("journal: a reserve that cannot grow for another reason than space says which") {
  const StateDir dir;
  auto reserve = ReserveFile::open(dir.file("journal.reserve")).value();
  {
    const FileSizeLimit limit(4096);
    CHECK(reserve.grow_to(4096 + 1).error().code == Errc::DiskFull);
  }
  const auto refused = reserve.grow_to(std::uint64_t{1} << 63);  // a negative length to the kernel
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::SystemError);
  CHECK(refused.error().detail.find("journal.reserve") != std::string::npos);
  CHECK(reserve.size_bytes() == 0);
}

TEST_CASE("journal: on a full file system a fence is written and others keep their space") {
  const StateDir dir;
  testing::check_on_small_disk(dir.path(), "4m", fence_on_a_full_disk);
}

TEST_CASE("journal: opening it on a full disk keeps the reserve") {
  GrantedLeases world;
  const std::uint64_t held = world.journal->reserve_bytes();
  const FileSizeLimit limit(world.log_bytes());
  world.journal.reset();

  const auto again = SqliteJournal::open(world.dir.path()).value();

  CHECK(again->load(kNowUnixS).value().leases.size() == 2);
  CHECK(again->reserve_bytes() == held);
}

TEST_CASE("journal: opening it reserves space for the fences of its leases") {
  constexpr std::uint32_t kLeases = 200;  // more than the spare bytes cover
  GrantedLeases world;
  Batch more{.rows = {}, .has_grants = true};
  for (std::uint32_t slot = 2; slot < kLeases; ++slot) more.rows.emplace_back(lease_row(slot));
  world.journal->write(more).value();
  world.journal.reset();
  std::filesystem::remove(world.dir.file("journal.reserve"));

  const auto again = SqliteJournal::open(world.dir.path()).value();
  REQUIRE(again->load(kNowUnixS).has_value());

  CHECK(again->reserve_bytes() >= kLeases * 8192);
}

TEST_CASE("journal: a grant is refused if the marks file cannot be written") {
  const StateDir dir;
  auto journal = SqliteJournal::open(dir.path()).value();
  const Batch batch{
      .rows = {HighWaterMarks{1024, 1024, 0, 0}}, .has_grants = true, .durable = true};
  std::filesystem::create_directories(
      dir.file("high_water_marks.new/full"));  // makes the rename fail

  CHECK_FALSE(journal->write(batch).has_value());
  std::filesystem::remove_all(dir.file("high_water_marks.new"));
  CHECK(journal->write({.rows = {lease_row(0)}, .has_grants = true}).has_value());
  CHECK(HighWaterMarksFile::open(dir.file("high_water_marks")).value().marks() ==
        HighWaterMarks{1024, 1024, 0, 0});
}
