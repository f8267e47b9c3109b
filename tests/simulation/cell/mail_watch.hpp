/// An agent's watch of its mail, as etcd's client does it: it lists the keys, then receives their
/// changes. While the host is cut off nothing arrives. Then it goes on with the changes that it has
/// missed, or lists again if etcd has compacted them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/simulation/cell/network.hpp"

namespace leasehold::cell::simulation {

class MailWatch {
 public:
  /// Entries that were put, as they are now; for a listing all entries that there are.
  using OnKeys = std::function<void(bool is_listing, const std::vector<etcd::KeyValue>& put,
                                    const std::vector<std::string>& deleted)>;

  MailWatch(Network& network, Machine& machine, etcd::KeyRange range, OnKeys on_keys)
      : network_(network),
        machine_(machine),
        range_(std::move(range)),
        on_keys_(std::move(on_keys)) {}

  /// A process begins without any revision.
  void start();
  void etcd_changed();

 private:
  void schedule(Duration after);
  void look();

  Network& network_;
  Machine& machine_;
  etcd::KeyRange range_;
  OnKeys on_keys_;
  etcd::Revision next_;  // of the first change that was not received; zero: list
  bool is_scheduled_ = false;
};

}  // namespace leasehold::cell::simulation
