/// A host that a test controls: an HTTP server on a thread of its own that answers as a
/// leasehold-worker does for a gateway, with a text that depends on nothing.
///
/// Lifetime: the destructor joins the thread. Threads: any, except where a member says otherwise.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "ipc/http/http_framing.hpp"

namespace leasehold::testing {

/// A request for a text, as the host received it.
struct Asked {
  http::Head head;
  nlohmann::json body;
  /// The value of a field; empty without it.
  std::string field(std::string_view name) const {
    return std::string(head.only(name).value_or(""));
  }
};

class FakeHost {
 public:
  static constexpr std::size_t kTokens = 10;  ///< Of every text.

  explicit FakeHost(std::string name, std::string identity = "same", std::string model = "m");
  ~FakeHost();

  /// "http://127.0.0.1:PORT".
  std::string address() const;
  /// How many tokens of each text it sends; at first all.
  void allow(std::size_t tokens) { allowed_ = tokens; }
  void set_ready(bool ready, std::string code = "");
  /// Refuses texts and embeddings with this status, code and message; 0: it does not. From 429 on
  /// it asks for a retry in 60 seconds.
  void refuse_with(int status, std::string code, std::string message = "refused");
  /// From now on it says nothing, and keeps its connections open.
  void freeze() { is_frozen_ = true; }
  /// Closes its connections and listens no more.
  void die();
  /// Every token that it sends from now on is another one than other hosts send.
  void lie() { is_lying_ = true; }
  /// From now on it closes the connection of a request that stores something or asks for
  /// embeddings, and answers nothing.
  void drop_posts() { drops_posts_ = true; }
  /// Answers uploads with this status before it reads them; 0: with the number of their bytes.
  void answer_uploads_with(int status) { upload_status_ = status; }
  /// Its answers name this incarnation; 0: none.
  void set_incarnation(std::uint64_t incarnation) { incarnation_ = incarnation; }
  void set_keeps_files(bool keeps) { keeps_files_ = keeps; }
  /// Its list of files, the newest first; each is found by its id.
  void set_files(std::vector<nlohmann::json> files);
  /// What it answers to GET /v1/requests; empty: an empty list.
  void set_requests(std::string body);

  std::vector<Asked> asked() const;
  /// Texts that it sends now.
  std::size_t running() const { return running_; }
  /// Connections that it has accepted.
  std::size_t connections() const { return connections_; }
  /// Requests to store something, and for embeddings, that it has seen.
  std::size_t posts() const { return posts_; }

 private:
  struct Server;
  friend struct Server;

  const std::string name_;
  const std::string identity_;
  const std::string model_;
  std::atomic<std::size_t> allowed_ = kTokens;
  std::atomic<std::size_t> running_ = 0;
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<bool> is_frozen_ = false;
  std::atomic<bool> is_lying_ = false;
  std::atomic<bool> drops_posts_ = false;
  std::atomic<bool> keeps_files_ = true;
  std::atomic<int> upload_status_ = 0;
  std::atomic<std::uint64_t> incarnation_ = 0;
  std::atomic<std::size_t> posts_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  bool is_ready_ = true;
  std::string code_;
  int refused_status_ = 0;
  std::string refused_code_;
  std::string refused_message_;
  std::vector<Asked> asked_;
  std::vector<nlohmann::json> files_;
  std::string requests_;
  boost::asio::io_context io_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

/// The text that every FakeHost sends.
std::string fake_text();

}  // namespace leasehold::testing
