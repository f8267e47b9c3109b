#include "tests/support/fake_cuda/executor.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/support/fake_cuda/entry.hpp"

namespace leasehold::fake_cuda {

Executor& Executor::get() {
  static auto& executor = *new Executor;
  return executor;
}

Executor::Executor() {
  default_ = &streams_.emplace_back();
  std::thread([this] { live(); }).detach();
}

Stream* Executor::create_stream(int priority) {
  const std::scoped_lock lock(mutex_);
  Stream& stream = streams_.emplace_back();
  stream.priority = priority;
  return &stream;
}

bool Executor::destroy_stream(Stream* stream) {
  const std::scoped_lock lock(mutex_);
  const auto at = std::ranges::find(streams_, stream, [](Stream& one) { return &one; });
  if (at == streams_.end() || at->destroyed || stream == default_) return false;
  at->destroyed = true;
  erase_destroyed();
  return true;
}

bool Executor::knows(const Stream* stream) {
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(streams_,
                             [&](const Stream& one) { return &one == stream && !one.destroyed; });
}

void Executor::queue(Stream* stream, Item item) {
  const std::scoped_lock lock(mutex_);
  if (lost() != CUDA_SUCCESS) return;
  stream->items.push_back(std::move(item));
  idle_ = false;
  changed_.notify_all();
}

void Executor::wait_empty(const Stream* stream) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_empty(stream) || lost() != CUDA_SUCCESS; });
}

void Executor::wait_done(const std::shared_ptr<const Mark>& mark) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return mark->done || lost() != CUDA_SUCCESS; });
}

bool Executor::is_done(const std::shared_ptr<const Mark>& mark) {
  const std::scoped_lock lock(mutex_);
  return mark->done;
}

void Executor::hold() {
  std::unique_lock lock(mutex_);
  held_ = true;
  permits_ = 0;
  changed_.wait(lock, [&] { return !busy_; });
}

std::uint64_t Executor::run(std::uint64_t n) {
  std::unique_lock lock(mutex_);
  permits_ = n;
  idle_ = false;
  changed_.notify_all();
  changed_.wait(lock, [&] { return idle_ && !busy_; });
  return n - std::exchange(permits_, 0);
}

void Executor::release() {
  const std::scoped_lock lock(mutex_);
  held_ = false;
  idle_ = false;
  changed_.notify_all();
}

std::uint64_t Executor::kernel_count(const char* kernel) {
  const std::scoped_lock lock(mutex_);
  if (kernel == nullptr) return all_kernels_;
  const auto at = counts_.find(std::string_view(kernel));
  return at == counts_.end() ? 0 : at->second;
}

void Executor::clear_all() {
  const std::scoped_lock lock(mutex_);
  for (Stream& stream : streams_) stream.items.clear();
  changed_.notify_all();
}

void Executor::live() {
  std::unique_lock lock(mutex_);
  while (true) {
    Stream* const stream = next();
    if (stream != nullptr) {
      step(lock, *stream);
      continue;
    }
    idle_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !idle_; });
  }
}

Stream* Executor::next() {
  Stream* best = nullptr;
  for (Stream& stream : streams_) {
    if (stream.items.empty() || !may_begin(stream.items.front())) continue;
    // A lower number is a higher priority.
    if (best == nullptr ||
        std::pair(stream.priority, stream.last_turn) < std::pair(best->priority, best->last_turn))
      best = &stream;
  }
  return best;
}

bool Executor::may_begin(const Item& item) const {
  if (item.wait != nullptr) return item.wait->done;
  return item.work == nullptr || !held_ || permits_ > 0;
}

/// Runs the first item of the stream; releases the lock meanwhile.
void Executor::step(std::unique_lock<std::mutex>& lock, Stream& stream) {
  Item item = std::move(stream.items.front());
  stream.items.pop_front();
  stream.last_turn = ++turns_;
  if (item.work != nullptr) {
    if (held_) --permits_;
    busy_ = stream.busy = true;
    lock.unlock();
    const CUresult result = item.work();
    if (result != CUDA_SUCCESS) lose(result);
    lock.lock();
    busy_ = stream.busy = false;
    if (result == CUDA_SUCCESS && !item.kernel.empty()) {
      ++counts_[item.kernel];
      ++all_kernels_;
    }
  } else if (item.more != nullptr) {
    Items items = item.more();
    std::ranges::move(items.rbegin(), items.rend(), std::front_inserter(stream.items));
  } else if (item.record != nullptr) {
    item.record->at = std::chrono::steady_clock::now();
    item.record->done = true;
  }
  erase_destroyed();
  changed_.notify_all();
}

bool Executor::is_empty(const Stream* stream) const {
  return std::ranges::all_of(streams_, [&](const Stream& one) {
    return (stream != nullptr && &one != stream) || (one.items.empty() && !one.busy);
  });
}

void Executor::erase_destroyed() {
  streams_.remove_if(
      [](const Stream& one) { return one.destroyed && one.items.empty() && !one.busy; });
}

}  // namespace leasehold::fake_cuda
