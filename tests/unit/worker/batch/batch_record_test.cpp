#include "worker/batch/batch_record.hpp"

#include <catch2/catch.hpp>

#include "worker/batch/record_json.hpp"

namespace leasehold::batch {
namespace {

BatchRecord batch_in(Status status) {
  BatchRecord batch{.id = "batch_1", .owner = {{"ann"}, 1}, .key = {"k"}, .batch_key = "lhb-k-1"};
  batch.status = status;
  batch.reached_at.emplace(Status::Validating, 10);
  return batch;
}

}  // namespace

TEST_CASE("batch record: a batch takes only the arrows of its diagram") {
  const std::vector<std::pair<Status, Status>> arrows{
      {Status::Validating, Status::InProgress}, {Status::Validating, Status::Failed},
      {Status::Validating, Status::Cancelling}, {Status::InProgress, Status::Finalizing},
      {Status::InProgress, Status::Failed},     {Status::InProgress, Status::Cancelling},
      {Status::Finalizing, Status::Completed},  {Status::Cancelling, Status::Cancelled}};
  for (int from = 0; from < kStatusCount; ++from) {
    for (int to = 0; to < kStatusCount; ++to) {
      const std::pair arrow(static_cast<Status>(from), static_cast<Status>(to));
      BatchRecord batch = batch_in(arrow.first);
      const bool is_arrow = std::ranges::find(arrows, arrow) != arrows.end();
      CHECK(advance(batch, arrow.second, 20) == is_arrow);
      CHECK(batch.status == (is_arrow ? arrow.second : arrow.first));
      CHECK(batch.reached_at.contains(arrow.second) ==
            (is_arrow || arrow.second == Status::Validating));
    }
  }
  BatchRecord expired = batch_in(Status::Finalizing);
  expired.has_expired = true;
  CHECK_FALSE(advance(expired, Status::Completed, 20));
  CHECK(advance(expired, Status::Expired, 20));
}

TEST_CASE("batch record: the form on disk is read back, and a wrong field is named") {
  BatchRecord batch = batch_in(Status::InProgress);
  batch.reached_at.emplace(Status::InProgress, 11);
  batch.counts = {.total = 3, .completed = 1, .failed = 1};
  batch.errors = {{.code = "c", .message = "m", .param = "p", .line = 4}};
  batch.metadata = {{"a", "b"}};
  const auto read = batch_from_disk(to_disk(batch));
  REQUIRE(read);
  CHECK(to_disk(*read) == to_disk(batch));
  const FileRecord file{.id = "file-1", .owner = {{"ann"}, 1}, .filename = "f", .size_bytes = 7};
  CHECK(to_disk(file_from_disk(to_disk(file)).value()) == to_disk(file));

  Json wrong = to_disk(batch);
  wrong["status"] = "sleeping";
  CHECK_THAT(batch_from_disk(wrong).error().detail, Catch::Contains("status"));
  wrong.erase("total");
  CHECK(batch_from_disk(wrong).error().code == Errc::FileCorrupt);
  CHECK(batch_from_disk(Json(3)).error().code == Errc::FileCorrupt);
}

TEST_CASE("batch record: clients see an end once it is on disk") {
  BatchRecord stored = batch_in(Status::Validating);
  BatchRecord running = stored;
  REQUIRE(advance(running, Status::InProgress, 20));
  running.counts.completed = 3;
  CHECK(as_seen(stored, running).status == Status::InProgress);
  stored = running;
  running.counts.completed = 4;
  REQUIRE(advance(running, Status::Failed, 30));
  const BatchRecord seen = as_seen(stored, running);
  CHECK(seen.status == Status::InProgress);
  CHECK_FALSE(seen.reached_at.contains(Status::Failed));
  CHECK(seen.counts.completed == 4);
  CHECK(as_seen(running, running).status == Status::Failed);
}

TEST_CASE("batch record: clients see OpenAI's form, and neither keys nor missing files") {
  const BatchRecord batch = batch_in(Status::Validating);
  const Json shown = to_api(batch, false, false);
  CHECK(shown["object"] == "batch");
  CHECK(shown["status"] == "validating");
  CHECK(shown["created_at"] == 10);
  CHECK(shown["output_file_id"].is_null());
  CHECK(shown["completed_at"].is_null());
  CHECK(shown["errors"].is_null());
  CHECK_THAT(shown.dump(), !Catch::Contains("lhb-"));
}

}  // namespace leasehold::batch
