/// etcd as its clients may rely on: transactions in one order, linearizable reads.
#pragma once

#include <map>
#include <string>

#include "ipc/etcd/etcd_types.hpp"

namespace leasehold::cell::simulation {

class ModelledEtcd {
 public:
  etcd::TransactionReply execute(const etcd::Transaction& transaction);
  std::vector<etcd::KeyValue> read(const etcd::KeyRange& range) const;
  etcd::Revision revision() const { return revision_; }

 private:
  bool holds(const etcd::Compare& condition) const;
  void put(const etcd::Put& put);

  std::map<std::string, etcd::KeyValue> entries_;
  etcd::Revision revision_{1};
};

}  // namespace leasehold::cell::simulation
