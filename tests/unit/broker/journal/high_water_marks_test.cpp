/// The marks that survive the loss of a journal.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/unit/broker/journal/state_dir.hpp"

using namespace leasehold;
using namespace leasehold::journal;

namespace {

constexpr Reserved kUsed{2048, 1024, 65'536, 1024};

struct UsedJournal {
  StateDir dir;
  UsedJournal() {
    SqliteJournal::open(dir.path()).value()->write({.rows = {kUsed}, .durable = true}).value();
  }
  Reserved read_again() const {
    return SqliteJournal::open(dir.path()).value()->load().value().reserved;
  }
};

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
  constexpr Reserved kLater{4096, 1024, 65'536, 2048};
  SqliteJournal::open(world.dir.path()).value()->write({.rows = {kLater}, .durable = true}).value();
  std::filesystem::rename(world.dir.file("older"), world.dir.file("journal.db"));
  CHECK(world.read_again() == kLater);
}

TEST_CASE("journal: marks of a journal without a marks file count") {
  const UsedJournal world;
  std::filesystem::remove(world.dir.file("high_water_marks"));
  CHECK(world.read_again() == kUsed);

  auto journal = SqliteJournal::open(world.dir.path()).value();
  REQUIRE(journal->load().has_value());
  journal->write({.rows = {worker_row(1)}}).value();
  CHECK(HighWaterMarksFile::open(world.dir.file("high_water_marks")).value().marks() == kUsed);
}

TEST_CASE("journal: a torn or foreign marks file is refused") {
  const UsedJournal world;
  const char* text = GENERATE("", "2048 1024 655", "1 2 3 4 5\n", "0x10 0 0 0\n", "-1 0 0 0\n",
                              "999999999999999 0 0 0\n");
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
