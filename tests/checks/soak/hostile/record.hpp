/// What a hostile run observed. The judge reads nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/checks/attack/outcome.hpp"
#include "tests/checks/bench/run_queue.hpp"
#include "tests/checks/runner/record.hpp"

namespace leasehold::soak {

/// Calm: only honest tenants run. Control: the same number of processes use the cores as much as
/// the attackers did, but do not contact broker or worker. Hostile: the attackers attack.
enum class WindowKind { Calm, Control, Hostile };

/// How long the threads of broker and worker ran, and how long they were ready but had no core.
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
  TimePoint flipped;           ///< When the broker stored the word.
  wire::RevokeClocks clocks;   ///< The clocks that ended in time.
  ServerThreads threads = {};  ///< Measured from before the flip until the clocks were read.
};

/// One request of the honest tenant over HTTP.
struct HttpRequest {
  TimePoint from, to;
  bool is_answered = true;
};

/// Private memory of one process; leased memory and weights are shared, and not counted.
struct MemoryUse {
  std::uint64_t before_bytes = 0;  ///< Largest use before the first attack.
  std::uint64_t peak_bytes = 0;    ///< Largest use since then.

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

/// Its texts are those of honest tenants.
struct HostileRecord : runner::Record {
  std::vector<Window> windows;
  std::vector<HonestRevocation> revocations;
  std::vector<HttpRequest> http_requests;
  attack::Outcomes attacks;
  std::vector<std::string> expected_attacks;
  MemoryUse broker, worker;
  DiskUse state_disk;
  AttackerCpu control, hostile;
  /// Why the run ended early, for example because a process died; empty if it did not.
  std::string failure;
  bool has_other_users = false;
  int broker_nice = 0, worker_nice = 0;  ///< Nice values that the kernel granted.
  bool worker_kept_link = false;         ///< The worker never lost the connection to the broker.

  /// True if the attack ran and at least one of its connections was accepted.
  bool was_made(const std::string& attack) const {
    const auto found = attacks.find(attack);
    return found != attacks.end() && found->second.runs > 0 &&
           found->second.connections > found->second.refused_connections;
  }
  bool was_every_attack_made() const {
    return std::ranges::all_of(expected_attacks,
                               [this](const std::string& attack) { return was_made(attack); });
  }
};

}  // namespace leasehold::soak
