#include "tests/simulation/cell/mail_watch.hpp"

#include <utility>

namespace leasehold::cell::simulation {
namespace {

using std::chrono::milliseconds;

/// A stream that carries nothing is given up, and another member is tried.
constexpr Duration kReconnectEvery = milliseconds(1'500);

}  // namespace

void MailWatch::start() {
  next_ = {};
  etcd_changed();
}

void MailWatch::etcd_changed() {
  const ModelledEtcd& etcd = network_.etcd();
  if (next_.value > 0 && !etcd.has_changed(range_, next_)) return;
  schedule(network_.between(1, 80));
}

void MailWatch::schedule(Duration after) {
  if (std::exchange(is_scheduled_, true)) return;
  network_.at(after, &machine_, [this] {
    is_scheduled_ = false;
    look();
  });
}

void MailWatch::look() {
  if (machine_.is_cut) {
    network_.count(Counted::WatchGaps);
    return schedule(kReconnectEvery);
  }
  const ModelledEtcd& etcd = network_.etcd();
  std::vector<etcd::KeyValue> put;
  std::vector<std::string> deleted;
  const bool is_compacted = next_.value > 0 && next_ <= etcd.compacted();
  network_.count(Counted::CompactedWatches, is_compacted);
  const bool is_listing = next_.value == 0 || is_compacted;
  if (is_listing) {
    put = etcd.read(range_);
  } else {
    for (const auto& change : etcd.changes_from(range_, next_)) {
      if (change.is_deleted) deleted.push_back(change.key);
      for (const etcd::KeyValue& entry : etcd.read(etcd::KeyRange::one(change.key)))
        if (!change.is_deleted) put.push_back(entry);
    }
  }
  next_ = {etcd.revision().value + 1};
  network_.count(Counted::Mails, put.size());
  on_keys_(is_listing, put, deleted);
}

}  // namespace leasehold::cell::simulation
