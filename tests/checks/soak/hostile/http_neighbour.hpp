/// An honest tenant over HTTP, on a thread of its own: it sends one long body after another on one
/// connection, and measures how long each answer takes. Its body is long enough to be parsed where
/// the bodies of attackers are.
///
/// Threads: one may call its functions. Lifetime: the thread ends with it.
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
  /// The path of the server's Unix socket, and an API key.
  HttpNeighbour(std::string socket, std::string api_key);
  ~HttpNeighbour();
  HttpNeighbour(const HttpNeighbour&) = delete;
  HttpNeighbour& operator=(const HttpNeighbour&) = delete;

  /// What it has measured so far.
  std::vector<HttpRequest> requests() const;

 private:
  void run();
  void add(const HttpRequest& done);

  const std::string socket_;
  const std::string request_;
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace leasehold::soak
