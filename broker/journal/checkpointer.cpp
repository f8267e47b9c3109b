#include "broker/journal/checkpointer.hpp"

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
  {
    const std::lock_guard lock(mutex_);
    wanted_ = true;
  }
  woken_.notify_one();
}

void Checkpointer::work(const std::stop_token& stop) {
  set_thread_name("checkpointer");
  while (!stop.stop_requested()) {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, stop, [this] { return wanted_; });
    if (!std::exchange(wanted_, false)) return;
    lock.unlock();
    database_.checkpoint(false);
  }
}

}  // namespace leasehold::journal
