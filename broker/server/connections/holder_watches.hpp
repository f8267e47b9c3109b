/// Watches the processes that held leases when the previous broker ended.
///
/// Until such a process calls `lease.hold` it has no connection, so it is found by the pid and
/// start time in the journal. Threads: the io_context's thread.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>

#include "common/machine/process.hpp"

namespace leasehold {

class HolderWatches {
 public:
  using OnExit = std::function<void(const ProcessIdentity&)>;
  HolderWatches(boost::asio::io_context& io, OnExit on_exit)
      : io_(io), on_exit_(std::move(on_exit)) {}

  /// Calls `on_exit` once when the process ends, or soon if it has already ended. Does not call it
  /// for a process that cannot be watched; the leases of that process end at their deadlines.
  /// Idempotent.
  void watch(const ProcessIdentity& process);

 private:
  boost::asio::io_context& io_;
  OnExit on_exit_;
  std::map<ProcessIdentity, boost::asio::posix::stream_descriptor> watches_;
};

}  // namespace leasehold
