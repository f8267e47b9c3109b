/// A collector of traces as a real HTTP server on the loopback device: it reads OTLP in JSON.
///
/// Threads: one of its own; every member from any other.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::testing {

/// A span as it arrived. Attributes are the text of their values.
struct CollectedSpan {
  std::string trace_id, span_id, parent_span_id, name, error;
  int kind = 0;
  std::int64_t begin_unix_ns = 0, end_unix_ns = 0;
  std::map<std::string, std::string> attributes;
  struct Event {
    std::string name;
    std::int64_t unix_ns = 0;
    std::map<std::string, std::string> attributes;
  };
  std::vector<Event> events;
  std::map<std::string, std::string> resource;
};
using CollectedSpans = std::vector<CollectedSpan>;

class TraceCollector {
 public:
  enum class Mode { Accept, Unavailable, RejectOne, Silent };

  TraceCollector();
  ~TraceCollector();

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// How later requests are answered. Silent: not at all.
  void behave(Mode mode);
  CollectedSpans spans() const;
  /// Requests that were read, in any mode.
  int requests() const;
  /// Waits until `holds`; false after a minute.
  bool wait(const std::function<bool(const CollectedSpans&)>& holds) const;
  bool wait_for_requests(int count) const;

 private:
  struct Session;
  void accept();
  void reply(Session& session);

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_{io_};
  std::uint16_t port_ = 0;
  std::vector<std::shared_ptr<Session>> silent_;  // on the thread

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Mode mode_ = Mode::Accept;
  CollectedSpans spans_;
  int requests_ = 0;
  std::thread thread_;
};

}  // namespace leasehold::testing
