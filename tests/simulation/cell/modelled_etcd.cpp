#include "tests/simulation/cell/modelled_etcd.hpp"

#include <algorithm>

#include "common/expects.hpp"

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
  changes_.push_back({revision_, put.key, false});
}

void ModelledEtcd::erase(const etcd::KeyRange& range) {
  for (const etcd::KeyValue& entry : read(range)) {
    entries_.erase(entry.key);
    changes_.push_back({revision_, entry.key, true});
  }
}

std::vector<ModelledEtcd::Change> ModelledEtcd::changes_from(const etcd::KeyRange& range,
                                                             etcd::Revision first) const {
  std::vector<Change> found;
  auto at = std::ranges::lower_bound(changes_, first, {}, &Change::revision);
  for (; at != changes_.end(); ++at)
    if (range.contains(at->key)) found.push_back(*at);
  return found;
}

bool ModelledEtcd::has_changed(const etcd::KeyRange& range, etcd::Revision first) const {
  if (first <= compacted_) return true;
  const auto begin = std::ranges::lower_bound(changes_, first, {}, &Change::revision);
  return std::any_of(begin, changes_.end(),
                     [&](const Change& change) { return range.contains(change.key); });
}

void ModelledEtcd::compact(etcd::Revision upto) {
  compacted_ = std::max(compacted_, upto);
  while (!changes_.empty() && changes_.front().revision <= compacted_) changes_.pop_front();
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
    if (const auto* erased = std::get_if<etcd::Delete>(&operation)) erase(erased->range);
    if (const auto* get = std::get_if<etcd::Get>(&operation)) {
      expects(!get->newest_only, "no part of a simulation asks for the newest put");
      reply.found.push_back(read(get->range));
      reply.counts.push_back(static_cast<std::int64_t>(reply.found.back().size()));
    }
  }
  reply.revision = revision_;
  return reply;
}

}  // namespace leasehold::cell::simulation
