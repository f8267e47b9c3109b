#include "broker/journal/checkpointer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/machine/process.hpp"
#include "common/machine/start_thread.hpp"

namespace leasehold::journal {
namespace {

constexpr auto kAuditHeadInterval = std::chrono::seconds(1);
/// How long a sync is put off if no caller waits for it. The disk is busy during a sync, so that a
/// write then takes some ms: the fence and the returned memory of a revocation come within this
/// time.
constexpr auto kSyncDelay = std::chrono::milliseconds(20);
/// Attempts to move the log. Each one moves what was written during the one before, which is less
/// each time.
constexpr int kMoves = 4;

}  // namespace

Result<std::unique_ptr<Checkpointer>> Checkpointer::start(const std::string& database_path,
                                                          const std::string& audit_head_path) {
  Database database = TRY(Database::open(database_path));
  std::unique_ptr<Checkpointer> checkpointer(
      new Checkpointer(std::move(database), audit_head_path));
  checkpointer->thread_ = TRY(start_thread<std::jthread>(
      "the thread of the journal's checkpoints",
      [raw = checkpointer.get()](const std::stop_token& stop) { raw->work(stop); }));
  return checkpointer;
}

void Checkpointer::wake() {
  {
    const std::lock_guard lock(mutex_);
    checkpoint_requested_ = true;
  }
  woken_.notify_one();
}

void Checkpointer::wait_for_move(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  checkpoint_requested_ = true;
  woken_.notify_one();
  const std::uint64_t before = complete_moves_;
  moved_.wait_for(lock, timeout, [&] { return complete_moves_ != before; });
}

void Checkpointer::sync_log() {
  {
    const std::lock_guard lock(mutex_);
    sync_due_ = std::min(sync_due_, SteadyClock::now() + kSyncDelay);
  }
  woken_.notify_one();
}

void Checkpointer::sync_log(OnSynced on_synced) {
  {
    const std::lock_guard lock(mutex_);
    on_synced_.push_back(std::move(on_synced));
    sync_due_ = std::min(sync_due_, SteadyClock::now());
  }
  woken_.notify_one();
}

/// The log's file exists from the first write until the last connection is closed.
UniqueFd Checkpointer::open_log() const {
  const std::string path = database_.path() + "-wal";
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

Result<void> Checkpointer::sync() {
  if (!log_) log_ = open_log();
  if (!log_ && errno == ENOENT) return {};  // nothing was written
  if (!log_ || ::fdatasync(log_.get()) != 0)
    return fail_errno(Errc::SystemError, database_.path() + "-wal", errno);
  ++log_syncs_;
  return {};
}

/// A failure is not reported: the log grows, and the next write or checkpoint fails with the same
/// cause.
void Checkpointer::move_log() {
  bool is_complete = false;
  for (int i = 0; i < kMoves && !is_complete; ++i) {
    const auto move = database_.checkpoint(CheckpointMode::Passive);
    if (!move) return;
    is_complete = move->is_complete();
  }
  if (!is_complete) return;
  const std::lock_guard lock(mutex_);
  ++complete_moves_;
  moved_.notify_all();
}

void Checkpointer::publish_audit_head(const audit::Link& head) {
  {
    const std::lock_guard lock(mutex_);
    const bool was_waiting = std::exchange(audit_head_, head).has_value();
    if (was_waiting) return;
    head_due_ = std::max(head_due_, SteadyClock::now() + kSyncDelay);
  }
  woken_.notify_one();
}

/// Syncs the log before it writes the file of the head, because the record is in the log. If a
/// checkpoint has moved the record meanwhile, the checkpoint has synced it.
void Checkpointer::sync_for(std::vector<OnSynced> handlers,
                            const std::optional<audit::Link>& head) {
  const Result<void> synced = sync();
  for (OnSynced& each : handlers) each(synced);
  if (synced && head) (void)write_audit_head(audit_head_path_, *head);
}

Checkpointer::SteadyClock::time_point Checkpointer::next_due() const {
  return std::min(sync_due_, audit_head_ ? head_due_ : kNever);
}

void Checkpointer::work(const std::stop_token& stop) {
  set_thread_name("checkpointer");
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    woken_.wait(lock, stop, [this] { return checkpoint_requested_ || next_due() != kNever; });
    const auto due = next_due();
    const auto has_earlier = [this, due] { return checkpoint_requested_ || next_due() < due; };
    woken_.wait_until(lock, stop, due, has_earlier);
    const bool moves = std::exchange(checkpoint_requested_, false);
    const auto now = stop.stop_requested() ? kNever : SteadyClock::now();
    const bool syncs = sync_due_ != kNever && now >= sync_due_;
    if (syncs) sync_due_ = kNever;
    std::vector<OnSynced> handlers;
    if (syncs) handlers = std::exchange(on_synced_, {});
    const auto head = now >= head_due_ ? std::exchange(audit_head_, {}) : std::nullopt;
    if (head) head_due_ = SteadyClock::now() + kAuditHeadInterval;
    lock.unlock();
    if (syncs || head) sync_for(std::move(handlers), head);
    if (moves) move_log();
    lock.lock();
  }
  const auto head = std::exchange(audit_head_, {});
  if (head || sync_due_ != kNever) sync_for({}, head);
}

}  // namespace leasehold::journal
