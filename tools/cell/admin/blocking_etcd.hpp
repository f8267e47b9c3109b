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
  template <class T>
  Result<T> wait(boost::asio::awaitable<Result<T>> call);

  boost::asio::io_context io_;
  etcd::Client client_;
};

}  // namespace leasehold::cell
