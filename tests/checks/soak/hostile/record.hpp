/// What a hostile run observed. The judge reads nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/checks/attack/outcome.hpp"
#include "tests/checks/bench/run_queue.hpp"
#include "tests/checks/soak/history.hpp"

namespace leasehold::soak {

/// Calm: only honest tenants. Control: as many processes as attackers use as much of the cores as
/// the attackers did, and leave broker and worker alone. Hostile: the attackers attack.
enum class WindowKind { Calm, Control, Hostile };

/// What the threads of broker and worker ran, and how long they were ready but had no core.
struct ServerThreads {
  bench::ThreadRunQueues broker, worker;
};

struct Window {
  WindowKind kind = WindowKind::Calm;
  TimePoint from, to;
  ServerThreads threads = {};
};

/// One revocation of an honest tenant's lease in the middle of a text.
struct HonestRevocation {
  LeaseId lease;
  WindowKind window = WindowKind::Calm;
  TimePoint flipped;           ///< The broker stored the word.
  wire::RevokeClocks clocks;   ///< Those that ended in time.
  ServerThreads threads = {};  ///< From before the flip until the clocks were read.
};

/// One request of the honest tenant over HTTP.
struct HttpRequest {
  TimePoint from, to;
  bool is_answered = true;
};

/// Private memory of one process; leased memory and weights are shared, and not counted.
struct MemoryUse {
  std::uint64_t before_bytes = 0;  ///< The largest before the first attack.
  std::uint64_t peak_bytes = 0;    ///< The largest since.

  void see(std::uint64_t bytes, bool attacked);
  std::uint64_t growth_bytes() const;
};

/// The disk of the broker's state directory.
struct DiskUse {
  std::uint64_t size_bytes = 0;  ///< 0: not a small one.
  std::uint64_t peak_bytes = 0;  ///< The largest use that was seen.
};

/// CPU seconds of all attackers, and the seconds of their windows.
struct AttackerCpu {
  double cpu_s = 0;
  double window_s = 0;
};

struct HostileRecord {
  std::vector<Window> windows;
  std::vector<TenantInstance> honest;  ///< One for each honest text.
  std::vector<HonestRevocation> revocations;
  std::vector<HttpRequest> http_requests;
  attack::Outcomes attacks;
  std::vector<std::string> expected_attacks;
  MemoryUse broker, worker;
  DiskUse state_disk;
  AttackerCpu control, hostile;
  std::string failure;  ///< Why the run ended early, e.g. a process died; empty: it did not.
  bool has_other_users = false;
  int broker_nice = 0, worker_nice = 0;  ///< Those that the kernel granted.
  bool worker_kept_link = false;         ///< The worker never lost the broker.
  bool all_memory_free = false;          ///< At the end.
};

}  // namespace leasehold::soak
