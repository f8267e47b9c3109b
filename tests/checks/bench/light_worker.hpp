/// A worker without a model, inside this process: accepts every grant, maps nothing, and is always
/// quiet.
///
/// It serves to measure the broker alone; a real worker prefaults 2 MiB per extent, which takes
/// longer.
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

/// Threads: the connection has its own; any thread may read the table.
class LightWorker {
 public:
  /// Errors: those of connect_to and of the broker.
  static Result<std::unique_ptr<LightWorker>> attach(const std::string& broker_socket);
  ~LightWorker();

  const TableReader& table() const { return *table_; }

 private:
  LightWorker() = default;
  Result<void> start(const std::string& broker_socket);
  Result<control::Payload> call(const std::string& method, control::Json params);

  boost::asio::io_context io_;
  std::shared_ptr<control::Peer> peer_;
  std::optional<TableReader> table_;
  UniqueFd segment_;  ///< Idle: every scope is quiet when the broker first reads it.
  UniqueFd wakeup_fd_;
  std::jthread thread_;
};

}  // namespace leasehold::bench
