#include "worker/kv/spill_thread.hpp"

#include <deque>
#include <mutex>
#include <utility>

#include "common/fault_point.hpp"
#include "common/machine/join_or_leave.hpp"
#include "common/machine/process.hpp"

namespace leasehold {
namespace {

constexpr auto kStopTimeout = std::chrono::seconds(1);

}  // namespace

struct SpillThread::Shared : ThreadState {
  std::shared_ptr<SpillStore> store;
  SystemClock clock;
  std::mutex answer_mutex;           // held while `on_answer` runs
  std::function<void()> on_answer;   // null once the owner is gone
  std::deque<SpillJob> jobs;         // guarded by `mutex`
  std::vector<SpillAnswer> answers;  // guarded by `mutex`
};

SpillThread::SpillThread(std::shared_ptr<SpillStore> store, std::function<void()> on_answer)
    : shared_(std::make_shared<Shared>()) {
  shared_->store = std::move(store);
  shared_->on_answer = std::move(on_answer);
  thread_ = std::thread([shared = shared_] { run(*shared); });
}

SpillThread::~SpillThread() {
  {
    const std::scoped_lock lock(shared_->answer_mutex);
    shared_->on_answer = nullptr;
  }
  join_or_leave(thread_, *shared_, kStopTimeout);
}

void SpillThread::post(SpillJob job) {
  const std::scoped_lock lock(shared_->mutex);
  shared_->jobs.push_back(std::move(job));
  shared_->changed.notify_all();
}

std::vector<SpillAnswer> SpillThread::take_answers() {
  const std::scoped_lock lock(shared_->mutex);
  return std::exchange(shared_->answers, {});
}

void SpillThread::run(Shared& shared) {
  set_thread_name("spill");
  use_batch_scheduling();
  std::unique_lock lock(shared.mutex);
  while (true) {
    shared.changed.wait(lock, [&] { return shared.is_stopping || !shared.jobs.empty(); });
    if (shared.is_stopping) break;
    SpillJob job = std::move(shared.jobs.front());
    shared.jobs.pop_front();
    lock.unlock();
    if (job.kind == SpillJob::Kind::Read) fault_point(FaultSite::WorkerSpillRead);
    const bool has_answer = job.kind != SpillJob::Kind::End;
    SpillAnswer answer = shared.store->execute(std::move(job), shared.clock);
    answer.job.seal.reset();
    lock.lock();
    if (!has_answer) continue;
    shared.answers.push_back(std::move(answer));
    lock.unlock();
    {
      const std::scoped_lock calling(shared.answer_mutex);
      if (shared.on_answer) shared.on_answer();
    }
    lock.lock();
  }
  shared.note_end();
}

}  // namespace leasehold
