/// A worker without a model, inside this process: takes every grant, keeps nothing, unmaps at once.
///
/// For figures of the broker alone. A worker that maps prefaults 2 MiB per extent, and that, not
/// the broker, would be measured.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"
#include "ipc/table/table_reader.hpp"

namespace leasehold::bench {

/// Threads: its connection runs on a thread of its own; the table may be read from any.
class LightWorker {
 public:
  /// Errors: those of connect_to, the broker's.
  static Result<std::unique_ptr<LightWorker>> attach(const std::string& broker_socket);
  ~LightWorker();

  const TableReader& table() const { return *table_; }
  WorkerId index() const { return index_; }

 private:
  LightWorker() = default;
  Result<void> start(const std::string& broker_socket);
  Result<control::Payload> call(const std::string& method, control::Json params);

  boost::asio::io_context io_;
  std::shared_ptr<control::Peer> peer_;
  std::optional<TableReader> table_;
  UniqueFd segment_;  ///< Stays idle: every scope is quiet at the first look.
  UniqueFd wakeup_fd_;
  WorkerId index_;
  std::jthread thread_;
};

}  // namespace leasehold::bench
