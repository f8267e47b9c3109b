#include "broker/server/connections/holder_watches.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace leasehold {

using Watch = boost::asio::posix::stream_descriptor;

void HolderWatches::watch(const ProcessIdentity& process) {
  if (watches_.contains(process)) return;
  auto pidfd = open_pidfd(process);
  if (!pidfd) {
    const bool has_ended = pidfd.error().code == Errc::ConnectionLost;
    if (has_ended) boost::asio::post(io_, [this, process] { on_exit_(process); });
    return;
  }
  Watch& watch = watches_.emplace(process, Watch(io_, pidfd->release())).first->second;
  watch.async_wait(Watch::wait_read, [this, process](const boost::system::error_code& error) {
    if (error) return;
    watches_.erase(process);
    on_exit_(process);
  });
}

}  // namespace leasehold
