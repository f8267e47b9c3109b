#include "tools/gateway/decide/watch_check.hpp"

#include <algorithm>

namespace leasehold::gateway {

void WatchCheck::listed(const std::vector<etcd::KeyValue>& entries, etcd::Revision revision) {
  reset();
  newest_ = revision;
  for (const etcd::KeyValue& entry : entries) keys_.insert(entry.key);
}

void WatchCheck::reported(const etcd::WatchEvent& event) {
  const bool is_later = read_ && event.entry.modified > read_->revision;
  if (is_later && !then_) then_ = keys_.size();
  newest_ = std::max(newest_, event.entry.modified);
  if (event.is_deleted)
    keys_.erase(event.entry.key);
  else
    keys_.insert(event.entry.key);
}

/// A watch that was ahead of a read cannot be compared with it, and does not hang.
bool WatchCheck::is_behind(const HostKeys& read) {
  if (newest_.value == 0) return false;
  const bool lacks_put = read_ && newest_ < read_->newest;
  const bool has_other_keys = read_ && then_.value_or(keys_.size()) != read_->count;
  read_.reset();
  then_.reset();
  if (newest_ <= read.revision) read_ = read;
  return lacks_put || has_other_keys;
}

}  // namespace leasehold::gateway
