/// The marks that survive the loss of a journal.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/unit/broker/journal/state_dir.hpp"

using namespace leasehold;
using namespace leasehold::journal;

namespace {

constexpr HighWaterMarks kUsed{2048, 1024, 65'536, 1024};

struct UsedJournal {
  StateDir dir;
  UsedJournal() { reserve(kUsed); }
  void reserve(const HighWaterMarks& marks) const {
    SqliteJournal::open(dir.path()).value()->write({.rows = {marks}, .durable = true}).value();
  }
  HighWaterMarks read_again(std::int64_t now_unix_s = kNowUnixS) const {
    return SqliteJournal::open(dir.path()).value()->load(now_unix_s).value().reserved;
  }
};

constexpr const char* kFiles[] = {"journal.db", "journal.reserve", "high_water_marks"};

/// Copies the files as `cp` does: into those that exist, so that their inodes stay.
void copy_files(const StateDir& from, const StateDir& to) {
  for (const char* name : kFiles) {
    if (!std::filesystem::exists(from.file(name))) continue;
    std::ifstream source(from.file(name), std::ios::binary);
    std::ofstream(to.file(name), std::ios::binary | std::ios::trunc) << source.rdbuf();
  }
}

bool is_above(const HighWaterMarks& a, const HighWaterMarks& b) {
  return a.generations > b.generations && a.attachments > b.attachments && a.extents > b.extents &&
         a.regions > b.regions;
}

Errc open_error(const StateDir& dir) {
  const auto opened = SqliteJournal::open(dir.path());
  return opened ? Errc::BadRequest : opened.error().code;
}

}  // namespace

TEST_CASE("journal: a new journal in the same directory reuses no id") {
  const UsedJournal world;
  std::filesystem::remove(world.dir.file("journal.db"));
  CHECK(world.read_again() == kUsed);
}

TEST_CASE("journal: an older copy of the journal reuses no id") {
  const UsedJournal world;
  std::filesystem::copy_file(world.dir.file("journal.db"), world.dir.file("older"));
  constexpr HighWaterMarks kLater{4096, 1024, 65'536, 2048};
  SqliteJournal::open(world.dir.path()).value()->write({.rows = {kLater}, .durable = true}).value();
  std::filesystem::rename(world.dir.file("older"), world.dir.file("journal.db"));
  CHECK(world.read_again() == kLater);
}

TEST_CASE("journal: a restored backup reuses no id that was reserved after it") {
  const UsedJournal world;
  const StateDir backup;
  copy_files(world.dir, backup);
  constexpr HighWaterMarks kLater{1'000'000, 900'000, 500'000'000, 800'000};
  world.reserve(kLater);
  SECTION("in the directory where it was made, into its files") {
    copy_files(backup, world.dir);
    CHECK(is_above(world.read_again(), kLater));
  }
  SECTION("in an empty directory, and again later") {
    const StateDir next;
    copy_files(backup, next);
    auto journal = SqliteJournal::open(next.path()).value();
    const HighWaterMarks first = journal->load(kNowUnixS).value().reserved;
    CHECK(journal->was_restored());
    CHECK(is_above(first, kLater));
    const HighWaterMarks used{first.generations + 1024, first.attachments + 1024,
                              first.extents + 65'536, first.regions + 1024};
    journal->write({.rows = {used}, .durable = true}).value();

    const StateDir last;
    copy_files(backup, last);
    const auto a_second_later = kNowUnixS + 1;
    CHECK(is_above(SqliteJournal::open(last.path()).value()->load(a_second_later).value().reserved,
                   used));
  }
  SECTION("without its marks") {
    const StateDir next;
    copy_files(backup, next);
    std::filesystem::remove(next.file("high_water_marks"));
    CHECK(is_above(SqliteJournal::open(next.path()).value()->load(kNowUnixS).value().reserved,
                   kLater));
  }
}

TEST_CASE("journal: a restored state is the original once it has written its marks") {
  const UsedJournal world;
  const StateDir restored;
  copy_files(world.dir, restored);
  auto journal = SqliteJournal::open(restored.path()).value();
  const HighWaterMarks first = journal->load(kNowUnixS).value().reserved;
  journal->write({.rows = {worker_row(1)}}).value();
  journal.reset();

  auto again = SqliteJournal::open(restored.path()).value();

  CHECK(again->load(kNowUnixS + 1000).value().reserved == first);
  CHECK_FALSE(again->was_restored());
}

TEST_CASE("journal: a clock before 2026 takes no id back") {
  const UsedJournal world;
  std::filesystem::remove(world.dir.file("high_water_marks"));
  CHECK(world.read_again(0) == kUsed);
  CHECK(ids_issued_before(std::int64_t{1} << 40).generations == 1ull << 48);
}

TEST_CASE("journal: marks of a journal without a marks file count") {
  const UsedJournal world;
  std::filesystem::remove(world.dir.file("high_water_marks"));
  const HighWaterMarks read = world.read_again();
  CHECK(is_above(read, kUsed));

  auto journal = SqliteJournal::open(world.dir.path()).value();
  REQUIRE(journal->load(kNowUnixS).has_value());
  journal->write({.rows = {worker_row(1)}}).value();
  CHECK(HighWaterMarksFile::open(world.dir.file("high_water_marks")).value().marks() == read);
}

TEST_CASE("journal: a torn or foreign marks file is refused") {
  const UsedJournal world;
  const char* text = GENERATE("", "2048 1024 655", "1 2 3 4\n", "1 2 3 4 5\n", "1 2 3 4 5 6",
                              "0x10 0 0 0\n", "-1 0 0 0\n", "999999999999999 0 0 0\n");
  CAPTURE(text);
  std::ofstream(world.dir.file("high_water_marks"), std::ios::trunc) << text;
  CHECK(open_error(world.dir) == Errc::FileCorrupt);
}

TEST_CASE("journal: a log without its database is refused and kept") {
  const StateDir dir;
  auto journal = SqliteJournal::open(dir.path()).value();
  journal->write({.rows = {kUsed, worker_row(1)}, .durable = true}).value();
  const StateDir crashed;
  const std::string log = crashed.file("journal.db-wal");
  std::filesystem::copy_file(dir.file("journal.db-wal"), log);
  const auto log_bytes = std::filesystem::file_size(log);
  SECTION("empty") {
    const std::ofstream empty(crashed.file("journal.db"));
  }
  SECTION("missing") {}

  CHECK(open_error(crashed) == Errc::FileCorrupt);
  CHECK(std::filesystem::file_size(log) == log_bytes);
  std::filesystem::remove(log);
  CHECK(SqliteJournal::open(crashed.path()).has_value());
}
