#include "common/log_writer.hpp"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <mutex>
#include <string_view>
#include <utility>

#include "common/machine/join_or_leave.hpp"
#include "common/machine/process.hpp"
#include "common/machine/start_thread.hpp"

namespace leasehold {
namespace {

/// Returns when the whole line is written or the descriptor refuses it. Waits for the reader also
/// where another process has made the open file non-blocking.
bool write_line(const UniqueFd& fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = ::write(fd.get(), line.data(), line.size());
    if (written >= 0) {
      line.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd writable{.fd = fd.get(), .events = POLLOUT, .revents = 0};
      (void)::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct LogWriter::Shared : ThreadState {
  Shared(UniqueFd to, ResumedLine line, Limits most)
      : fd(std::move(to)), resumed_line(std::move(line)), limits(most) {}

  const UniqueFd fd;
  const ResumedLine resumed_line;
  const Limits limits;
  std::atomic<std::uint64_t> dropped{0};
  std::uint64_t reported = 0;  // the part of `dropped` that the thread has reported
  // Guarded by `mutex`:
  std::deque<std::string> queued;
  std::size_t queued_bytes = 0;
  bool is_writing = false;

  void push(std::string line);
  void write_all(const std::deque<std::string>& lines);
};

/// Called with the mutex locked.
void LogWriter::Shared::push(std::string line) {
  queued_bytes += line.size();
  queued.push_back(std::move(line));
  while (queued_bytes > limits.max_bytes || queued.size() > limits.max_lines) {
    queued_bytes -= queued.front().size();
    queued.pop_front();
    ++dropped;
  }
}

/// Called by the thread, with the mutex unlocked.
void LogWriter::Shared::write_all(const std::deque<std::string>& lines) {
  for (const std::string& line : lines) {
    const std::uint64_t missing = dropped - reported;
    if (missing > 0 && write_line(fd, resumed_line(missing))) reported += missing;
    if (!write_line(fd, line)) ++dropped;
  }
}

Result<std::unique_ptr<LogWriter>> LogWriter::start(UniqueFd fd, ResumedLine resumed_line,
                                                    Limits limits) {
  auto shared = std::make_shared<Shared>(std::move(fd), std::move(resumed_line), limits);
  std::unique_ptr<LogWriter> writer(new LogWriter(shared));
  writer->thread_ = TRY(start_thread("the thread of the log", [shared] { run(*shared); }));
  return writer;
}

LogWriter::~LogWriter() {
  if (!thread_.joinable()) return;
  join_or_leave(thread_, *shared_, kStopTimeout);
}

void LogWriter::write(std::string line) {
  const std::scoped_lock lock(shared_->mutex);
  shared_->push(std::move(line));
  if (!shared_->is_writing) shared_->changed.notify_all();
}

bool LogWriter::flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(
      lock, timeout, [this] { return shared_->queued.empty() && !shared_->is_writing; });
}

void LogWriter::count_dropped() {
  ++shared_->dropped;
}

std::uint64_t LogWriter::dropped_lines() const {
  return shared_->dropped;
}

/// Takes the whole queue at once, so that the mutex is held for a moment only.
void LogWriter::run(Shared& shared) {
  set_thread_name("log");
  use_batch_scheduling();
  std::unique_lock lock(shared.mutex);
  while (true) {
    shared.changed.wait(lock, [&] { return shared.is_stopping || !shared.queued.empty(); });
    if (shared.queued.empty()) break;
    const std::deque<std::string> lines = std::exchange(shared.queued, {});
    shared.queued_bytes = 0;
    shared.is_writing = true;
    lock.unlock();
    shared.write_all(lines);
    lock.lock();
    shared.is_writing = false;
    shared.changed.notify_all();
  }
  shared.note_end();
}

}  // namespace leasehold
