/// Requests that together need more blocks than their tenant may hold, with real processes.
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <map>

#include "common/random.hpp"
#include "ipc/control/client.hpp"
#include "ipc/control/peer.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kTightRequests = 6;
constexpr std::uint32_t kLongText = 400;  // 26 blocks and one for the record

/// Requests under one lease of a tenant, and what the worker sends about them.
class LeaseStreams {
 public:
  LeaseStreams(const System& system, const std::string& tenant)
      : broker_(control::Client::connect(system.broker_socket()).value()) {
    const wire::LeaseAcquire ask{.tenant = {tenant}, .request_id = {mint_request_id()}};
    const auto reply = broker_.call("lease.acquire", {.body = ask.to_json()}).value();
    const auto lease = wire::LeaseAcquired::from_json(reply.body).value();
    token_ = lease.token;
    worker_ = control::Peer::create(
        control::connect_to(io_, lease.address).value(),
        {.on_call = nullptr,
         .on_notification = [this](const std::string& method,
                                   const control::Payload& params) { note(method, params.body); },
         .on_closed = [](const Error&) {}});
    worker_->start();
    authenticate(*worker_, lease);
  }

  /// Requests of equal number get equal texts.
  void submit(std::uint32_t number) {
    const wire::RequestSubmit ask{.token = token_,
                                  .request_id = {std::to_string(number)},
                                  .prompt = "Once upon a time",
                                  .sampling = {.temperature = 1.0f, .seed = number},
                                  .max_emitted_tokens = kLongText,
                                  .ignore_eos = true};
    worker_->call("request.submit", {ask.to_json(), {}}, [](const auto& reply) { CHECK(reply); });
  }
  void wait_for_ends(std::size_t count) {
    while (ends.size() < count) REQUIRE(io_.run_one_for(std::chrono::seconds(60)) > 0);
  }

  std::map<std::string, std::vector<std::int32_t>> tokens;
  std::map<std::string, std::string> ends;
  int preemptions = 0;
  int swaps = 0;  ///< Preemptions that moved blocks to swap.

 private:
  void note(const std::string& method, const control::Json& body) {
    if (method == wire::TokenEmitted::kMethod) {
      const auto token = wire::TokenEmitted::from_json(body).value();
      auto& all = tokens[token.request.value];
      CHECK(token.position == all.size());
      all.push_back(token.token);
    } else if (method == wire::RequestPreempted::kMethod) {
      const auto preempted = wire::RequestPreempted::from_json(body).value();
      CHECK(preempted.emitted_tokens == tokens[preempted.request.value].size());
      CHECK(preempted.freed_blocks > 0);
      ++preemptions;
      if (preempted.swapped_blocks > 0) ++swaps;
    } else if (method == wire::RequestCompleted::kMethod) {
      const auto end = wire::RequestCompleted::from_json(body).value();
      ends[end.request.value] = end.reason;
    }
  }

  control::Client broker_;
  boost::asio::io_context io_;
  std::string token_;
  std::shared_ptr<control::Peer> worker_;
};

}  // namespace

TEST_CASE("preemption: requests beyond their tenant's blocks wait in turn, and get the same text") {
  const bool has_swap = GENERATE(false, true);
  CAPTURE(has_swap);
  System system(
      {.broker_arguments = {"--swap-capacity", has_swap ? "64MiB" : "0"}, .worker_arguments = {}});
  system.admit("calm", {"--ttl-ms", "600000"});
  system.admit("tight", {"--ttl-ms", "600000", "--max-blocks", "102"});
  LeaseStreams calm(system, "calm");
  LeaseStreams tight(system, "tight");
  for (std::uint32_t i = 0; i < kTightRequests; ++i) calm.submit(i);
  calm.wait_for_ends(kTightRequests);
  REQUIRE(calm.preemptions == 0);

  for (std::uint32_t i = 0; i < kTightRequests; ++i) tight.submit(i);
  tight.wait_for_ends(kTightRequests);

  CHECK(tight.preemptions > 0);
  CHECK((tight.swaps > 0) == has_swap);
  for (const auto& [number, end] : tight.ends) {
    CAPTURE(number);
    CHECK(end == "MaxTokensReached");
    CHECK(tight.tokens[number].size() == kLongText);
    CHECK((tight.tokens[number] == calm.tokens[number]));
  }
}

}  // namespace leasehold::testing
