/// Processes that held leases when an earlier broker ended: until they have said `lease.hold` there
/// is no connection whose process could be watched, so each is watched by what the journal calls
/// it.
///
/// Threads: the one of the io_context.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>

#include "common/process.hpp"

namespace leasehold {

class HolderWatches {
 public:
  using OnExit = std::function<void(const ProcessIdentity&)>;
  HolderWatches(boost::asio::io_context& io, OnExit on_exit)
      : io_(io), on_exit_(std::move(on_exit)) {}

  /// `on_exit` is called once when the process ends, soon when it has ended already, and never for
  /// one that cannot be watched: its leases run to their deadline. Watching twice is watching once.
  void watch(const ProcessIdentity& process);

 private:
  boost::asio::io_context& io_;
  OnExit on_exit_;
  std::map<ProcessIdentity, boost::asio::posix::stream_descriptor> watches_;
};

}  // namespace leasehold
