#include "worker/batch/batch_store.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary_directory.hpp"
#include "worker/batch/disk_file.hpp"

namespace leasehold::batch {
namespace {

const Owner kAnn{{"ann"}, 1};
const Owner kBob{{"bob"}, 2};

struct Directory {
  TemporaryDirectory parent = TemporaryDirectory::create("batches").value();
  std::string path = parent.file("dir");
  StoreLimits limits{.quota_bytes = 1000, .max_age_s = 100, .max_files = 4, .max_batches = 2};

  std::unique_ptr<BatchStore> open() const { return BatchStore::open(path, limits).value(); }
  std::size_t count() const {
    using std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(directory_iterator(path), {}));
  }
};

Result<FileRecord> put(BatchStore& store, const std::string& text, const Owner& owner = kAnn,
                       std::int64_t now = 10) {
  const auto upload = TRY(store.begin_upload(owner));
  TRY(upload->add(text));
  return store.keep(*upload, "../../x", now);
}

BatchRecord batch_of(const std::string& file) {
  BatchRecord batch{.owner = kAnn, .key = {"k"}, .input_file = file};
  batch.reached_at.emplace(Status::Validating, 10);
  return batch;
}

std::string content(const BatchStore& store, const std::string& id) {
  return read_at(store.read_file(id).value().get(), 0, 4096).value();
}

}  // namespace

TEST_CASE("batch store: files are kept for the next worker, private to their tenant") {
  const Directory directory;
  std::string id;
  {
    const auto store = directory.open();
    id = put(*store, "hello").value().id;
    CHECK(store->find_file(kAnn, id).value().filename == "../../x");
    struct stat status{};
    REQUIRE(::stat((directory.path + "/" + id + ".data").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    CHECK(store->find_file(kBob, id).error().code == Errc::UnknownRequest);
    CHECK(store->remove_file(kBob, id).error().detail ==
          store->remove_file(kBob, id).error().detail);
    CHECK(BatchStore::open(directory.path, directory.limits).error().code == Errc::SocketInUse);
  }
  const auto store = directory.open();
  CHECK(content(*store, id) == "hello");
  CHECK(store->list_files(kBob, {}).records.empty());
  REQUIRE(store->remove_file(kAnn, id));
  CHECK(store->find_file(kAnn, id).error().code == Errc::UnknownRequest);
  CHECK(directory.count() == 1);  // the lock
}

TEST_CASE("batch store: nothing of an upload beyond the quota is kept or charged") {
  const Directory directory;
  const auto store = directory.open();
  REQUIRE(put(*store, std::string(600, 'x')));
  CHECK(put(*store, std::string(401, 'x')).error().code == Errc::MessageTooLarge);
  CHECK(store->list_files(kAnn, {}).records.size() == 1);
  CHECK(put(*store, std::string(400, 'x')));
  CHECK(put(*store, std::string(1000, 'x'), kBob));
  CHECK(directory.count() == 1 + 3 * 2);
}

TEST_CASE("batch store: an upload that finds the disk full is refused, and leaves nothing") {
  const Directory directory;
  const auto store = directory.open();
  {
    const testing::FileSizeLimit full(100);
    CHECK(put(*store, std::string(500, 'x')).error().code == Errc::DiskFull);
  }
  CHECK(directory.count() == 1);
  CHECK(put(*store, std::string(1000, 'x')));  // all of the quota was given back
}

TEST_CASE("batch store: a torn result is cut off, and a refused one leaves the file as it was") {
  const Directory directory;
  BatchRecord batch;
  {
    const auto store = directory.open();
    batch = store->add_batch(batch_of(put(*store, "in").value().id)).value();
    const UniqueFd results = store->open_results(batch.output_file).value();
    REQUIRE(store->append_result(kAnn, results, "one\n"));
    {
      const testing::FileSizeLimit full(6);
      CHECK(store->append_result(kAnn, results, "second\n").error().code == Errc::DiskFull);
    }
    CHECK(content(*store, batch.output_file) == "one\n");
    std::ofstream(directory.path + "/" + batch.output_file + ".data", std::ios::app) << "tor";
  }
  const auto store = directory.open();
  REQUIRE(store->unfinished().size() == 1);
  const UniqueFd results = store->open_results(batch.output_file).value();
  REQUIRE(store->append_result(kAnn, results, "two\n"));
  CHECK(content(*store, batch.output_file) == "one\ntwo\n");

  CHECK_FALSE(store->has_file(batch.output_file));
  REQUIRE(store->open_results(batch.error_file));
  REQUIRE(store->publish_results(batch, batch.output_file, 20));
  REQUIRE(store->publish_results(batch, batch.error_file, 20));
  CHECK(store->find_file(kAnn, batch.output_file).value().purpose == "batch_output");
  CHECK_FALSE(store->has_file(batch.error_file));  // it is empty
}

TEST_CASE("batch store: results are charged to the tenant, also by the next worker") {
  const Directory directory;
  std::string results_id;
  {
    const auto store = directory.open();
    const BatchRecord batch = store->add_batch(batch_of(put(*store, "in").value().id)).value();
    results_id = batch.output_file;
    const UniqueFd results = store->open_results(results_id).value();
    REQUIRE(store->append_result(kAnn, results, std::string(899, 'x') + "\n"));
  }
  const auto store = directory.open();
  const UniqueFd results = store->open_results(results_id).value();
  CHECK(store->append_result(kAnn, results, std::string(99, 'x') + "\n").error().code ==
        Errc::MessageTooLarge);
  CHECK(store->append_result(kAnn, results, std::string(97, 'x') + "\n"));
}

TEST_CASE("batch store: a file that a batch reads stays until the batch has ended") {
  const Directory directory;
  const auto store = directory.open();
  const std::string file = put(*store, "in").value().id;
  BatchRecord batch = store->add_batch(batch_of(file)).value();
  CHECK(store->remove_file(kAnn, file).error().code == Errc::RequestIdConflict);
  store->remove_expired(1'000);
  CHECK(store->has_file(file));
  batch.status = Status::Cancelled;
  batch.reached_at.emplace(Status::Cancelled, 60);
  REQUIRE(store->update(batch));
  store->remove_expired(109);
  CHECK(store->has_file(file));
  store->remove_expired(110);
  CHECK_FALSE(store->has_file(file));
  store->remove_expired(159);  // a client can read of the end for as long
  CHECK(store->list_batches(kAnn, {}).records.size() == 1);
  store->remove_expired(160);
  CHECK(store->list_batches(kAnn, {}).records.empty());
  CHECK(directory.count() == 1);
}

TEST_CASE("batch store: a tenant has a limit of files and of batches") {
  const Directory directory;
  const auto store = directory.open();
  for (int i = 0; i < 4; ++i) REQUIRE(put(*store, "x"));
  CHECK(put(*store, "x").error().code == Errc::MessageTooLarge);
  const std::string file = store->list_files(kAnn, {}).records.front().id;
  for (int i = 0; i < 2; ++i) REQUIRE(store->add_batch(batch_of(file)));
  CHECK(store->add_batch(batch_of(file)).error().code == Errc::MessageTooLarge);
}

TEST_CASE("batch store: a directory of others, and a damaged record, are typed errors") {
  const Directory directory;
  {
    const auto store = directory.open();
  }
  std::ofstream(directory.path + "/batch_1.batch") << "{}";
  std::filesystem::permissions(directory.path + "/batch_1.batch",
                               std::filesystem::perms::owner_read);
  const auto damaged = BatchStore::open(directory.path, directory.limits);
  CHECK(damaged.error().code == Errc::FileCorrupt);
  CHECK_THAT(damaged.error().detail, Catch::Contains("batch_1.batch"));
  std::filesystem::permissions(directory.path, std::filesystem::perms::all);
  CHECK(BatchStore::open(directory.path, directory.limits).error().code == Errc::PermissionDenied);
}

TEST_CASE("batch store: a list has the newest first, and pages of it follow each other") {
  const Directory directory;
  const auto store = directory.open();
  std::vector<std::string> ids;
  for (const std::int64_t at : {10, 30, 20}) ids.push_back(put(*store, "x", kAnn, at).value().id);
  const auto list = [&](const RecordQuery& query) {
    std::vector<std::string> found;
    for (const FileRecord& file : store->list_files(kAnn, query).records) found.push_back(file.id);
    return found;
  };
  CHECK(list({}) == std::vector{ids[1], ids[2], ids[0]});
  CHECK(list({.is_oldest_first = true}) == std::vector{ids[0], ids[2], ids[1]});
  CHECK(list({.limit = 2}) == std::vector{ids[1], ids[2]});
  CHECK(store->list_files(kAnn, {.limit = 2}).has_more);
  CHECK(list({.after = ids[2], .limit = 2}) == std::vector{ids[0]});
  CHECK_FALSE(store->list_files(kAnn, {.after = ids[2], .limit = 1}).has_more);
  CHECK(list({.after = "unknown"}).empty());
  CHECK(list({.purpose = "batch_output"}).empty());
}

TEST_CASE("batch store: a tenant that is admitted again has none of the former one's files") {
  const Directory directory;
  const Owner again{kAnn.tenant, kAnn.admitted_unix_ms + 1};
  BatchRecord running;
  {
    const auto store = directory.open();
    REQUIRE(put(*store, std::string(900, 'x')));
    running = store->add_batch(batch_of(put(*store, "in").value().id)).value();
    REQUIRE(put(*store, std::string(900, 'y'), again));  // its quota is its own
  }
  const auto store = directory.open();
  CHECK(store->list_files(again, {}).records.size() == 1);
  CHECK(store->find_batch(again, running.id).error().code == Errc::UnknownRequest);
  CHECK(store->owners() == std::vector{kAnn, again});

  CHECK(store->remove_owner(kAnn).files == 1);  // the other one is read
  CHECK(store->find_batch(kAnn, running.id));
  running.status = Status::Failed;
  REQUIRE(store->update(running));
  const auto removed = store->remove_owner(kAnn);
  CHECK(removed.files == 1);
  CHECK(removed.batches == 1);
  CHECK(store->owners() == std::vector{again});
  CHECK(directory.count() == 1 + 2);  // the lock, and the file of the new tenant
}

}  // namespace leasehold::batch
