#include "tests/simulation/cell/modelled_etcd.hpp"

#include <algorithm>

namespace leasehold::cell::simulation {

bool ModelledEtcd::holds(const etcd::Compare& condition) const {
  const auto found = entries_.find(condition.key);
  const etcd::KeyValue entry = found == entries_.end() ? etcd::KeyValue() : found->second;
  const bool is_created = condition.field == etcd::Compare::Field::Created;
  return ((is_created ? entry.created : entry.modified) == condition.revision) ==
         condition.is_equal;
}

void ModelledEtcd::put(const etcd::Put& put) {
  etcd::KeyValue& entry = entries_[put.key];
  if (entry.created.value == 0) entry = {.key = put.key, .value = {}, .created = revision_};
  entry.value = put.value;
  entry.modified = revision_;
}

std::vector<etcd::KeyValue> ModelledEtcd::read(const etcd::KeyRange& range) const {
  std::vector<etcd::KeyValue> found;
  for (auto at = entries_.lower_bound(range.first);
       at != entries_.end() && range.contains(at->first); ++at)
    found.push_back(at->second);
  return found;
}

etcd::TransactionReply ModelledEtcd::execute(const etcd::Transaction& transaction) {
  etcd::TransactionReply reply;
  reply.succeeded =
      std::ranges::all_of(transaction.conditions, [&](const auto& each) { return holds(each); });
  const auto& operations = reply.succeeded ? transaction.success : transaction.failure;
  const bool writes = std::ranges::any_of(
      operations, [](const auto& each) { return !std::holds_alternative<etcd::Get>(each); });
  if (writes) ++revision_.value;
  for (const etcd::Operation& operation : operations) {
    if (const auto* written = std::get_if<etcd::Put>(&operation)) put(*written);
    if (const auto* erased = std::get_if<etcd::Delete>(&operation))
      for (const etcd::KeyValue& entry : read(erased->range)) entries_.erase(entry.key);
    if (const auto* get = std::get_if<etcd::Get>(&operation))
      reply.found.push_back(read(get->range));
  }
  reply.revision = revision_;
  return reply;
}

}  // namespace leasehold::cell::simulation
