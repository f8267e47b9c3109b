/// The files and batches of all tenants, in one directory that only this worker uses.
///
///   lock              held while a worker uses the directory
///   ID.data           the bytes of a file
///   ID.file           its record, written after the bytes: a file exists once it has a record
///   ID.batch          the record of a batch
///
/// Names are ids that this worker made, so no text of a client is a path. Records are replaced
/// whole, and a record is on disk before the call that writes it returns. Results are appended
/// without a sync: they survive the end of the worker at once, and a power cut once the batch has
/// ended. `open` cuts off a torn line and removes what belongs to no record.
///
/// The bytes of an owner's files, with uploads and results in progress, stay within its quota.
/// Files and ended batches are removed at their age, and with their tenant.
///
/// Errors: UnknownRequest for an id that does not exist or belongs to another owner (a caller
/// cannot tell which); MessageTooLarge for a quota; DiskFull; SystemError; FileCorrupt.
/// Threads: any; a call that writes a record waits for the disk. Lifetime: uploads and results do
/// not outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "worker/batch/batch_record.hpp"
#include "worker/batch/record_list.hpp"

namespace leasehold::batch {

struct StoreLimits {
  std::uint64_t quota_bytes = 256ull << 20;  ///< For each tenant.
  /// Age at which files and ended batches are removed.
  std::int64_t max_age_s = 30ll * 24 * 3'600;
  std::size_t max_files = 1'000;    ///< For each tenant.
  std::size_t max_batches = 1'000;  ///< For each tenant.
};

class BatchStore {
 public:
  /// Errors: SocketInUse while another worker uses the directory; PermissionDenied for a directory
  /// that others can write to; those of the file system.
  static Result<std::unique_ptr<BatchStore>> open(const std::string& directory,
                                                  const StoreLimits& limits);

  /// A file whose bytes arrive. It is removed unless it is kept.
  class Upload {
   public:
    Upload(BatchStore& store, Owner owner, std::string id, UniqueFd fd)
        : store_(store), owner_(std::move(owner)), id_(std::move(id)), fd_(std::move(fd)) {}
    ~Upload();
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;
    Result<void> add(std::string_view bytes);

   private:
    friend BatchStore;
    BatchStore& store_;
    Owner owner_;
    std::string id_;
    UniqueFd fd_;
    std::uint64_t size_bytes_ = 0;
    bool is_kept_ = false;
  };

  // ---- files

  Result<std::unique_ptr<Upload>> begin_upload(const Owner& owner);
  /// Keeps the upload as a file with purpose "batch". `expires_at` 0: at the age of the limits.
  Result<FileRecord> keep(Upload& upload, const std::string& filename, std::int64_t now_unix_s,
                          std::int64_t expires_at = 0);
  Result<FileRecord> find_file(const Owner& owner, const std::string& id) const;
  bool has_file(const std::string& id) const;
  Page<FileRecord> list_files(const Owner& owner, const RecordQuery& query) const;
  /// Errors: also RequestIdConflict while a batch that has not ended reads the file.
  Result<void> remove_file(const Owner& owner, const std::string& id);
  Result<UniqueFd> read_file(const std::string& id) const;

  // ---- batches

  /// Chooses the ids of the batch and its result files, and stores it.
  Result<BatchRecord> add_batch(BatchRecord batch);
  Result<BatchRecord> find_batch(const Owner& owner, const std::string& id) const;
  Page<BatchRecord> list_batches(const Owner& owner, const RecordQuery& query) const;
  /// Those that have not ended, the oldest first.
  std::vector<BatchRecord> unfinished() const;
  /// Stores the record. The batch exists.
  Result<void> update(const BatchRecord& batch);

  // ---- results

  /// Opens the results file `id`, and cuts off a torn line.
  Result<UniqueFd> open_results(const std::string& id) const;
  /// Appends one line, or leaves the file as it was.
  Result<void> append_result(const Owner& owner, const UniqueFd& results, std::string_view line);
  /// Makes a results file readable for clients; an empty one is removed instead.
  Result<void> publish_results(const BatchRecord& batch, const std::string& id,
                               std::int64_t now_unix_s);

  /// Removes files and ended batches that have reached their age, which for a batch begins at its
  /// end.
  void remove_expired(std::int64_t now_unix_s);

  // ---- owners

  std::vector<Owner> owners() const;  ///< The owners of files and batches.
  struct Removed {
    std::size_t files = 0;
    std::size_t batches = 0;
  };
  /// Removes what belongs to a tenant that the broker has removed. A batch that has not ended, and
  /// the file that it reads, stay until the next call: without the tenant's key it soon fails.
  Removed remove_owner(const Owner& owner);

 private:
  BatchStore(std::string directory, const StoreLimits& limits, UniqueFd lock)
      : directory_(std::move(directory)), limits_(limits), lock_(std::move(lock)) {}
  Result<void> load();
  Result<void> load_record(const std::string& name);
  void remove_strays(const std::vector<std::string>& names);
  std::string path_of(const std::string& id, const char* kind) const;
  Result<void> charge(const Owner& owner, std::uint64_t bytes);
  void give_back(const Owner& owner, std::uint64_t bytes);
  bool is_read(const std::string& file) const;
  void erase_file(const std::string& id);
  /// Removes the ended batches that `is_old` selects. Precondition: `mutex_` is held.
  std::size_t erase_ended(const std::function<bool(const BatchRecord&)>& is_old);
  std::vector<std::string> unread_files(const std::function<bool(const FileRecord&)>& is_old) const;

  std::string directory_;
  StoreLimits limits_;
  UniqueFd lock_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, FileRecord> files_;
  std::map<std::string, BatchRecord> batches_;
  std::map<Owner, std::uint64_t> used_bytes_;
};

}  // namespace leasehold::batch
