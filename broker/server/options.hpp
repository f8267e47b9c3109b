/// The broker's command line.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <variant>

namespace leasehold {

struct BrokerOptions {
  std::string socket;
  mode_t socket_mode = 0660;
  std::uint64_t capacity_bytes = 256ull << 20;
  std::uint64_t weights_capacity_bytes = 4ull << 30;
  std::uint32_t slots = 4096;
  std::uint32_t max_engine_leases = 1024;  ///< Of one worker.
  std::uint32_t max_extents = 1024;        ///< The pool is cut into at most so many.
  std::chrono::milliseconds fence_timeout{2000};
  std::chrono::milliseconds worker_timeout{15'000};  ///< Zero: without end.
  std::chrono::milliseconds reattach_grace{5000};
  std::string state_dir;       ///< Empty: nothing is kept.
  std::string device = "cpu";  ///< Whose memory is lent: "cpu", "cuda:0" …, "auto".
  std::string agent;           ///< The device agent's program; empty: the one beside the broker.
  std::set<uid_t> worker_uids;
  bool allow_memory_check = false;  ///< Operators may look at leased memory.
  std::string log_level = "info";
  std::string event_log;  ///< Empty: none.
};

/// The options, or the exit code of a program that has said everything already: 0 after --help,
/// 2 after a sentence on stderr about what was wrong.
std::variant<BrokerOptions, int> parse_options(int argc, char** argv);

}  // namespace leasehold
