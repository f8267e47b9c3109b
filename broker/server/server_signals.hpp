/// The signals of the broker: SIGHUP reloads the configuration; SIGTERM and SIGINT stop the broker
/// when all leases are fenced, or after a timeout.
///
/// Threads: the io_context's thread. Lifetime: the dependencies outlive this object.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "broker/server/broker_loop.hpp"
#include "broker/server/connections/connections.hpp"
#include "broker/server/start/options.hpp"

namespace leasehold {

class ServerSignals {
 public:
  struct Dependencies {
    boost::asio::io_context& io;
    const State& state;
    BrokerLoop& loop;
    Connections& connections;
  };
  /// `config`: the configuration with which the broker runs.
  ServerSignals(Dependencies dependencies, ReloadOptions reload, ConfigValues config);

  void watch();

  /// Call it after every event.
  void stop_if_fenced();

 private:
  void reload_configuration();
  void stop(int signal_number);

  Dependencies dependencies_;
  ReloadOptions reload_;
  ConfigValues config_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer stop_timer_;
};

}  // namespace leasehold
