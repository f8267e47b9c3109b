#include "worker/batch/batch_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "common/machine/private_directory.hpp"
#include "common/machine/replace_file.hpp"
#include "common/machine/text_file.hpp"
#include "common/random.hpp"
#include "common/utf8.hpp"
#include "worker/batch/disk_file.hpp"
#include "worker/batch/record_json.hpp"

namespace leasehold::batch {
namespace {

constexpr const char* kData = ".data";
constexpr const char* kFile = ".file";
constexpr const char* kBatch = ".batch";
constexpr std::size_t kMaxRecordBytes = 1 << 20;

std::string new_id(const char* prefix) {
  return fmt::format("{}{:016x}{:08x}", prefix, random_bits(), random_bits() & 0xFFFFFFFF);
}

std::unexpected<Error> unknown(const char* what, const std::string& id) {
  return fail(Errc::UnknownRequest,
              fmt::format("no {0} {1}; GET /v1/{2} lists those that exist", what,
                          printable_excerpt(id), what[0] == 'f' ? "files" : "batches"));
}

Result<UniqueFd> lock_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_file("create " + directory, errno);
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) return fail_file("stat of " + directory, errno);
  TRY(check_private_directory(status, "batch", directory));
  UniqueFd fd = TRY(open_file(directory + "/lock", O_RDWR | O_CREAT));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return fail_file("lock " + directory, errno);
  return fail(Errc::SocketInUse, fmt::format("another worker uses {}; end it, or choose another "
                                             "--batch-dir",
                                             directory));
}

/// When the batch entered its newest state.
std::int64_t last_change(const BatchRecord& batch) {
  std::int64_t last = 0;
  for (const auto& [status, at] : batch.reached_at) last = std::max(last, at);
  return last;
}

}  // namespace

// ---------------------------------------------------------------------------------------- opening

Result<std::unique_ptr<BatchStore>> BatchStore::open(const std::string& directory,
                                                     const StoreLimits& limits) {
  UniqueFd lock = TRY(lock_directory(directory));
  std::unique_ptr<BatchStore> store(new BatchStore(directory, limits, std::move(lock)));
  TRY(store->load());
  return store;
}

Result<void> BatchStore::load() {
  const std::vector<std::string> names = TRY(names_in(directory_));
  for (const std::string& name : names) TRY(load_record(name));
  remove_strays(names);
  for (const auto& [id, file] : files_) used_bytes_[file.owner] += file.size_bytes;
  for (const auto& [id, batch] : batches_) {
    if (is_final(batch.status)) continue;
    for (const std::string& results : {batch.output_file, batch.error_file}) {
      struct stat status{};
      const bool is_there = ::stat(path_of(results, kData).c_str(), &status) == 0;
      if (is_there && !files_.contains(results))
        used_bytes_[batch.owner] += static_cast<std::uint64_t>(status.st_size);
    }
  }
  return {};
}

Result<void> BatchStore::load_record(const std::string& name) {
  const bool is_file = name.ends_with(kFile);
  if (!is_file && !name.ends_with(kBatch)) return {};
  const std::string path = directory_ + "/" + name;
  const Json json = Json::parse(TRY(read_trusted_file(path, kMaxRecordBytes)), nullptr, false);
  const auto loaded = [&]() -> Result<void> {
    if (is_file) {
      FileRecord file = TRY(file_from_disk(json));
      files_.insert_or_assign(file.id, std::move(file));
    } else {
      BatchRecord batch = TRY(batch_from_disk(json));
      batches_.insert_or_assign(batch.id, std::move(batch));
    }
    return {};
  }();
  if (loaded) return {};
  return fail(Errc::FileCorrupt,
              fmt::format("{}: {}; remove the file", path, loaded.error().detail));
}

/// Uploads that were cut off, and replacements that were not finished.
void BatchStore::remove_strays(const std::vector<std::string>& names) {
  std::set<std::string> used;
  for (const auto& [id, file] : files_) used.insert(id + kData);
  for (const auto& [id, batch] : batches_) {
    if (is_final(batch.status)) continue;
    used.insert(batch.output_file + kData);
    used.insert(batch.error_file + kData);
  }
  for (const std::string& name : names) {
    const bool is_stray =
        name.ends_with(".next") || (name.ends_with(kData) && !used.contains(name));
    if (is_stray) (void)::unlink((directory_ + "/" + name).c_str());
  }
}

std::string BatchStore::path_of(const std::string& id, const char* kind) const {
  return directory_ + "/" + id + kind;
}

// ------------------------------------------------------------------------------------------ quota

Result<void> BatchStore::charge(const Owner& owner, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  std::uint64_t& used = used_bytes_[owner];
  if (used + bytes > limits_.quota_bytes) {
    return fail(Errc::MessageTooLarge,
                fmt::format("the files of tenant {} have {} bytes of at most {}; delete some, or "
                            "ask the operator for a larger --batch-quota",
                            owner.tenant.value, used, limits_.quota_bytes));
  }
  used += bytes;
  return {};
}

void BatchStore::give_back(const Owner& owner, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  std::uint64_t& used = used_bytes_[owner];
  used -= std::min(used, bytes);
}

// ------------------------------------------------------------------------------------------ files

BatchStore::Upload::~Upload() {
  if (is_kept_) return;
  (void)::unlink(store_.path_of(id_, kData).c_str());
  store_.give_back(owner_, size_bytes_);
}

Result<void> BatchStore::Upload::add(std::string_view bytes) {
  TRY(store_.charge(owner_, bytes.size()));
  size_bytes_ += bytes.size();  // given back with the upload, also if the write fails
  return write_all(fd_.get(), bytes, id_);
}

Result<std::unique_ptr<BatchStore::Upload>> BatchStore::begin_upload(const Owner& owner) {
  const auto n_files = [&] {
    const std::scoped_lock lock(mutex_);
    return count_of(files_, owner);
  }();
  if (n_files >= limits_.max_files) {
    return fail(Errc::MessageTooLarge, fmt::format("tenant {} has {} files; delete some",
                                                   owner.tenant.value, limits_.max_files));
  }
  std::string id = new_id("file-");
  UniqueFd fd = TRY(open_file(path_of(id, kData), O_WRONLY | O_CREAT | O_EXCL));
  return std::make_unique<Upload>(*this, owner, std::move(id), std::move(fd));
}

Result<FileRecord> BatchStore::keep(Upload& upload, const std::string& filename,
                                    std::int64_t now_unix_s, std::int64_t expires_at) {
  const std::int64_t last = now_unix_s + limits_.max_age_s;
  FileRecord file{.id = upload.id_,
                  .owner = upload.owner_,
                  .filename = filename,
                  .purpose = "batch",
                  .size_bytes = upload.size_bytes_,
                  .created_at = now_unix_s,
                  .expires_at = expires_at == 0 ? last : std::min(expires_at, last)};
  TRY(sync(upload.fd_.get()));
  TRY(replace_file(path_of(file.id, kFile), to_disk(file).dump()));
  upload.is_kept_ = true;
  const std::scoped_lock lock(mutex_);
  files_.insert_or_assign(file.id, file);
  return file;
}

Result<FileRecord> BatchStore::find_file(const Owner& owner, const std::string& id) const {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end() || found->second.owner != owner) return unknown("file", id);
  return found->second;
}

bool BatchStore::has_file(const std::string& id) const {
  const std::scoped_lock lock(mutex_);
  return files_.contains(id);
}

Page<FileRecord> BatchStore::list_files(const Owner& owner, const RecordQuery& query) const {
  const std::scoped_lock lock(mutex_);
  return page_of(files_, owner, query);
}

/// Precondition: `mutex_` is held.
bool BatchStore::is_read(const std::string& file) const {
  return std::ranges::any_of(batches_, [&](const auto& each) {
    return each.second.input_file == file && !is_final(each.second.status);
  });
}

Result<void> BatchStore::remove_file(const Owner& owner, const std::string& id) {
  TRY(find_file(owner, id));
  const std::scoped_lock lock(mutex_);
  if (is_read(id)) {
    return fail(Errc::RequestIdConflict,
                fmt::format("a batch reads file {}; cancel the batch first", id));
  }
  erase_file(id);
  return {};
}

/// The record goes first: a file exists while it has one. Precondition: `mutex_` is held.
void BatchStore::erase_file(const std::string& id) {
  const auto found = files_.find(id);
  if (found == files_.end()) return;
  (void)::unlink(path_of(id, kFile).c_str());
  (void)::unlink(path_of(id, kData).c_str());
  std::uint64_t& used = used_bytes_[found->second.owner];
  used -= std::min(used, found->second.size_bytes);
  files_.erase(found);
}

Result<UniqueFd> BatchStore::read_file(const std::string& id) const {
  return open_file(path_of(id, kData), O_RDONLY);
}

// ---------------------------------------------------------------------------------------- batches

Result<BatchRecord> BatchStore::add_batch(BatchRecord batch) {
  const auto n_batches = [&] {
    const std::scoped_lock lock(mutex_);
    return count_of(batches_, batch.owner);
  }();
  if (n_batches >= limits_.max_batches) {
    return fail(Errc::MessageTooLarge,
                fmt::format("tenant {} has {} batches; ended ones are removed at their age",
                            batch.owner.tenant.value, limits_.max_batches));
  }
  batch.id = new_id("batch_");
  batch.output_file = new_id("file-");
  batch.error_file = new_id("file-");
  TRY(update(batch));
  return batch;
}

Result<BatchRecord> BatchStore::find_batch(const Owner& owner, const std::string& id) const {
  const std::scoped_lock lock(mutex_);
  const auto found = batches_.find(id);
  if (found == batches_.end() || found->second.owner != owner) return unknown("batch", id);
  return found->second;
}

Page<BatchRecord> BatchStore::list_batches(const Owner& owner, const RecordQuery& query) const {
  const std::scoped_lock lock(mutex_);
  return page_of(batches_, owner, query);
}

std::vector<BatchRecord> BatchStore::unfinished() const {
  const std::scoped_lock lock(mutex_);
  std::vector<BatchRecord> found;
  for (const auto& [id, batch] : batches_)
    if (!is_final(batch.status)) found.push_back(batch);
  std::ranges::stable_sort(found, {}, [](const BatchRecord& batch) { return batch.created_at(); });
  return found;
}

Result<void> BatchStore::update(const BatchRecord& batch) {
  TRY(replace_file(path_of(batch.id, kBatch), to_disk(batch).dump()));
  const std::scoped_lock lock(mutex_);
  batches_.insert_or_assign(batch.id, batch);
  return {};
}

// ---------------------------------------------------------------------------------------- results

Result<UniqueFd> BatchStore::open_results(const std::string& id) const {
  UniqueFd fd = TRY(open_file(path_of(id, kData), O_RDWR | O_CREAT | O_APPEND));
  const std::uint64_t whole = TRY(whole_lines(fd.get()));
  if (::ftruncate(fd.get(), static_cast<off_t>(whole)) != 0)
    return fail_file("cut off a torn line of " + path_of(id, kData), errno);
  return fd;
}

Result<void> BatchStore::append_result(const Owner& owner, const UniqueFd& results,
                                       std::string_view line) {
  TRY(charge(owner, line.size()));
  const auto appended = [&]() -> Result<void> {
    const std::uint64_t size = TRY(size_of(results.get()));
    return append_all(results.get(), line, size, "the results of a batch");
  }();
  if (!appended) give_back(owner, line.size());
  return appended;
}

Result<void> BatchStore::publish_results(const BatchRecord& batch, const std::string& id,
                                         std::int64_t now_unix_s) {
  if (has_file(id)) return {};  // a worker that ended has published it
  const UniqueFd fd = TRY(open_results(id));
  const std::uint64_t size = TRY(size_of(fd.get()));
  if (size == 0) {
    (void)::unlink(path_of(id, kData).c_str());
    return {};
  }
  TRY(sync(fd.get()));
  const char* const kind = id == batch.output_file ? "output" : "error";
  FileRecord file{.id = id,
                  .owner = batch.owner,
                  .filename = fmt::format("{}_{}.jsonl", batch.id, kind),
                  .purpose = "batch_output",
                  .size_bytes = size,
                  .created_at = now_unix_s,
                  .expires_at = now_unix_s + limits_.max_age_s};
  TRY(replace_file(path_of(id, kFile), to_disk(file).dump()));
  const std::scoped_lock lock(mutex_);
  files_.insert_or_assign(id, std::move(file));
  return {};
}

std::vector<std::string> BatchStore::unread_files(
    const std::function<bool(const FileRecord&)>& is_old) const {
  std::vector<std::string> found;
  for (const auto& [id, file] : files_)
    if (is_old(file) && !is_read(id)) found.push_back(id);
  return found;
}

std::size_t BatchStore::erase_ended(const std::function<bool(const BatchRecord&)>& is_old) {
  return std::erase_if(batches_, [&](const auto& each) {
    const BatchRecord& batch = each.second;
    const bool erased = is_final(batch.status) && is_old(batch);
    if (erased) (void)::unlink(path_of(batch.id, kBatch).c_str());
    return erased;
  });
}

void BatchStore::remove_expired(std::int64_t now_unix_s) {
  const std::scoped_lock lock(mutex_);
  const auto is_old = [&](const FileRecord& file) { return file.expires_at <= now_unix_s; };
  for (const std::string& id : unread_files(is_old)) erase_file(id);
  erase_ended([&](const BatchRecord& batch) {
    return last_change(batch) + limits_.max_age_s <= now_unix_s;
  });
}

// ----------------------------------------------------------------------------------------- owners

std::vector<Owner> BatchStore::owners() const {
  const std::scoped_lock lock(mutex_);
  std::set<Owner> all;
  for (const auto& [id, file] : files_) all.insert(file.owner);
  for (const auto& [id, batch] : batches_) all.insert(batch.owner);
  return {all.begin(), all.end()};
}

BatchStore::Removed BatchStore::remove_owner(const Owner& owner) {
  const std::scoped_lock lock(mutex_);
  const auto files = unread_files([&](const FileRecord& file) { return file.owner == owner; });
  for (const std::string& id : files) erase_file(id);
  const std::size_t batches =
      erase_ended([&](const BatchRecord& batch) { return batch.owner == owner; });
  return {.files = files.size(), .batches = batches};
}

}  // namespace leasehold::batch
