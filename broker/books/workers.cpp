#include "broker/books/workers.hpp"

#include <algorithm>
#include <bitset>

#include "common/expects.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {

void move(Worker& worker, WorkerState to) {
  expects(worker.state == to || may_become(worker.state, to),
          "a worker moves as its state table says");
  worker.state = to;
}

std::optional<WorkerId> Workers::free_index(const IsNeeded& is_needed) {
  if (workers_.size() >= kMaxWorkers) {
    const auto spare = std::ranges::find_if(workers_, [&](const auto& entry) {
      return entry.second.state == WorkerState::Gone && !is_needed(entry.first);
    });
    if (spare != workers_.end()) workers_.erase(spare);
  }
  std::bitset<kMaxWorkers> used;
  for (const auto& [id, worker] : workers_) used.set(worker.index.value);
  for (std::size_t i = 0; i < kMaxWorkers; ++i) {
    if (!used.test(i)) return WorkerId{i};
  }
  return std::nullopt;
}

Worker* Workers::add(const IsNeeded& is_needed) {
  const std::optional<WorkerId> index = free_index(is_needed);
  if (!index) return nullptr;
  const AttachmentId id{next_id_++};
  Worker& worker = workers_[id];
  worker.id = id;
  worker.index = *index;
  return &worker;
}

std::size_t Workers::count_of(std::uint32_t uid, const IsNeeded& is_needed) const {
  return static_cast<std::size_t>(std::ranges::count_if(workers_, [&](const auto& entry) {
    const auto& [id, worker] = entry;
    return worker.uid == uid && (worker.state != WorkerState::Gone || is_needed(id));
  }));
}

Worker& Workers::restore(Worker worker) {
  const AttachmentId id = worker.id;
  const auto [it, added] = workers_.emplace(id, std::move(worker));
  expects(added, "an attachment is restored once");
  start_above(id.value);
  return it->second;
}

Worker* Workers::find(AttachmentId id) {
  const auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : &found->second;
}

const Worker* Workers::find(AttachmentId id) const {
  const auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : &found->second;
}

Worker* Workers::find_by_connection(ConnectionId connection) {
  for (auto& [id, worker] : workers_) {
    if (worker.connection == connection && worker.state != WorkerState::Gone) return &worker;
  }
  return nullptr;
}

Worker* Workers::find_serving(std::string_view worker_name) {
  for (auto& [id, worker] : workers_) {
    if (worker.name == worker_name && worker.state <= WorkerState::Ready) return &worker;
  }
  return nullptr;
}

bool Workers::is_serving(std::string_view worker_name) const {
  return std::ranges::any_of(workers_, [worker_name](const auto& entry) {
    return entry.second.name == worker_name && entry.second.state <= WorkerState::Ready;
  });
}

}  // namespace leasehold
