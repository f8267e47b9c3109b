/// An index of requests as a real HTTP server on the loopback device, that answers as
/// shared/design/serving.md says, or fails as a test wants.
///
/// Threads: one of its own; every member from any other.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::testing {

enum class IndexMode : std::uint8_t {
  Answer,
  Hold,         ///< Reads the request and answers after another `behave`.
  Drop,         ///< Reads the request and closes the connection.
  Unavailable,  ///< 503
  Garbage,      ///< 200 with bytes that are not JSON.
  Huge,         ///< 200 with 10 MB.
  Truncated,    ///< 200 that ends before its Content-Length.
  NotHttp,
};

class IndexServer {
 public:
  IndexServer();
  ~IndexServer();

  std::string url(const std::string& path = {}) const;
  void behave(IndexMode mode);
  /// Registers requests, as a proxy in front of the worker does.
  void add(const std::vector<std::string>& ids);
  std::set<std::string> ids() const;
  /// Closes the listening socket and all connections; `start` listens on the same port.
  void stop();
  void start();

  /// How often each id arrived in requests that were answered.
  std::map<std::string, int> evicted() const;
  /// "POST /evict", "GET /requests": requests that were read, in any mode.
  std::vector<std::string> requests() const;
  std::size_t held() const;

  /// Waits until `holds`; false after a minute.
  bool wait(const std::function<bool(const IndexServer&)>& holds) const;

 private:
  struct Session;
  void accept();
  void reply(Session& session);
  std::string answer_to(const std::string& request, const std::string& body);
  void run(std::function<void()> work);

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_{io_};
  std::uint16_t port_ = 0;
  std::set<std::shared_ptr<Session>> held_;  // on the thread

  mutable std::recursive_mutex mutex_;
  mutable std::condition_variable_any changed_;
  IndexMode mode_ = IndexMode::Answer;
  std::set<std::string> ids_;
  std::map<std::string, int> evicted_;
  std::vector<std::string> requests_;
  std::size_t n_held_ = 0;
  std::thread thread_;
};

}  // namespace leasehold::testing
