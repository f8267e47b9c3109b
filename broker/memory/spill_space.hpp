/// The spill files that workers have, and the space that is left for others.
///
/// Each user that may run workers has an equal share of the capacity, and a worker gets half of
/// what is left of it, so a later worker still gets a file. The space returns when the process has
/// exited: the file is cut to nothing then, so a copy of its descriptor keeps none.
///
/// A thread of its own creates, cuts and closes files, so a disk that hangs delays neither a
/// revocation nor, for longer than a second, the end of the broker.
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

/// What a broker may lend in spill files.
struct SpillConfig {
  std::shared_ptr<const SpillDirectory> directory;  ///< Null: nothing is lent.
  std::uint64_t capacity_bytes = 0;
  std::uint32_t users = 1;  ///< That may run workers.
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

  /// Calls back with a duplicate of the worker's file, which it creates at the first call.
  /// Errors: PoolExhausted when less than kLeastFileBytes is left, BadRequest for a second call
  /// before the first is answered, those of SpillDirectory::create_file.
  void lend(AttachmentId worker, uid_t uid, OnFile on_file);
  /// What is allocated of the file, since its worker can set any length. Errors: UntrustedSegment
  /// unless it is a regular file.
  static Result<std::uint64_t> size_of(const UniqueFd& fd);
  /// A file that an earlier broker lent. Errors: those of size_of.
  Result<void> restore(AttachmentId worker, uid_t uid, UniqueFd fd);
  /// The worker's process has exited.
  void forget(AttachmentId worker);

  /// The worker's file, or null.
  const UniqueFd* find(AttachmentId worker) const;
  std::uint64_t capacity_bytes() const { return config_.capacity_bytes; }
  std::uint64_t lent_bytes() const;

 private:
  struct Lent {
    uid_t uid = 0;
    std::uint64_t size_bytes = 0;
    UniqueFd fd;     // empty until it is created
    OnFile on_file;  // until it is created
    bool is_forgotten = false;
  };
  /// The disk thread may outlive this object.
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
