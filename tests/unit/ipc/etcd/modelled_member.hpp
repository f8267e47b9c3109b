/// A server on a Unix socket that answers as one member of etcd, in the way that a test says.
///
/// Threads: one of its own per connection; every member from any thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {

/// "HTTP/1.1 200 OK" with this body.
std::string reply_200(const std::string& body);
std::string reply_of(int status, const std::string& body);
/// A chunked reply whose body never ends: its lines so far.
std::string stream_of(const std::vector<std::string>& lines);

class ModelledMember {
 public:
  struct Request {
    std::string head;
    std::string body;
    bool is(const std::string& path) const { return head.starts_with("POST " + path + " "); }
  };
  /// The bytes to send. An empty text closes the connection.
  using Answer = std::function<std::string(const Request&)>;

  explicit ModelledMember(Answer answer);
  ~ModelledMember();

  std::string address() const { return "unix:" + path_; }
  std::vector<Request> requests() const;
  std::size_t count(const std::string& path) const;
  /// Closes every connection; later ones are accepted.
  void cut();

 private:
  using Local = boost::asio::local::stream_protocol;
  void accept();
  void serve(Local::socket& socket);

  TemporaryDirectory directory_ = TemporaryDirectory::create("etcd").value();
  std::string path_ = (directory_.path() / "etcd.sock").string();
  Answer answer_;
  boost::asio::io_context io_;
  Local::acceptor acceptor_{io_, Local::endpoint(path_)};
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<std::shared_ptr<Local::socket>> sockets_;
  std::vector<std::thread> threads_;
  bool is_stopped_ = false;
};

}  // namespace leasehold::testing
