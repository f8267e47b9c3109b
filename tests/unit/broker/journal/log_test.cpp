// The write-ahead log of the journal: it stays short, and a disk that it filled is usable again.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "tests/support/small_disk.hpp"
#include "tests/unit/broker/journal/state_dir.hpp"

using namespace leasehold;
using namespace leasehold::journal;
using testing::check_on_small_disk;
using testing::fill_disk;

namespace {

constexpr std::uintmax_t kMiB = 1 << 20;
constexpr std::uintmax_t kMaxLogBytes = 8 * kMiB;

std::uintmax_t log_bytes(const std::string& path) {
  std::error_code missing;
  const auto size_bytes = std::filesystem::file_size(path + "/journal.db-wal", missing);
  return missing ? 0 : size_bytes;
}

/// One lease from its grant to its end, as three transactions. The slots come from all pages of the
/// table.
Result<void> lend_once(SqliteJournal& journal, std::uint32_t n) {
  const std::uint32_t slot = n * 37 % 2048;
  const ExtentRow extent{.id = {slot + 1}, .lease = lease_row(slot).id, .size_bytes = 2 << 20};
  TRY(journal.write({.rows = {lease_row(slot), extent}, .has_grants = true}));
  TRY(journal.write({.rows = {lease_row(slot, LeaseState::Revoked)}}));
  return journal.write({.rows = {ExtentGone{extent.id}, LeaseGone{lease_row(slot).id},
                                 TenantRow{{.tenant = {"a"}}}}});
}

int lend_thousands(const std::string& path) {
  const auto journal = SqliteJournal::open(path).value();
  std::uintmax_t longest = 0;
  for (std::uint32_t n = 0; n < 3000; ++n) {
    if (!lend_once(*journal, n)) return 1;
    longest = std::max(longest, log_bytes(path));
  }
  return longest <= kMaxLogBytes ? 0 : 2;
}

/// Runs `work(journal)` as in a broker that is killed afterwards: no connection is closed, so the
/// log stays.
template <class Work>
int in_killed_process(const std::string& path, Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work(*SqliteJournal::open(path).value().release()));
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int restart_on_full_disk(const std::string& path) {
  const int killed = in_killed_process(path, [&](SqliteJournal& journal) {
    for (std::uint32_t n = 0; n < 200; ++n)
      if (!lend_once(journal, n)) return 1;
    fill_disk(path + "/full");
    return 0;
  });
  if (killed != 0) return killed;
  const auto journal = SqliteJournal::open(path).value();
  if (log_bytes(path) != 0) return 2;
  if (!journal->load(kNowUnixS)) return 3;
  std::filesystem::remove(path + "/full");
  return lend_once(*journal, 7) ? 0 : 4;
}

/// The log fills the disk, the database has not grown yet, and the reserve holds all other space.
int restart_on_disk_full_of_log(const std::string& path) {
  const int killed = in_killed_process(path, [&](SqliteJournal& journal) {
    if (!journal.load(kNowUnixS)) return 1;
    Database other = Database::open(path + "/journal.db").value();
    int n = 0;
    while (other.execute("REPLACE INTO meta VALUES ('x" + std::to_string(++n % 8) +
                         "', randomblob(100000))")) {
    }
    fill_disk(path + "/full");
    return 0;
  });
  if (killed != 0) return killed;
  if (log_bytes(path) < 9 * kMiB) return 2;
  const auto journal = SqliteJournal::open(path).value();
  if (log_bytes(path) != 0) return 3;
  return journal->load(kNowUnixS) && lend_once(*journal, 7) ? 0 : 4;
}

int recover_on_full_disk(const std::string& path) {
  const auto journal = SqliteJournal::open(path).value();
  for (std::uint32_t n = 0; n < 20; ++n)
    if (!lend_once(*journal, n)) return 1;
  fill_disk(path + "/full");
  std::uint32_t n = 20;
  while (lend_once(*journal, n) && n < 10000) ++n;
  if (n == 10000) return 2;
  std::filesystem::remove(path + "/full");
  for (std::uint32_t more = 0; more < 1000; ++more)
    if (!lend_once(*journal, n + more)) return 3;
  return log_bytes(path) <= kMaxLogBytes ? 0 : 4;
}

}  // namespace

TEST_CASE("journal: thousands of leases on a disk of 12 MiB find space, and the log stays short") {
  const StateDir dir;
  check_on_small_disk(dir.path(), "12m", lend_thousands);
}

TEST_CASE("journal: a disk that another file filled is usable once the file is gone") {
  const StateDir dir;
  check_on_small_disk(dir.path(), "12m", recover_on_full_disk);
}

TEST_CASE("journal: after SIGKILL on a full disk the next start moves the log") {
  const StateDir dir;
  check_on_small_disk(dir.path(), "12m", restart_on_full_disk);
}

TEST_CASE("journal: a log that filled the disk is moved with the space of the reserve") {
  const StateDir dir;
  check_on_small_disk(dir.path(), "12m", restart_on_disk_full_of_log);
}

TEST_CASE("journal: opening it moves the log that a killed broker left") {
  const StateDir dir;
  Batch batch{.rows = {worker_row(1)}, .has_grants = true};
  for (std::uint32_t slot = 0; slot < 3000; ++slot) batch.rows.emplace_back(lease_row(slot));
  const auto write = [&](SqliteJournal& journal) { return journal.write(batch) ? 0 : 1; };
  REQUIRE(in_killed_process(dir.path(), write) == 0);
  REQUIRE(log_bytes(dir.path()) != 0);

  const auto journal = SqliteJournal::open(dir.path()).value();

  CHECK(log_bytes(dir.path()) == 0);
  CHECK(journal->load(kNowUnixS).value().leases.size() == 3000);
}

TEST_CASE("journal: a checkpoint on a connection that never read moves the log") {
  const StateDir dir;
  const auto journal = SqliteJournal::open(dir.path()).value();
  journal->write({.rows = {worker_row(1), lease_row(0)}, .has_grants = true}).value();
  Database other = Database::open(dir.file("journal.db")).value();

  const LogMove move = other.checkpoint(CheckpointMode::Passive).value();

  CHECK(move.pages > 0);
  CHECK(move.is_complete());
}

TEST_CASE("journal: refused grants on a full disk ask the file system for space once") {
  const StateDir dir;
  check_on_small_disk(dir.path(), "12m", [](const std::string& path) {
    const auto journal = SqliteJournal::open(path).value();
    if (!lend_once(*journal, 1)) return 1;
    fill_disk(path + "/full");
    std::uint32_t n = 2;
    while (lend_once(*journal, n) && n < 10000) ++n;  // the rest of the log's last page
    const std::uint64_t before = journal->space_queries();
    for (std::uint32_t more = 0; more < 1000; ++more) {
      const LeaseRow lease = lease_row(n + more);
      if (journal->write({.rows = {lease}, .has_grants = true})) return 2;
      (void)journal->write({.rows = {LeaseGone{lease.id}}});
    }
    return journal->space_queries() - before <= 2 ? 0 : 3;
  });
}

TEST_CASE("journal: while a head waits for the disk, rows are written and heads are asked for") {
  const StateDir dir;
  const auto journal = opened(dir);
  journal->write({.rows = {RevocationRow{.lease = {1, 3}}}}).value();
  const auto test_thread = std::this_thread::get_id();
  std::promise<bool> disk_is_slow;
  std::promise<void> disk_continues;
  journal->audit_head({}, [&](const auto&) {
    const bool is_elsewhere = std::this_thread::get_id() != test_thread;
    disk_is_slow.set_value(is_elsewhere);
    if (is_elsewhere) disk_continues.get_future().wait();
  });
  REQUIRE(disk_is_slow.get_future().get());
  const std::uint64_t before = journal->log_syncs();
  std::promise<std::uint64_t> syncs_at_answer;

  journal->audit_head({}, [&](const auto&) { syncs_at_answer.set_value(journal->log_syncs()); });

  auto answer = syncs_at_answer.get_future();
  CHECK(answer.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  journal->write({.rows = {RevocationRow{.lease = {2, 3}}}}).value();
  CHECK(journal->audit().head().sequence == 2);
  CHECK(journal->log_syncs() == before);
  disk_continues.set_value();
  CHECK(answer.get() == before + 1);
}
