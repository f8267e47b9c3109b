/// Takes the hosts of a gateway from a cell: follows `hosts/` in etcd, and expires hosts that have
/// been silent for so long that they have stopped.
///
/// One watch brings the changes. A read each second proves that etcd can be reached, because a
/// watch is silent too when its member of etcd hangs; such a watch begins again at another member.
/// While etcd cannot be reached, the known hosts stay. Several gateways may expire a host at once.
///
/// Lifetime: `io`, `clock` and `hosts` outlive it, and `io` has stopped before it ends. Threads:
/// the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "ipc/etcd/client.hpp"
#include "tools/cell/config/etcd_options.hpp"
#include "tools/cell/decide/silent_hosts.hpp"
#include "tools/gateway/decide/watch_check.hpp"
#include "tools/gateway/gateway_metrics.hpp"
#include "tools/gateway/hosts.hpp"
#include "tools/gateway/lasting_problems.hpp"

namespace leasehold::gateway {

class CellHosts : private etcd::WatchReceiver {
 public:
  struct Dependencies {
    boost::asio::io_context& io;
    const Clock& clock;
    Hosts& hosts;
    CellMetrics& metrics;
    /// Doors with http:// on other machines are used.
    bool allows_plaintext = false;
  };

  CellHosts(cell::CellAddress address, Dependencies dependencies);

  /// Begins to follow the cell.
  void start();

 private:
  void on_listing(std::vector<etcd::KeyValue> entries, etcd::Revision revision) override;
  void on_events(std::vector<etcd::WatchEvent> events) override;
  void on_interrupted(const Error& error) override;

  boost::asio::awaitable<void> follow();
  boost::asio::awaitable<void> keep_contact();
  boost::asio::awaitable<void> look();
  boost::asio::awaitable<void> expire_silent(TimePoint now);
  void read_config(const std::vector<etcd::KeyValue>& found);
  void check_watch(const etcd::TransactionReply& read);
  void use_hosts();
  void report_lost(const Error& error);

  Dependencies deps_;
  cell::CellAddress address_;
  cell::CellKeys keys_;
  cell::SilentHosts silent_;
  WatchCheck watch_check_;
  etcd::Client etcd_;                      // for reads and expiries
  std::unique_ptr<etcd::Client> watcher_;  // for the watch; replaced when its member hangs
  LastingProblems problems_{"host not used"};
  std::optional<Errc> lost_;     // the last error of a read; nothing: reads succeed
  std::optional<Errc> refused_;  // the error with which etcd refused the watch
};

}  // namespace leasehold::gateway
