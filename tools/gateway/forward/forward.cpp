#include "tools/gateway/forward/forward.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <optional>
#include <utility>
#include <vector>

#include "common/cli/print_error.hpp"
#include "tools/gateway/decide/error_outcome.hpp"
#include "tools/gateway/decide/place.hpp"
#include "tools/gateway/forward/host_answer.hpp"
#include "tools/gateway/forward/refusal.hpp"

namespace leasehold::gateway {
namespace {

using boost::asio::awaitable;

constexpr int kLeastRefusal = 400;

/// A request on its way from host to host, until one of them serves it.
class Forwarding {
 public:
  Forwarding(Shared& shared, ClientExchange& client, Forwarded request)
      : shared_(shared), client_(client), request_(std::move(request)) {}

  awaitable<void> run() {
    bool goes_on = true;
    while (goes_on) {
      const PlaceQuery query{
          .model = request_.model, .digest = request_.placement, .without = tried_};
      const auto host = place(shared_.hosts.table(), query, shared_.clock.now());
      if (!host) co_return co_await fail_without_host(host.error());
      goes_on = co_await try_host(*host);
    }
  }

 private:
  bool is_repeatable() const {
    return gateway::is_repeatable(client_.head().method, client_.head().path());
  }

  /// Returns true if the request goes to another host.
  awaitable<bool> try_host(HostId host) {
    const RunningOn running(shared_.hosts.table(), host);
    HostWatch::Request watched{
        .host = host, .model = request_.model, .without = tried_, .may_move = is_repeatable()};
    HostWatch watch(shared_, client_, std::move(watched));
    tried_.push_back(host);
    auto exchange = co_await begin_exchange(shared_, client_, watch, request_.body);
    if (client_.stream().is_ended()) co_return false;
    if (!exchange) {
      const bool is_gone =
          watch.silence().has_value() || exchange.error().code == Errc::ConnectionLost;
      co_return co_await note_loss(host, watch.silence().value_or(exchange.error()), is_gone);
    }
    if (is_repeatable() && exchange->answer.status >= kLeastRefusal)
      co_return co_await note_refusal(watch, *std::move(exchange));
    HostAnswer answer{.host = host,
                      .exchange = *std::move(exchange),
                      .says_continue = request_.says_continue,
                      .is_resumable = request_.is_resumable,
                      .watch = &watch};
    co_await pass_answer(shared_, client_, std::move(answer));
    co_return false;
  }

  /// The host gave no answer. `is_gone`: it died or is silent.
  awaitable<bool> note_loss(HostId host, Error error, bool is_gone) {
    if (shared_.is_cut) {
      // A host may have done what stores something, so that is not to be sent again.
      if (is_repeatable()) error = with_retry_advice(gateway_stopped(), request_.is_resumable);
      co_await client_.fail(std::move(error));
      co_return false;
    }
    if (error.code == Errc::ConnectionRefused) {
      shared_.hosts.table().unreachable(host);
      co_return true;
    }
    loss_ = std::move(error);
    if (!is_gone || !is_repeatable() || losses_ == shared_.options.moves) {
      co_await client_.fail(*loss_);
      co_return false;
    }
    ++losses_;
    log_move(loss_->detail);
    co_return true;
  }

  /// The host refuses the request. Another one may not.
  awaitable<bool> note_refusal(HostWatch& watch, HostExchange exchange) {
    ClientForm form = ClientForm::of(client_);
    auto refusal =
        co_await read_refusal(shared_, watch.host(), std::move(exchange), std::move(form));
    if (client_.stream().is_ended()) co_return false;
    if (!refusal) co_return co_await note_loss(watch.host(), refusal.error(), true);
    watch.release();  // the client may take long to read the refusal
    refusal_ = *std::move(refusal);
    const auto& error = refusal_->error;
    const ErrorOutcome outcome = error ? outcome_of(error->code, TextStage::Starting)
                                       : outcome_of_status(refusal_->answer.status);
    if (outcome == ErrorOutcome::PassOn) {
      co_await send_refusal();
      co_return false;
    }
    log_move(error ? error->detail : fmt::format("status {}", refusal_->answer.status));
    co_return true;
  }

  awaitable<void> send_refusal() {
    WholeAnswer& answer = refusal_->answer;
    if (request_.says_continue) answer.fields.emplace_back("Leasehold-Continue", "no");
    co_await pass_whole(shared_, client_, std::move(answer));
  }

  /// The client gets the answer of a host, if there is one.
  awaitable<void> fail_without_host(Error error) {
    if (refusal_) co_return co_await send_refusal();
    // The list of a moment ago had a host with the model.
    if (error.code == Errc::UnknownWorker && !tried_.empty()) error.code = Errc::NoModelLoaded;
    http::Answer answer = no_host_answer(client_, loss_.value_or(std::move(error)));
    co_await client_.send(std::move(answer));
  }

  void log_move(std::string_view reason) const {
    spdlog::info("request goes to another host x_request_id={} reason=\"{}\"",
                 client_.x_request_id(), printable(reason));
  }

  Shared& shared_;
  ClientExchange& client_;
  Forwarded request_;
  std::vector<HostId> tried_;
  std::uint32_t losses_ = 0;        // hosts that gave no answer
  std::optional<Error> loss_;       // why the last of them gave none
  std::optional<Refusal> refusal_;  // the last one
};

awaitable<void> send_forward(Shared& shared, ClientExchange& client, Forwarded request) {
  Forwarding forwarding(shared, client, std::move(request));
  co_await forwarding.run();
}

}  // namespace

/// A plain function: the frame of a coroutine here would have types of the anonymous namespace.
awaitable<void> forward(Shared& shared, ClientExchange& client, Forwarded request) {
  return send_forward(shared, client, std::move(request));
}

}  // namespace leasehold::gateway
