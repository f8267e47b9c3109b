/// The broker's command line.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <variant>

#include "common/cli/config_reload.hpp"
#include "ipc/control/event_file.hpp"

namespace leasehold {

struct BrokerOptions {
  std::string socket;
  mode_t socket_mode = 0660;
  std::uint64_t capacity_bytes = 256ull << 20;
  std::uint64_t swap_capacity_bytes = 0;  ///< 0: no swap.
  std::uint64_t weights_capacity_bytes = 4ull << 30;
  /// 0: memory is cleared only when it is granted.
  std::uint64_t clear_ahead_bytes = 256ull << 20;
  std::string spill_dir;  ///< Empty: no spill files are lent.
  std::uint64_t spill_capacity_bytes = 0;
  std::uint32_t slots = 4096;
  std::uint32_t max_engine_leases = 1024;               ///< Per worker.
  std::uint32_t max_shared_blocks = 1024;               ///< Blocks of published texts per worker.
  std::uint64_t max_shared_adapter_bytes = 1ull << 30;  ///< Of shared adapters per worker.
  std::uint32_t max_extents = 1024;                     ///< Upper bound on extents in each pool.
  std::chrono::milliseconds fence_timeout{2000};
  std::chrono::milliseconds reclaim_grace{1000};
  std::chrono::milliseconds adopt_grace{10'000};     ///< Zero: memory is not kept.
  std::chrono::milliseconds worker_timeout{15'000};  ///< Zero: disabled.
  std::chrono::milliseconds reattach_grace{5000};
  std::string state_dir;  ///< Empty: no state is kept.
  std::uint64_t audit_records = 1'000'000;
  std::uint32_t audit_days = 0;    ///< 0: no limit.
  bool audit_trust_clock = false;  ///< Trust the machine's clock at this start.
  std::string device = "cpu";      ///< Device whose memory is lent: "cpu", "cuda:N" or "auto".
  std::string agent;  ///< Program of the device agent; empty: in the broker's directory.
  std::set<uid_t> worker_uids;
  std::set<uid_t> observer_uids;    ///< Users that may only query state.
  bool allow_memory_check = false;  ///< Operators may read leased memory.
  std::string log_level = "info";
  std::string event_log;  ///< Path of the event file; empty: none.
  std::uint64_t event_log_bytes = events::EventFile::kDefaultMaxBytes;
  ConfigValues config;  ///< All options above, as text.
};

/// Returns the options, or the exit code for the process: 0 after --help or --version, 2 after a
/// usage error, which has been printed to stderr.
std::variant<BrokerOptions, int> parse_options(int argc, char** argv);

/// Reads the command line and the configuration file again. Returns the same as `parse_options`.
using ReloadOptions = std::function<std::variant<BrokerOptions, int>()>;

}  // namespace leasehold
