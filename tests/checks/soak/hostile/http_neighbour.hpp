/// An honest tenant over HTTP, on a thread of its own. It sends one long body after another on one
/// connection, and measures how long each answer takes. The body is long enough to be parsed on the
/// threads that parse the bodies of attackers.
///
/// Threads: one thread may call the functions. Lifetime: the destructor ends the internal thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/checks/soak/hostile/record.hpp"

namespace leasehold::soak {

class HttpNeighbour {
 public:
  /// `socket` is the path of the server's Unix socket.
  HttpNeighbour(std::string socket, std::string api_key);
  ~HttpNeighbour();
  HttpNeighbour(const HttpNeighbour&) = delete;
  HttpNeighbour& operator=(const HttpNeighbour&) = delete;

  /// The requests measured so far.
  std::vector<HttpRequest> requests() const;

 private:
  void run();
  void add(const HttpRequest& done);

  const std::string socket_;
  const std::string request_;
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;  // declared last, because it uses the other members
};

}  // namespace leasehold::soak
