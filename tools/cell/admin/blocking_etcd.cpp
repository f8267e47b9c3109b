#include "tools/cell/admin/blocking_etcd.hpp"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <optional>
#include <utility>

namespace leasehold::cell {

BlockingEtcd::BlockingEtcd(etcd::ClientOptions options) : client_(io_, std::move(options)) {}

template <class T>
Result<T> BlockingEtcd::wait(boost::asio::awaitable<Result<T>> call) {
  std::optional<Result<T>> result;
  boost::asio::co_spawn(io_, std::move(call), [&](const std::exception_ptr& error, Result<T> done) {
    if (error) std::rethrow_exception(error);
    result = std::move(done);
  });
  io_.restart();
  io_.run();
  return *std::move(result);
}

Result<etcd::RangeReply> BlockingEtcd::list(const etcd::KeyRange& range) {
  return wait(client_.range(range));
}

Result<etcd::TransactionReply> BlockingEtcd::commit(const etcd::Transaction& transaction) {
  return wait(client_.commit(transaction));
}

}  // namespace leasehold::cell
