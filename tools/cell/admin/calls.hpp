/// What the commands of `brokerctl cell` use of etcd, the clock and the terminal. Tests replace
/// all.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "ipc/etcd/etcd_types.hpp"
#include "tools/cell/decide/cell_keys.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::cell {

/// Threads: the caller's. Errors of both calls: those of etcd::Client.
struct Calls {
  CellKeys keys;
  std::function<Result<etcd::RangeReply>(const etcd::KeyRange&)> list;
  std::function<Result<etcd::TransactionReply>(const etcd::Transaction&)> commit;
  /// Waits at most this long. Returns false when the user interrupts.
  std::function<bool(Duration)> wait;
  /// Shows what a wait waits for. Empty: show nothing.
  std::function<void(const std::string&)> progress = {};
  const Clock* clock = nullptr;  ///< CLOCK_BOOTTIME.
  std::int64_t unix_ms = 0;      ///< The machine's clock when the command began.
};

/// What a command prints: a table and notes for people, a document for programs.
struct Answer {
  cli::Table table;
  std::vector<std::string> notes;
  nlohmann::json document;
  int exit_code = 0;
};

/// Reads one key. Nothing if it does not exist.
Result<std::optional<etcd::KeyValue>> read_one(const Calls& calls, const std::string& key);

}  // namespace leasehold::cell
