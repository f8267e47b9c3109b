/// A worker with an HTTP door on a Unix socket, and a client that writes raw requests.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/temporary_directory.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {

using Json = nlohmann::json;

struct HttpReply {
  int status = 0;
  std::string head;
  std::string body;  ///< Without chunk sizes.
  Json json() const { return Json::parse(body); }
  /// The data of each event of a stream.
  std::vector<std::string> events() const;
};

/// One connection. Reads wait; a test that waits for ever ends with the timeout of the test.
class HttpClient {
 public:
  explicit HttpClient(const std::string& path);
  void write(const std::string& text);
  /// Reads until the text read so far satisfies `holds`; false when the connection ends first.
  bool read_until(const std::function<bool(const std::string&)>& holds);
  /// Reads one whole reply, or what came before the connection ended.
  HttpReply reply();
  /// True when the server closes, with nothing more to read.
  bool is_closed();
  void close() { socket_.close(); }

 private:
  bool read_some();
  boost::asio::io_context io_;
  boost::asio::local::stream_protocol::socket socket_{io_};
  std::string read_;
};

std::string get(const std::string& path, const std::string& key);
std::string post(const std::string& path, const std::string& key, const Json& body);

class HttpSystem {
 public:
  explicit HttpSystem(std::vector<std::string> worker_arguments = {"--slow-motion-us", "30"});

  System& system() { return *system_; }
  const std::string& path() const { return path_; }
  /// A new key of an admitted tenant.
  std::string key_of(const std::string& tenant);
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

/// The text of the chunks.
std::string text_of(const HttpReply& streamed);

}  // namespace leasehold::testing
