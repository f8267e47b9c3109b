#include "ipc/control/event_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;

namespace {

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

/// What a pipe holds.
std::string read_now(const UniqueFd& pipe) {
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t n = 0; (n = ::read(pipe.get(), part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  return text;
}

/// A log of small files, with steps numbered from 1.
struct SmallLog {
  static constexpr std::uint64_t kMaxBytes = 1000;

  TemporaryDirectory directory = TemporaryDirectory::create("test").value();
  std::string path = directory.file("events.jsonl");
  std::string previous = path + ".1";
  events::EventFile file = events::EventFile::open(path, kMaxBytes).value();
  TimePoint now{1};
  std::uint64_t step = 0;

  Result<std::uint64_t> append() {
    return file.append(events::BatchedDecodeStep{.step = ++step}, now);
  }
  static std::vector<std::uint64_t> steps_in(const std::string& path) {
    std::vector<std::uint64_t> steps;
    const auto all = events::read_event_file(path).value();
    for (const events::StampedEvent& read : all)
      steps.push_back(std::get<events::BatchedDecodeStep>(read.event).step);
    return steps;
  }
};

}  // namespace

TEST_CASE("event file: events of two openings are read back in order") {
  const auto directory = TemporaryDirectory::create("test").value();
  const std::string path = directory.file("events.jsonl");
  for (const std::uint64_t step : {1u, 2u}) {
    auto file = events::EventFile::open(path).value();
    REQUIRE(file.append(events::BatchedDecodeStep{.step = step, .per_seq_leases = {{5, 1}}},
                        TimePoint{static_cast<std::int64_t>(10 * step)}));
  }
  const auto read = events::read_event_file(path);
  REQUIRE(read);
  REQUIRE(read->size() == 2);
  CHECK(read->at(0).at == TimePoint{10});
  const auto& second = std::get<events::BatchedDecodeStep>(read->at(1).event);
  CHECK(second.step == 2);
  CHECK(second.per_seq_leases == std::vector{LeaseId{5, 1}});
}

TEST_CASE("event file: an incomplete last line is left out, any other is an error") {
  const auto directory = TemporaryDirectory::create("test").value();
  const std::string path = directory.file("events.jsonl");
  auto file = events::EventFile::open(path).value();
  REQUIRE(file.append(events::LeaseStateChanged{.lease = {5, 1}}, TimePoint{1}));
  append(path, R"({"event":"lease_st)");
  CHECK(events::read_event_file(path).value().size() == 1);
  append(path, "\n");
  const auto torn_inside = events::read_event_file(path);
  REQUIRE_FALSE(torn_inside);
  CHECK(torn_inside.error().code == Errc::BadRequest);
  CHECK(torn_inside.error().detail.find(":2 ") != std::string::npos);
}

TEST_CASE("event file: a missing file is FileNotFound") {
  CHECK(events::read_event_file("/nowhere/at/all").error().code == Errc::FileNotFound);
  CHECK(events::EventFile::open("/nowhere/at/all").error().code == Errc::FileNotFound);
}

TEST_CASE("event file: a pipe that no process reads loses events, and continues where it can") {
  const auto directory = TemporaryDirectory::create("test").value();
  const std::string path = directory.file("events.fifo");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(events::EventFile::open(path).error().code == Errc::BadRequest);

  const UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  auto file = events::EventFile::open(path).value();
  const events::BatchedDecodeStep event{
      .step = 1, .per_seq_leases = std::vector<LeaseId>(64, {4000, 100'000})};
  TimePoint now{1};
  std::size_t written = 0;
  Result<std::uint64_t> appended = file.append(event, now);
  for (; appended; appended = file.append(event, now)) ++written;
  CHECK(appended.error().code == Errc::DiskFull);
  CHECK(appended.error().detail == "the process that reads the event log does not read");

  std::string text = read_now(reader);
  now = now + events::EventFile::kRetryInterval;
  CHECK(file.append(event, now) == 1);
  text += read_now(reader);
  const std::string copy = directory.file("copy.jsonl");
  append(copy, text);
  CHECK(events::read_event_file(copy).value().size() == written + 1);
}

TEST_CASE("event file: a full disk is DiskFull") {
  auto file = events::EventFile::open("/dev/full").value();
  const auto appended = file.append(events::LeaseStateChanged{.lease = {5, 1}}, TimePoint{1});
  CHECK(appended.error().code == Errc::DiskFull);
}

TEST_CASE("event file: a file beyond its limit is renamed, and two files hold the newest events") {
  SmallLog log;
  while (log.step < 100) REQUIRE(log.append().value() == 0);

  CHECK(std::filesystem::file_size(log.path) <= SmallLog::kMaxBytes);
  CHECK(std::filesystem::file_size(log.previous) <= SmallLog::kMaxBytes);
  std::vector<std::uint64_t> steps = SmallLog::steps_in(log.previous);
  for (const std::uint64_t step : SmallLog::steps_in(log.path)) steps.push_back(step);
  REQUIRE(steps.size() > 2);
  for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i] == 100 - steps.size() + 1 + i);
  const std::filesystem::directory_iterator files(log.directory.path());
  CHECK(std::distance(begin(files), end(files)) == 2);
}

TEST_CASE("event file: a symbolic link, such as /dev/stderr, is written to and never renamed") {
  SmallLog log;
  const std::string link = log.directory.file("link");
  std::filesystem::create_symlink(log.path, link);
  auto file = events::EventFile::open(link, SmallLog::kMaxBytes).value();
  while (std::filesystem::file_size(log.path) <= SmallLog::kMaxBytes)
    REQUIRE(file.append(events::BatchedDecodeStep{.step = 1}, TimePoint{1}));
  CHECK(std::filesystem::is_symlink(link));
  CHECK_FALSE(std::filesystem::exists(link + ".1"));
}

TEST_CASE("event file: a file that was beyond its limit when it was opened is renamed") {
  SmallLog log;
  append(log.path, std::string(2 * SmallLog::kMaxBytes, ' ') + "\n");
  REQUIRE(log.append());
  CHECK(std::filesystem::file_size(log.previous) == 2 * SmallLog::kMaxBytes + 1);
  CHECK(SmallLog::steps_in(log.path) == std::vector<std::uint64_t>{1});
}

TEST_CASE("event file: a file that cannot be renamed does not grow, and is tried again") {
  SmallLog log;
  const std::string obstacle = log.previous + "/obstacle";
  std::filesystem::create_directories(obstacle);
  while (log.append()) REQUIRE(log.step < 100);
  const std::uint64_t failed_step = log.step;
  log.now = log.now + events::EventFile::kRetryInterval;
  CHECK_FALSE(log.append());
  CHECK(std::filesystem::file_size(log.path) <= SmallLog::kMaxBytes);

  std::filesystem::remove_all(log.previous);
  CHECK(log.append().value() == 0);  // too early
  log.now = log.now + events::EventFile::kRetryInterval;
  CHECK(log.append().value() == 3);
  CHECK(log.append().value() == 0);

  CHECK(SmallLog::steps_in(log.previous).back() == failed_step - 1);
  CHECK(SmallLog::steps_in(log.path) == std::vector{log.step - 1, log.step});
}

TEST_CASE("event file: a new file that cannot be created is tried again after the rename") {
  SmallLog log;
  const std::string elsewhere = log.directory.path().string() + "-moved";
  std::filesystem::rename(log.directory.path(), elsewhere);
  while (log.append()) REQUIRE(log.step < 100);
  std::filesystem::rename(elsewhere, log.directory.path());
  std::filesystem::rename(log.path, log.previous);  // as if the rename had succeeded

  log.now = log.now + events::EventFile::kRetryInterval;
  CHECK(log.append().value() == 1);

  CHECK(SmallLog::steps_in(log.path) == std::vector{log.step});
  CHECK(SmallLog::steps_in(log.previous).back() == log.step - 2);
}

TEST_CASE("event file: a full disk leaves no incomplete line, and the log continues later") {
  SmallLog log;
  REQUIRE(log.append());
  {
    const testing::FileSizeLimit full(std::filesystem::file_size(log.path) + 10);
    CHECK(log.append().error().code == Errc::DiskFull);
    CHECK(log.append().value() == 0);
    log.now = log.now + events::EventFile::kRetryInterval;
    CHECK(log.append().error().code == Errc::DiskFull);
  }
  log.now = log.now + events::EventFile::kRetryInterval;
  CHECK(log.append().value() == 3);
  CHECK(SmallLog::steps_in(log.path) == std::vector<std::uint64_t>{1, 5});
}
