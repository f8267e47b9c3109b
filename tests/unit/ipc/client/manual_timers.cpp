#include "tests/unit/ipc/client/manual_timers.hpp"

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold::client {
namespace {

struct Handle final : TimerHandle {
  std::shared_ptr<bool> wanted = std::make_shared<bool>(true);
  ~Handle() override { *wanted = false; }
};

}  // namespace

Timer ManualTimers::after(Duration delay, std::move_only_function<void()> action) {
  auto handle = std::make_unique<Handle>();
  entries_.push_back({clock_.now() + delay, std::move(action), handle->wanted});
  return handle;
}

std::vector<ManualTimers::Entry>::iterator ManualTimers::earliest() {
  std::erase_if(entries_, [](const Entry& entry) { return !*entry.wanted; });
  return std::ranges::min_element(entries_, {}, &Entry::due);
}

void ManualTimers::advance(Duration by) {
  const TimePoint until = clock_.now() + by;
  for (auto entry = earliest(); entry != entries_.end() && entry->due <= until;
       entry = earliest()) {
    if (entry->due > clock_.now()) clock_.advance(entry->due - clock_.now());
    auto action = std::move(entry->action);
    entries_.erase(entry);
    action();
  }
  clock_.advance(until - clock_.now());
}

std::size_t ManualTimers::pending() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const Entry& entry) { return *entry.wanted; }));
}

Duration ManualTimers::next() const {
  expects(pending() > 0, "a call is pending");
  TimePoint first{INT64_MAX};
  for (const Entry& entry : entries_) {
    if (*entry.wanted) first = std::min(first, entry.due);
  }
  return first - clock_.now();
}

}  // namespace leasehold::client
