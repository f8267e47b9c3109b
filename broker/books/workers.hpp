/// Worker processes and their states.
///
///   Attached ─worker.ready─► Ready
///    ▲ └────────┴─socket EOF or killed─► Lost
///    └─────────resume, within its grace──┘ └─pidfd readable─► Gone
///
/// Attached and Ready: the socket is open and the process runs. Lost: the worker gets no new
/// leases, but its process may still run. Gone: the process and its mappings no longer exist.
///
/// A worker that wrote to memory after its fence becomes Lost while its socket is open.
/// After a broker restart every worker that still runs is Lost with a reattach grace, during which
/// its leases are unchanged. Threads: one.
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
#include "ipc/control/tokens/lease_token.hpp"
#include "ipc/control/tokens/text_identity.hpp"

namespace leasehold {

enum class WorkerState : std::uint8_t { Attached, Ready, Lost, Gone };
inline constexpr int kWorkerStateCount = 4;

/// The transition table of the picture above. A process can exit in any state.
constexpr bool may_become(WorkerState from, WorkerState to) {
  switch (from) {
    case WorkerState::Attached:
      return to == WorkerState::Ready || to == WorkerState::Lost || to == WorkerState::Gone;
    case WorkerState::Ready:
      return to == WorkerState::Lost || to == WorkerState::Gone;
    case WorkerState::Lost:
      return to == WorkerState::Attached || to == WorkerState::Gone;  // resumed within its grace
    case WorkerState::Gone:
      return false;
  }
  return false;
}

/// Whether a worker has its weights; see broker/decide/worker/worker_sleep.hpp.
enum class SleepState : std::uint8_t { Awake, Asleep, Waking };

/// Another worker takes over the tenants of a worker. Not journaled.
struct Replacement {
  AttachmentId by;
  TimePoint until;           ///< When the remaining leases are revoked. Zero: they were revoked.
  std::uint32_t leases = 0;  ///< Leases of tenants that were live at the start.
  std::uint32_t moved = 0;   ///< How many of those moved to `by`.
  bool done = false;         ///< The worker has no lease of a tenant any more.

  /// How many leases ended without moving, if `left` leases are not fenced.
  std::uint32_t ended(std::uint32_t left) const { return leases - std::min(leases, moved + left); }
};

struct Worker {
  AttachmentId id;
  WorkerId index;  ///< Index of its counter in the lease table.
  std::string name;
  ConnectionId connection;
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< Identifies the process together with the pid.
  std::uint32_t uid = 0;
  TokenKey token_key{};
  std::uint64_t usage_counted = 0;  ///< Number of the last usage record that was counted.
  WorkerState state = WorkerState::Attached;
  bool socket_open = true;
  /// The worker wrote to memory after its fence. Its process gets no more grants.
  bool untrusted = false;
  bool draining = false;  ///< It gets no new lease of a tenant.
  /// The worker reported that it drains and then exits. It gets no new lease. Not journaled: a
  /// worker that resumes reports it again.
  bool stopping = false;
  /// The reason, reported by the worker, why it serves nothing. It gets no new lease. Not
  /// journaled: a worker that resumes reports it again.
  std::optional<std::string> out_of_service;
  /// Not journaled: a worker that resumes reports that it is asleep.
  SleepState sleep = SleepState::Awake;
  bool can_sleep = false;  ///< See WorkerReady. Not journaled: worker.ready sets it.
  /// Set while another worker takes over the tenants: this one gets no new lease of a tenant, and
  /// its leases move.
  std::optional<Replacement> replacement;
  bool killed = false;  ///< SIGKILL was sent; it has not exited yet.
  TimePoint gone_at;    ///< When the broker learnt of its exit. Not journaled.
  /// The worker may resume until this time after a broker restart. Zero: it may not resume.
  TimePoint reattach_until;
  bool segment_lost = false;  ///< Lost in a restart: then only the worker's exit proves a fence.
  bool resuming = false;      ///< It is redelivering the memory that it maps, until worker.ready.
  /// No timeout of this worker starts before this time, because the broker was not running.
  TimePoint timeouts_from;
  TimePoint next_probe;  ///< When the next check is due. Zero: no checks.
  /// Number of checks since the ping, including the one that sent it. 0: no ping is outstanding.
  std::uint32_t checks_since_ping = 0;
  TimePoint delivered_at;  ///< While resuming: time of the resume or of the last redelivery.
  std::string model;
  std::vector<std::string> aliases;  ///< See WorkerReady. Not journaled: worker.ready sets it.
  /// Arithmetic on which the tokens depend; see WorkerReady. Not journaled: worker.ready sets it.
  std::string arithmetic;
  /// Empty for a worker of an earlier version. Not journaled; neither are the next two members.
  std::optional<TextIdentity> text_identity;
  std::uint32_t max_context = 0;  ///< Tokens; 0: not known.
  /// A worker adopts KV memory only of a worker with an equal identity. Empty: it adopts none.
  std::string kv_identity;
  std::string address;
  std::uint32_t blocks_per_extent = 0;
  std::uint32_t max_extents = 0;  ///< Extents for which it has descriptors; 0: no limit.

  /// False while an operator drains or replaces it.
  bool is_admitting() const { return !draining && !replacement; }
  bool gets_leases() const {
    return state == WorkerState::Ready && is_admitting() && !stopping && !out_of_service;
  }
};

/// Precondition: the move is in the table, or the worker is in that state.
void move(Worker& worker, WorkerState to);

class Workers {
 public:
  using IsNeeded = std::function<bool(AttachmentId)>;
  /// Adds a worker with a free counter; null if all are in use. Drops the oldest Gone worker that
  /// is not needed if there are too many.
  Worker* add(const IsNeeded& is_needed);
  /// Workers of a user that have a counter: all but Gone ones that are not needed.
  std::size_t count_of(std::uint32_t uid, const IsNeeded& is_needed) const;

  /// Restores a worker of an earlier broker. Precondition: its id and counter are free.
  Worker& restore(Worker worker);
  /// New ids are greater than `id`.
  void start_above(std::uint64_t id) { next_id_ = std::max(next_id_, id + 1); }

  Worker* find(AttachmentId id);
  const Worker* find(AttachmentId id) const;
  Worker* find_by_connection(ConnectionId connection);
  /// The Attached or Ready worker of this name, or null.
  Worker* find_serving(std::string_view worker_name);
  bool is_serving(std::string_view worker_name) const;
  const std::map<AttachmentId, Worker>& all() const { return workers_; }
  std::uint64_t highest_id() const { return next_id_ - 1; }

 private:
  std::optional<WorkerId> free_index(const IsNeeded& is_needed);

  std::map<AttachmentId, Worker> workers_;
  std::uint64_t next_id_ = 1;
};

}  // namespace leasehold
