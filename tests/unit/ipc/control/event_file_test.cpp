#include "ipc/control/event_file.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "common/temporary_directory.hpp"

using namespace leasehold;

namespace {

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

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

TEST_CASE("event file: a full disk is DiskFull") {
  auto file = events::EventFile::open("/dev/full").value();
  const auto appended = file.append(events::LeaseStateChanged{.lease = {5, 1}}, TimePoint{1});
  CHECK(appended.error().code == Errc::DiskFull);
}
