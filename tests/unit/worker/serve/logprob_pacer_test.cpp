// When log probabilities that were sent count as taken.
#include "worker/serve/logprob_pacer.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace leasehold::testing {
namespace {

struct Clients {
  std::map<RequestId, std::optional<std::size_t>> unread;
  std::vector<std::string> seen;
  boost::asio::io_context io;
  ManualClock clock;
  LogprobPacer pacer{
      io,
      clock,
      {.unread_bytes = [this](const RequestId& id) { return unread[id]; },
       .on_taken =
           [this](const RequestId& id, std::uint32_t positions) {
             seen.push_back(id.value + " took " + std::to_string(positions));
           },
       .on_stalled = [this](const RequestId& id) { seen.push_back(id.value + " stalled"); }}};
};

constexpr std::size_t kMuch = LogprobPacer::kMaxQueuedBytes + 1;

}  // namespace

TEST_CASE("logprob pacer: values are taken once little of the output is unread") {
  Clients clients;
  clients.unread = {{{"fast"}, LogprobPacer::kMaxQueuedBytes}, {{"slow"}, kMuch}};
  clients.pacer.sent({"fast"}, 40);
  CHECK(clients.seen == std::vector<std::string>{"fast took 40"});
  clients.pacer.sent({"slow"}, 30);
  clients.pacer.sent({"slow"}, 12);
  CHECK(clients.seen.size() == 1);
  clients.unread[{"slow"}] = 0;
  clients.pacer.check();
  CHECK(clients.seen.back() == "slow took 42");
  clients.pacer.check();
  CHECK(clients.seen.size() == 2);
}

TEST_CASE("logprob pacer: a client that does not read is stalled, and an ended request is not") {
  Clients clients;
  clients.unread = {{{"slow"}, kMuch}, {{"ends"}, kMuch}};
  clients.pacer.sent({"slow"}, 40);
  clients.pacer.sent({"ends"}, 5);
  clients.clock.advance(LogprobPacer::kReadTimeout - Duration(1));
  clients.pacer.check();
  CHECK(clients.seen.empty());
  clients.clock.advance(Duration(1));
  clients.unread[{"ends"}] = std::nullopt;
  clients.pacer.check();
  CHECK(clients.seen == std::vector<std::string>{"ends took 5", "slow stalled"});
}

}  // namespace leasehold::testing
