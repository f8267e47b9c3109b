/// What a hostile run observed. The judge reads nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/checks/attack/outcome.hpp"
#include "tools/checks/soak/history.hpp"

namespace leasehold::soak {

/// Calm: only honest tenants. Control: as many processes as attackers use as much of the cores as
/// the attackers did, and leave broker and worker alone. Hostile: the attackers attack.
enum class WindowKind { Calm, Control, Hostile };

struct Window {
  WindowKind kind = WindowKind::Calm;
  TimePoint from, to;
  /// How long the engine's thread was ready to run, but had no core.
  std::uint64_t engine_waited_ns = 0;
};

/// One revocation of an honest tenant's lease in the middle of a text.
struct HonestRevocation {
  LeaseId lease;
  WindowKind window = WindowKind::Calm;
  TimePoint flipped;          ///< The broker stored the word.
  wire::RevokeClocks clocks;  ///< Those that ended in time.
};

/// Private memory of one process; leased memory and weights are shared, and not counted.
struct MemoryUse {
  std::uint64_t before_bytes = 0;  ///< The largest before the first attack.
  std::uint64_t peak_bytes = 0;    ///< The largest since.

  void see(std::uint64_t bytes, bool attacked);
  std::uint64_t growth_bytes() const;
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
  attack::Outcomes attacks;
  std::vector<std::string> expected_attacks;
  MemoryUse broker, worker;
  AttackerCpu control, hostile;
  std::string failure;  ///< Why the run ended early, e.g. a process died; empty: it did not.
  bool has_other_users = false;
  bool worker_kept_link = false;  ///< The worker never lost the broker.
  bool all_memory_free = false;   ///< At the end.
};

}  // namespace leasehold::soak
