/// Worker processes as the broker knows them.
///
///   Attached ─worker.ready─► Ready          both: socket open, process alive
///    ▲ └────────┴─socket EOF or killed─► Lost      no new leases; the process may still run
///    └─────────resume, within its grace──┘ └─pidfd readable─► Gone     and only this ends its hold
///
/// One that wrote to memory that had been taken from it is Lost, too, with its socket open.
/// After a restart of the broker every worker that still runs is Lost with a grace, during which
/// its leases stay as they are.
///
/// Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "broker/books/ids.hpp"
#include "common/clock.hpp"
#include "ipc/control/lease_token.hpp"

namespace leasehold {

enum class WorkerState : std::uint8_t { Attached, Ready, Lost, Gone };
inline constexpr int kWorkerStateCount = 4;

/// The transition table of the picture above. A process that exits is Gone from anywhere.
constexpr bool may_become(WorkerState from, WorkerState to) {
  switch (from) {
    case WorkerState::Attached:
      return to == WorkerState::Ready || to == WorkerState::Lost || to == WorkerState::Gone;
    case WorkerState::Ready:
      return to == WorkerState::Lost || to == WorkerState::Gone;
    case WorkerState::Lost:
      return to == WorkerState::Attached || to == WorkerState::Gone;  // resumed in its grace
    case WorkerState::Gone:
      return false;
  }
  return false;
}

struct Worker {
  AttachmentId id;
  WorkerId index;  ///< Of its counter in the lease table.
  std::string name;
  ConnectionId connection;
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< With the pid it names the process over a restart.
  std::uint32_t uid = 0;
  TokenKey token_key{};
  WorkerState state = WorkerState::Attached;
  bool socket_open = true;
  /// It wrote to memory that had been taken from it: nothing is granted to its process any more.
  bool untrusted = false;
  bool killed = false;  ///< SIGKILL was sent; its exit is awaited.
  /// Lost to a restart of the broker: it may resume until then. Zero: it may not.
  TimePoint reattach_until;
  bool segment_lost = false;  ///< With a broker before this one: only its exit proves anything.
  bool resuming = false;      ///< Came back; what it still maps is being delivered.
  /// Time before this is no fault of the worker's: nobody was there to take its proof.
  TimePoint timeouts_from;
  TimePoint next_probe;                 ///< For a sign of life. Zero: nobody looks.
  std::uint32_t unanswered_probes = 0;  ///< Since the ping that was not answered yet.
  TimePoint delivered_at;               ///< While resuming: the resume, or its last delivery.
  std::string model;
  std::string address;
  std::uint32_t blocks_per_extent = 0;
};

/// Precondition: the move is in the table, or the worker is in that state already.
void move(Worker& worker, WorkerState to);

class Workers {
 public:
  /// The next attach, with a free counter; nothing when all are in use. Gone workers make room,
  /// longest gone first, but none that something is left of.
  using IsNeeded = std::function<bool(AttachmentId)>;
  Worker* add(const IsNeeded& is_needed);

  /// A worker of before a restart. Precondition: its id and its counter are free.
  Worker& restore(Worker worker);
  /// Ids up to this one were used before.
  void start_above(std::uint64_t id) { next_id_ = std::max(next_id_, id + 1); }

  Worker* find(AttachmentId id);
  const Worker* find(AttachmentId id) const;
  Worker* find_by_connection(ConnectionId connection);
  /// Not Gone and not Lost.
  Worker* find_serving(std::string_view worker_name);
  const std::map<AttachmentId, Worker>& all() const { return workers_; }
  std::uint64_t highest_id() const { return next_id_ - 1; }

 private:
  std::optional<WorkerId> free_index(const IsNeeded& is_needed);

  std::map<AttachmentId, Worker> workers_;
  std::uint64_t next_id_ = 1;
};

}  // namespace leasehold
