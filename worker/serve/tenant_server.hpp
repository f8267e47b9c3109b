/// Where tenants talk to the worker: `generate`, `cancel`, and the tokens coming back.
///
/// A connection's requests are cancelled within one unit when it closes. A token says which lease a
/// request runs under; nothing a client writes is believed beyond that.
///
///   generate ─► token, room ─► the parser's thread: prompt, grammar ─► engine
///                              one at a time of each connection, so nobody's hard request holds up
///                              another's, and none the broker's calls
///
/// Threads: the I/O thread, except `deliver` and `complete_early`, which may be called from any and
/// hand over to it. Lifetime: everything in Dependencies outlives it, but for the parser's thread,
/// which has ended before.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "ipc/control/lease_token.hpp"
#include "worker/engine/engine_loop.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/serve/delivery_queue.hpp"
#include "worker/serve/request_parser.hpp"
#include "worker/serve/text_stream.hpp"

namespace leasehold {

class TenantServer {
 public:
  struct Dependencies {
    boost::asio::io_context* io = nullptr;
    EngineLoop* loop = nullptr;
    RunningRequests* running_requests = nullptr;
    boost::asio::any_io_executor parser;  ///< Of one thread.
    PromptEncoder prompt;
    BrokerLink* broker = nullptr;
    const Clock* clock = nullptr;
    TokenKey token_key{};
  };
  explicit TenantServer(Dependencies dependencies)
      : deps_(std::move(dependencies)), accept_timer_(*deps_.io), parser_(deps_.prompt) {}

  using Acceptor = boost::asio::local::stream_protocol::acceptor;
  /// A socket any tenant can reach; nobody is answered before `serve`.
  /// Errors: those of control::listen_on.
  static Result<Acceptor> listen(boost::asio::io_context& io, const std::string& path);

  void serve(Acceptor acceptor);

  /// Takes nobody new, refuses what has not been read with Draining, and hangs up on each client
  /// once what is queued for it has been sent.
  void close();
  bool is_closed() const { return clients_.empty(); }

  /// While the broker is away every new request is refused with BrokerLost.
  void set_broker_disconnected(bool disconnected) { broker_disconnected_ = disconnected; }

  /// What a step brought forth.
  void deliver(std::vector<SchedulerEvent> events);
  /// A completion that cannot wait for the step's end.
  void complete_early(Completed completed);

 private:
  struct Client;
  /// A request that waits for the parser.
  struct UnparsedRequest {
    wire::Generate request;
    LeaseClaim claim;
    std::optional<TimePoint> deadline;
    RequestId engine_request_id() const;
  };
  struct ParsedRequest {
    PromptRequest request;
    TextStream text;
  };
  struct Stream {
    std::optional<TextStream> text;  ///< Once the request has been read.
    control::Responder respond;      ///< Until then.
    LeaseId lease;
    std::uint32_t max_emitted_tokens = 0;
    bool cancelled = false;  ///< Said once; saying it again changes nothing.
  };

  std::string truncation_detail(const Stream& stream, const Completed& completed) const;
  void accept_next();
  void accept_later();
  void add_client(control::Socket socket);
  void on_call(const std::shared_ptr<Client>& client, const std::string& method,
               control::Payload params, control::Responder respond);
  void generate(const std::shared_ptr<Client>& client, const control::Json& body,
                control::Responder respond);
  Result<UnparsedRequest> check(const Client& client, const control::Json& body) const;
  Result<void> check_capacity(const Client& client) const;
  void parse_next(const std::shared_ptr<Client>& client);
  Result<ParsedRequest> parse(const UnparsedRequest& unparsed, std::weak_ptr<control::Peer> peer);
  void on_parsed(const std::shared_ptr<Client>& client, const RequestId& engine_request_id,
                 Result<ParsedRequest> parsed);
  Result<void> cancel(const Client& client, const control::Json& body);
  void submit(const std::shared_ptr<Client>& client, ParsedRequest parsed,
              control::Responder respond);
  Stream* find_running(const RequestId& engine_request_id);
  void erase_request(Client& client, const RequestId& engine_request_id);
  void on_client_closed(Client& client);
  void deliver_batch();
  void deliver_one(const SchedulerEvent& event);
  void finish(const Completed& completed);
  void reject(const AdmissionRejected& rejected);
  void end_stream(const RequestId& request, std::string_view reason, std::uint32_t emitted_tokens,
                  const std::function<void(TextStream&)>& send);
  void report_rebound(const Rebound& rebound);

  Dependencies deps_;
  boost::asio::steady_timer accept_timer_;
  RequestParser parser_;  // on its thread
  bool broker_disconnected_ = false;
  bool is_closing_ = false;
  std::optional<Acceptor> acceptor_;
  DeliveryQueue delivery_queue_;
  std::set<std::shared_ptr<Client>> clients_;
  std::unordered_map<RequestId, Stream> streams_;  // by engine_request_id id
};

}  // namespace leasehold
