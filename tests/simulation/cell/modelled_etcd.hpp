/// etcd as its clients may rely on: transactions in one order, linearizable reads, and changes in
/// their order until they are compacted.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "ipc/etcd/etcd_types.hpp"

namespace leasehold::cell::simulation {

class ModelledEtcd {
 public:
  etcd::TransactionReply execute(const etcd::Transaction& transaction);
  std::vector<etcd::KeyValue> read(const etcd::KeyRange& range) const;
  etcd::Revision revision() const { return revision_; }

  struct Change {
    etcd::Revision revision;
    std::string key;
    bool is_deleted = false;
  };
  /// The changes of this revision and later ones. Precondition: it is not compacted.
  std::vector<Change> changes_from(const etcd::KeyRange& range, etcd::Revision first) const;
  bool has_changed(const etcd::KeyRange& range, etcd::Revision first) const;
  /// Forgets the changes up to this revision.
  void compact(etcd::Revision upto);
  etcd::Revision compacted() const { return compacted_; }

 private:
  bool holds(const etcd::Compare& condition) const;
  void put(const etcd::Put& put);
  void erase(const etcd::KeyRange& range);

  std::map<std::string, etcd::KeyValue> entries_;
  std::deque<Change> changes_;
  etcd::Revision revision_{1};
  etcd::Revision compacted_;
};

}  // namespace leasehold::cell::simulation
