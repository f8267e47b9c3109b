#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "broker/journal/state_file.hpp"
#include "broker/journal/tables.hpp"
#include "common/checksum.hpp"
#include "tests/support/captured_log.hpp"
#include "tests/support/test_paths.hpp"
#include "tests/unit/broker/journal/state_dir.hpp"

using namespace leasehold;
using namespace leasehold::journal;

namespace {

/// Damages the page of an audit record. The log is moved into the database when no connection is
/// left.
void damage_record(const StateDir& dir, int sequence) {
  std::fstream file(dir.file("journal.db"), std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes(std::filesystem::file_size(dir.file("journal.db")), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  constexpr std::size_t kPageBytes = 4096;
  const std::size_t page = bytes.find(fmt::format(R"("sequence":{},)", sequence)) / kPageBytes;
  REQUIRE(page > 0);
  file.seekp(static_cast<std::streamoff>(page * kPageBytes));
  file.write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  file.close();
}

/// The error of opening and loading the journal.
Errc load_error(const StateDir& dir) {
  const auto opened = SqliteJournal::open(dir.path());
  if (opened) return opened.value()->load(kNowUnixS).error().code;
  CHECK_FALSE(opened.error().detail.empty());
  return opened.error().code;
}

/// Copies the files of a journal that is open, as a power cut would leave them.
void crash_copy(const StateDir& from, const StateDir& to) {
  for (const char* name : {"journal.db", "journal.db-wal"}) {
    std::filesystem::copy_file(from.file(name), to.file(name));
  }
}

}  // namespace

TEST_CASE("journal: a foreign file is refused and left unchanged") {
  const StateDir dir;
  SECTION("text") {
    std::ofstream(dir.file("journal.db")) << std::string(5000, 'x');
  }
  SECTION("a foreign database") {
    run_sql(dir.file("journal.db"), "CREATE TABLE theirs (x)");
  }
  const auto before = std::filesystem::file_size(dir.file("journal.db"));
  CHECK(load_error(dir) == Errc::FileCorrupt);
  CHECK(std::filesystem::file_size(dir.file("journal.db")) == before);
}

TEST_CASE("journal: a file of another schema version is refused and left unchanged") {
  const StateDir dir;
  SqliteJournal::open(dir.path()).value();
  const auto [sql, version] = GENERATE(std::pair("PRAGMA user_version=23", "schema 23"),
                                       std::pair("PRAGMA user_version=25", "schema 25"));
  run_sql(dir.file("journal.db"), sql);
  const auto before = std::filesystem::file_size(dir.file("journal.db"));
  CHECK(load_error(dir) == Errc::FileCorrupt);
  const Error why = SqliteJournal::open(dir.path()).error();
  CHECK(why.detail.contains(version));
  CHECK(why.detail.contains("start the broker that wrote it"));
  CHECK(why.detail.contains("move " + dir.file("journal.db")));
  CHECK(std::filesystem::file_size(dir.file("journal.db")) == before);
}

TEST_CASE("journal: a change of the tables has a new schema version") {
  const StateDir dir;
  SqliteJournal::open(dir.path()).value();
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(dir.file("journal.db").c_str(), &handle) == SQLITE_OK);
  std::string tables;
  const auto append = [](void* text, int, char** values, char**) {
    if (values[0] != nullptr) static_cast<std::string*>(text)->append(values[0]);
    return 0;
  };
  const char* const sql = "SELECT sql FROM sqlite_schema ORDER BY name";
  REQUIRE(sqlite3_exec(handle, sql, append, &tables, nullptr) == SQLITE_OK);
  sqlite3_close(handle);
  CAPTURE(tables);
  CHECK(kSchemaVersion == 24);
  CHECK(Checksum::of(tables.data(), tables.size()) == 0x752B'2A0C'68B4'F30C);
}

TEST_CASE("journal: a value out of range is refused") {
  const StateDir dir;
  SqliteJournal::open(dir.path()).value()->write({.rows = {worker_row(1), lease_row(4)}}).value();
  const char* damage = GENERATE(
      "UPDATE lease SET state=9", "UPDATE lease SET reason=-1", "UPDATE lease SET generation=0",
      "UPDATE lease SET attachment=2", "UPDATE lease SET region=7", "UPDATE worker SET counter=64",
      "UPDATE worker SET state=7",
      "INSERT INTO extent (extent, slot, generation, state, size_bytes, device, "
      "inode) VALUES (1, 4, 3, 1, 4096, 0, 0)",
      "INSERT INTO region (region, state, size_bytes, loader, file_device, "
      "file_inode, file_size_bytes, file_mtime_ns, layout_digest, "
      "layout_version) VALUES (1, 9, 0, 0, 0, 0, 0, 0, '', 0)",
      "INSERT INTO tenant (tenant, policy) VALUES ('a', '{}')");
  CAPTURE(damage);
  run_sql(dir.file("journal.db"), damage);
  CHECK(load_error(dir) == Errc::FileCorrupt);
  const Error why = SqliteJournal::open(dir.path()).value()->load(kNowUnixS).error();
  CHECK(why.detail.contains("move " + dir.file("journal.db")));
}

TEST_CASE("journal: a start reads no old audit records, and a damaged one is found by its reader") {
  const StateDir dir;
  {
    const auto journal = opened(dir);
    // The tree of the records is stored past the 1024th.
    journal->write({.rows = std::vector<Row>(1200, RevocationRow{.lease = {1, 3}})}).value();
    journal->write({.rows = {RevocationRow{.lease = {2, 3}}}}).value();
  }
  damage_record(dir, 50);

  const auto journal = opened(dir);

  journal->write({.rows = {RevocationRow{.lease = {3, 3}}}}).value();
  CHECK(journal->audit().head().sequence == 1202);
  CHECK(journal->audit_page({}).error().code == Errc::FileCorrupt);
}

TEST_CASE("journal: a damaged audit record whose time is over stays, and rows are written") {
  const StateDir dir;
  opened(dir)->write({.rows = std::vector<Row>(1200, RevocationRow{.lease = {1, 3}})}).value();
  damage_record(dir, 50);

  const auto journal = opened(dir, {.records = 1000});
  const testing::CapturedLog log;

  journal->write({.rows = {lease_row(1), RevocationRow{.lease = {3, 3}}}}).value();
  journal->write({.rows = {RevocationRow{.lease = {4, 3}}}}).value();
  CHECK(journal->audit().head().sequence == 1202);
  CHECK(log.lines() == 1);
  CHECK(log.has("keeps all audit records"));
  CHECK(journal->audit_page({.after = 600}).value().removed_sequence == 0);
}

TEST_CASE("journal: damaged pages are found when it is opened") {
  const StateDir dir;
  {
    auto journal = SqliteJournal::open(dir.path()).value();
    Batch batch{.rows = {worker_row(1)}};
    for (std::uint32_t slot = 0; slot < 500; ++slot) batch.rows.push_back(lease_row(slot));
    journal->write(batch).value();
  }
  std::fstream file(dir.file("journal.db"), std::ios::in | std::ios::out | std::ios::binary);
  const auto size = std::filesystem::file_size(dir.file("journal.db"));
  for (std::size_t at = 4096 + 100; at < size; at += 512) {
    file.seekp(static_cast<std::streamoff>(at));
    file.write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  }
  file.close();
  CHECK(load_error(dir) == Errc::FileCorrupt);
}

TEST_CASE("journal: a damaged list of free pages is found when it is opened") {
  const StateDir dir;
  {
    const auto journal = opened(dir);
    Batch grants{.rows = {worker_row(1)}};
    Batch ends;
    for (std::uint32_t slot = 0; slot < 500; ++slot) {
      grants.rows.push_back(lease_row(slot));
      ends.rows.push_back(LeaseGone{lease_row(slot).id});
    }
    journal->write(grants).value();
    journal->write(ends).value();
  }
  REQUIRE(SqliteJournal::open(dir.path()).has_value());
  std::fstream file(dir.file("journal.db"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(36);  // the number of free pages
  file.write("\x00\x00\x40\x00", 4);
  file.close();
  CHECK(load_error(dir) == Errc::FileCorrupt);
}

TEST_CASE("journal: a torn log holds whole batches only") {
  const StateDir dir;
  auto journal = SqliteJournal::open(dir.path()).value();
  journal->write({.rows = {worker_row(1)}}).value();
  for (std::uint32_t pair = 0; pair < 6; ++pair) {
    journal->write({.rows = {lease_row(2 * pair), lease_row(2 * pair + 1)}}).value();
  }
  const auto whole = std::filesystem::file_size(dir.file("journal.db-wal"));
  std::size_t most = 0;
  for (std::uintmax_t cut = whole; cut > 40'000; cut -= 997) {
    const StateDir torn;
    crash_copy(dir, torn);
    std::filesystem::resize_file(torn.file("journal.db-wal"), cut);
    const auto opened = SqliteJournal::open(torn.path());
    REQUIRE(opened.has_value());
    const Image image = opened.value()->load(kNowUnixS).value();
    CHECK(image.leases.size() % 2 == 0);
    for (const auto& [id, lease] : image.leases) CHECK(image.leases.contains({id.slot ^ 1, 3}));
    most = std::max(most, image.leases.size());
  }
  CHECK(most == 12);
}

TEST_CASE("journal: only the owner can read its files, and links are not followed") {
  const StateDir dir;
  const auto journal = SqliteJournal::open(dir.path()).value();
  journal->write({.rows = {worker_row(1)}}).value();
  for (const char* name : {"journal.db", "journal.db-wal", "journal.reserve"}) {
    struct stat status{};
    REQUIRE(::stat(dir.file(name).c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
  }
  const StateDir other;
  std::filesystem::create_symlink(dir.file("journal.db"), other.file("journal.db"));
  CHECK_FALSE(SqliteJournal::open(other.path()).has_value());
}

TEST_CASE("journal: a state directory has one broker at a time") {
  const StateDir dir;
  auto first = lock_state_dir(dir.path());
  REQUIRE(first.has_value());

  const auto second = lock_state_dir(dir.path());
  REQUIRE_FALSE(second);
  CHECK(second.error().code == Errc::SocketInUse);
  CHECK(second.error().detail ==
        "another broker uses " + dir.path() + "; stop it, or use another --state-dir");

  first->reset();
  CHECK(lock_state_dir(dir.path()).has_value());
}

TEST_CASE("state directory: each error says what to do") {
  const StateDir dir;
  const auto missing = lock_state_dir(dir.file("missing"));
  CHECK(missing.error().code == Errc::BadRequest);
  CHECK(missing.error().detail.find(dir.file("missing") + " does not exist; create it") !=
        std::string::npos);

  run_sql(dir.file("journal.db"), "PRAGMA user_version=0; CREATE TABLE x (y);");
  const auto no_directory = lock_state_dir(dir.file("journal.db"));
  CHECK(no_directory.error().code == Errc::BadRequest);
  CHECK(no_directory.error().detail.find("is not a directory") != std::string::npos);

  const auto error = [&](int number) { return state_file_error(dir.file("x"), number).error(); };
  CHECK(error(ENOSPC).code == Errc::DiskFull);
  for (const int number : {ENOSPC, EFBIG})
    CHECK(error(number).detail.contains("make room in " + dir.path()));
  CHECK(error(EDQUOT).code == Errc::DiskFull);
  CHECK(error(EACCES).code == Errc::PermissionDenied);
  CHECK(error(ELOOP).detail.find("remove it") != std::string::npos);
  CHECK(error(EROFS).detail.find("--state-dir") != std::string::npos);
  CHECK(error(EIO).code == Errc::SystemError);
}

TEST_CASE("journal: a batch that is synced later is in the log at once, and then on the disk") {
  const StateDir dir;
  const auto journal = SqliteJournal::open(dir.path()).value();
  const OperatorActionRow action{.at_boottime_ns = 5,
                                 .uid = 7,
                                 .action = "revoke",
                                 .object = "lease:5.1",
                                 .reason = "",
                                 .done = true};
  journal->write({.rows = {action}}).value();
  CHECK(journal->log_syncs() == 0);
  journal->write({.rows = {action}, .synced_later = true}).value();
  auto reader = Database::open(dir.file("journal.db")).value();
  CHECK(reader.number("SELECT count(*) FROM operator_action").value() == 2);
  CHECK(eventually([&] { return journal->log_syncs() == 1; }));
}

TEST_CASE("journal: each operator action has its own row with the time of day") {
  const StateDir dir;
  const OperatorActionRow action{.at_boottime_ns = 5,
                                 .uid = 7,
                                 .action = "quarantine_release",
                                 .object = "extent:5",
                                 .reason = "the worker's gone",
                                 .done = false};
  SqliteJournal::open(dir.path()).value()->write({.rows = {action}, .durable = true}).value();
  SqliteJournal::open(dir.path()).value()->write({.rows = {action}, .durable = true}).value();

  auto database = Database::open(dir.file("journal.db")).value();
  CHECK(
      database
          .number(
              "SELECT count(*) FROM operator_action WHERE uid=7 AND action='quarantine_release' AND"
              " object='extent:5' AND reason='the worker''s gone' AND done=0 AND"
              " at_boottime_ns=5 AND at_unix_s > 1700000000")
          .value() == 2);
}
