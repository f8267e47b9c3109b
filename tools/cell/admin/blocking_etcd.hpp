/// A client of etcd for programs that wait for their calls.
///
/// Threads: one.
#pragma once

#include <memory>

#include "ipc/etcd/client.hpp"

namespace leasehold::cell {

class BlockingEtcd {
 public:
  explicit BlockingEtcd(etcd::ClientOptions options);

  /// Wait for etcd::Client::range and commit.
  Result<etcd::RangeReply> list(const etcd::KeyRange& range);
  Result<etcd::TransactionReply> commit(const etcd::Transaction& transaction);

 private:
  boost::asio::io_context io_;
  etcd::Client client_;
};

}  // namespace leasehold::cell
