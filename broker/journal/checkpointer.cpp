#include "broker/journal/checkpointer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "common/process.hpp"

namespace leasehold::journal {

Result<std::unique_ptr<Checkpointer>> Checkpointer::start(const std::string& database_path) {
  Database database = TRY(Database::open(database_path));
  std::unique_ptr<Checkpointer> checkpointer(new Checkpointer(std::move(database)));
  checkpointer->thread_ =
      std::jthread([raw = checkpointer.get()](const std::stop_token& stop) { raw->work(stop); });
  return checkpointer;
}

void Checkpointer::wake() {
  request(checkpoint_wanted_);
}

void Checkpointer::sync_log() {
  request(sync_wanted_);
}

void Checkpointer::request(bool& wanted) {
  {
    const std::lock_guard lock(mutex_);
    wanted = true;
  }
  woken_.notify_one();
}

/// The log exists from the first write on, as long as a connection is open.
void Checkpointer::sync() {
  const std::string path = database_.path() + "-wal";
  if (!log_) log_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (log_ && ::fdatasync(log_.get()) == 0) ++log_syncs_;
}

void Checkpointer::work(const std::stop_token& stop) {
  set_thread_name("checkpointer");
  while (!stop.stop_requested()) {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, stop, [this] { return checkpoint_wanted_ || sync_wanted_; });
    const bool syncs = std::exchange(sync_wanted_, false);
    const bool moves = std::exchange(checkpoint_wanted_, false);
    lock.unlock();
    if (syncs) sync();
    if (moves) database_.checkpoint(false);
  }
}

}  // namespace leasehold::journal
