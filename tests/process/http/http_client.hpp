/// A worker with an HTTP server on a Unix socket, and a client that writes raw requests.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/system.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {

using Json = nlohmann::json;

struct HttpReply {
  int status = 0;
  std::string head;
  std::string body;  ///< Without chunk sizes.
  Json json() const { return Json::parse(body); }
  /// The data of each event of a stream.
  std::vector<std::string> events() const;
  /// The ids of those that have one.
  std::vector<std::string> ids() const;
};

/// One connection. Reads wait; a test that waits for ever ends with the timeout of the test.
class HttpClient {
 public:
  /// The path of a Unix socket, or "127.0.0.1:PORT".
  explicit HttpClient(const std::string& address);
  void write(const std::string& text);
  /// Reads until the text read so far satisfies `holds`; false when the connection ends first.
  bool read_until(const std::function<bool(const std::string&)>& holds);
  /// Reads one whole reply, or what came before the connection ended.
  HttpReply reply();
  /// What of a streamed reply has come.
  HttpReply so_far() const;
  bool has_input() { return socket_.available() > 0; }
  /// True when the server closes, with nothing more to read.
  bool is_closed();
  void close() { socket_.close(); }
  /// Ends the sending side only.
  void shut_down_sending() {
    socket_.shutdown(boost::asio::generic::stream_protocol::socket::shutdown_send);
  }

 private:
  bool read_some();
  boost::asio::io_context io_;
  boost::asio::generic::stream_protocol::socket socket_{io_};
  std::string read_;
};

std::string get(const std::string& path, const std::string& key);
/// `more`: further fields of the head, each with its "\r\n".
std::string post(const std::string& path, const std::string& key, const Json& body,
                 const std::string& more = {});

/// What follows `before` in the worker's log, up to a space or the end of the line.
std::string logged_address(const System& system, std::string_view before);

/// Releases the lease of a key with its last request, unless the arguments say otherwise.
class HttpSystem {
 public:
  enum class Transport { Unix, Tcp };
  explicit HttpSystem(std::vector<std::string> worker_arguments = {"--slow-motion-us", "30"},
                      Transport transport = Transport::Unix);

  System& system() { return *system_; }
  /// Where the server listens.
  const std::string& path() const { return path_; }
  /// A new key of an admitted tenant.
  std::string key_of(const std::string& tenant);
  /// Admits the tenant, with these further arguments, and returns a key.
  std::string admit(const std::string& tenant, std::vector<std::string> more = {}) {
    system_->admit(tenant, std::move(more));
    return key_of(tenant);
  }
  /// The exit status of brokerctl.
  int revoke(const std::string& key);
  HttpReply send(const std::string& request) {
    HttpClient client(path_);
    client.write(request);
    return client.reply();
  }
  /// The name of the served model.
  std::string model(const std::string& key);
  /// A request for a completion that does not end by itself.
  Json completion(const std::string& key, int max_tokens, bool stream);

 private:
  Result<TemporaryDirectory> directory_;
  std::string path_;
  std::unique_ptr<System> system_;
};

/// True for a text in which at least `wanted` events have arrived.
inline auto has_events(std::size_t wanted) {
  return [wanted](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find("data: "); at != std::string::npos;
         at = text.find("data: ", at + 1))
      ++count;
    return count >= wanted;
  };
}

/// The text of the chunks.
std::string text_of(const HttpReply& streamed);

}  // namespace leasehold::testing
