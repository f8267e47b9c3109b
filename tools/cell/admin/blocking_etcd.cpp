#include "tools/cell/admin/blocking_etcd.hpp"

#include <utility>

#include "ipc/etcd/wait_for.hpp"

namespace leasehold::cell {

BlockingEtcd::BlockingEtcd(etcd::ClientOptions options) : client_(io_, std::move(options)) {}

Result<etcd::RangeReply> BlockingEtcd::list(const etcd::KeyRange& range) {
  return etcd::wait_for(io_, client_.range(range));
}

Result<etcd::TransactionReply> BlockingEtcd::commit(const etcd::Transaction& transaction) {
  return etcd::wait_for(io_, client_.commit(transaction));
}

}  // namespace leasehold::cell
