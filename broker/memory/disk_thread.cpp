#include "broker/memory/disk_thread.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace leasehold {

struct DiskThread::Shared {
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::deque<Work> posted;
  bool is_stopping = false;
  bool has_ended = false;
};

DiskThread::DiskThread(std::chrono::milliseconds stop_timeout)
    : stop_timeout_(stop_timeout), shared_(std::make_shared<Shared>()) {
  thread_ = std::thread([shared = shared_] { run(*shared); });
}

DiskThread::~DiskThread() {
  std::unique_lock lock(shared_->mutex);
  shared_->is_stopping = true;
  shared_->changed.notify_all();
  const bool ended =
      shared_->changed.wait_for(lock, stop_timeout_, [this] { return shared_->has_ended; });
  lock.unlock();
  ended ? thread_.join() : thread_.detach();
}

void DiskThread::post(Work work) {
  const std::scoped_lock lock(shared_->mutex);
  shared_->posted.push_back(std::move(work));
  shared_->changed.notify_all();
}

void DiskThread::run(Shared& shared) {
  std::unique_lock lock(shared.mutex);
  while (true) {
    shared.changed.wait(lock, [&] { return shared.is_stopping || !shared.posted.empty(); });
    if (shared.posted.empty()) break;
    Work work = std::move(shared.posted.front());
    shared.posted.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // destroys captured descriptors here, because a close may wait for the disk
    lock.lock();
  }
  shared.has_ended = true;
  shared.changed.notify_all();
}

}  // namespace leasehold
