#include "broker/memory/disk_thread.hpp"

#include <deque>
#include <utility>

#include "common/machine/join_or_leave.hpp"

namespace leasehold {

struct DiskThread::Shared : ThreadState {
  std::deque<Work> posted;
};

DiskThread::DiskThread(std::chrono::milliseconds stop_timeout)
    : stop_timeout_(stop_timeout), shared_(std::make_shared<Shared>()) {
  thread_ = std::thread([shared = shared_] { run(*shared); });
}

DiskThread::~DiskThread() {
  join_or_leave(thread_, *shared_, stop_timeout_);
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
  shared.note_end();
}

}  // namespace leasehold
