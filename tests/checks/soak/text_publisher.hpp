/// Keeps one text published on every worker, whatever ends its leases there.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "ipc/client/timers.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold::soak {

/// Asks for the text again and again. The broker answers with the lease that holds it already, or
/// has the worker compute it under a new one. What fails is asked for again.
///
/// Lifetime: its connection closes with it; published texts stay. Threads: one.
class TextPublisher {
 public:
  TextPublisher(std::string broker_socket, std::string text);
  ~TextPublisher();
  TextPublisher(const TextPublisher&) = delete;
  TextPublisher& operator=(const TextPublisher&) = delete;

  /// Does what is due for these workers, without waiting.
  void poll(const std::vector<std::string>& workers);
  /// True while no call waits for its answer.
  bool is_idle() const { return open_calls_ == 0; }
  /// Leases under which the text was computed.
  std::uint64_t publications() const { return publications_; }

 private:
  struct Worker {
    LeaseId lease;  ///< Of the last answer.
    bool is_asked = false;
    TimePoint due;
  };
  void connect();
  void ask(const std::string& name, Worker& worker);
  void answered(Worker& worker, const Result<control::Payload>& reply);

  std::string broker_socket_;
  std::string text_;
  boost::asio::io_context io_;
  client::AsioTimers timers_{io_};
  std::shared_ptr<control::Peer> broker_;  ///< Null while not connected.
  std::map<std::string, Worker> workers_;
  std::uint64_t open_calls_ = 0;
  std::uint64_t publications_ = 0;
};

}  // namespace leasehold::soak
