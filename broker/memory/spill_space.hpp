/// The spill files that are lent to workers, and the space that is left.
///
/// Each user that may run workers has an equal share of the capacity. A worker gets half of what is
/// left of its user's share, so that a later worker still gets a file. The space is freed when the
/// worker's process has exited. The file is then truncated to zero bytes, so that a copy of the
/// descriptor does not keep the space.
///
/// A separate thread creates, truncates and closes the files. So a disk that hangs does not delay
/// revocations, and delays the end of the broker by at most a second.
/// Threads: the io_context's thread.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "broker/memory/disk_thread.hpp"
#include "broker/memory/spill_directory.hpp"
#include "common/ids.hpp"

namespace leasehold {

/// Configuration of the spill files.
struct SpillConfig {
  std::shared_ptr<const SpillDirectory> directory;  ///< Null: nothing is lent.
  std::uint64_t capacity_bytes = 0;
  std::uint32_t users = 1;  ///< Number of users that may run workers.
};

class SpillSpace {
 public:
  static constexpr std::uint64_t kLeastFileBytes = 1 << 20;

  struct File {
    UniqueFd fd;  ///< Empty: this broker lends no spill files.
    std::uint64_t size_bytes = 0;
  };
  using OnFile = std::move_only_function<void(Result<File>)>;

  SpillSpace(boost::asio::io_context& io, SpillConfig config)
      : config_(std::move(config)), answers_(std::make_shared<Answers>()) {
    answers_->io = &io;
  }
  ~SpillSpace();
  SpillSpace(const SpillSpace&) = delete;
  SpillSpace& operator=(const SpillSpace&) = delete;

  /// Calls back with a duplicate of the descriptor of the worker's file. The first call creates the
  /// file. Errors: PoolExhausted if less than kLeastFileBytes is left; BadRequest for a second call
  /// before the first is answered; those of SpillDirectory::create_file.
  void lend(AttachmentId worker, uid_t uid, OnFile on_file);
  /// The size of a spill file: its allocated bytes, because a worker can set any length. Errors:
  /// UntrustedSegment unless it is a regular file.
  static Result<std::uint64_t> size_of(const UniqueFd& fd);
  /// Restores a file that an earlier broker lent. Errors: those of size_of.
  Result<void> restore(AttachmentId worker, uid_t uid, UniqueFd fd);
  /// Frees the worker's file. Call it when the worker's process has exited.
  void forget(AttachmentId worker);

  /// The worker's file, or null.
  const UniqueFd* find(AttachmentId worker) const;
  std::uint64_t capacity_bytes() const { return config_.capacity_bytes; }
  std::uint64_t lent_bytes() const;

 private:
  struct Lent {
    uid_t uid = 0;
    std::uint64_t size_bytes = 0;
    UniqueFd fd;     // empty until the file is created
    OnFile on_file;  // set until the file is created
    bool is_forgotten = false;
  };
  /// Shared with the disk thread, which may outlive this object.
  struct Answers {
    std::mutex mutex;
    boost::asio::io_context* io = nullptr;  // null after the destructor
  };
  std::uint64_t next_size(uid_t uid) const;
  void created(AttachmentId worker, Result<UniqueFd> fd);
  Result<File> file_of(const Lent& lent) const;

  SpillConfig config_;
  std::map<AttachmentId, Lent> lent_;
  std::shared_ptr<Answers> answers_;
  DiskThread disk_;
};

}  // namespace leasehold
