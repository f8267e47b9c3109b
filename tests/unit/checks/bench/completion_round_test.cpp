// Completions that a client asks a server for, on one thread with the server.
#include "tests/checks/bench/completion_round.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <set>

#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/support/required.hpp"

namespace leasehold::bench {
namespace {

using boost::asio::ip::tcp;

constexpr std::int64_t kMs = 1'000'000;

std::string http_chunk(const std::string& json) {
  const std::string event = "data: " + json + "\n\n";
  char size[16];
  std::snprintf(size, sizeof(size), "%zx", event.size());
  return size + ("\r\n" + event) + "\r\n";
}

/// As llama.cpp's server writes them.
const std::string kWord =
    http_chunk(R"({"choices":[{"text":" a","index":0,"logprobs":null,"finish_reason":null}]})");

std::string last_chunk(int tokens) {
  return http_chunk(
      R"({"choices":[{"text":"","finish_reason":"length"}],"usage":{"completion_tokens":)" +
      std::to_string(tokens) + "}}");
}

/// Sends the same answer to each client.
class AnsweringServer {
 public:
  AnsweringServer(boost::asio::io_context& io, std::string answer)
      : acceptor_(io, {boost::asio::ip::address_v4::loopback(), 0}), answer_(std::move(answer)) {
    accept();
  }
  CompletionServer address() const {
    return {.port = acceptor_.local_endpoint().port(), .key = "k", .model = "m"};
  }

 private:
  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket client) {
      if (error) return;
      clients_.push_back(std::move(client));
      boost::system::error_code ignored;
      boost::asio::write(clients_.back(), boost::asio::buffer(answer_), ignored);
      if (answer_.empty()) clients_.back().close(ignored);
      accept();
    });
  }

  tcp::acceptor acceptor_;
  std::string answer_;
  std::vector<tcp::socket> clients_;
};

Result<std::vector<StreamTimes>> round_with(const std::string& answer) {
  boost::asio::io_context io;
  const AnsweringServer server(io, answer);
  return run_round(io, server.address(), make_prompts(3, 4, 0), 2);
}

const std::string kHead = "HTTP/1.1 200 OK\r\n\r\n";
const std::string kEnd = http_chunk("[DONE]") + "0\r\n\r\n";

}  // namespace

TEST_CASE(
    "completion round: figures are of all streams together and of each from its first token") {
  const StreamTimes quick{
      .sent = {1'000 * kMs}, .first = {1'010 * kMs}, .last = {1'110 * kMs}, .tokens = 11};
  const StreamTimes slow{
      .sent = {1'010 * kMs}, .first = {1'040 * kMs}, .last = {1'240 * kMs}, .tokens = 21};
  const StreamTimes streams[] = {quick, slow, quick};
  const Figures figures = figures_of(streams);
  CHECK(figures.at("tokens_per_s") == Approx(43 / 0.24));
  CHECK(figures.at("decode_tokens_per_s") == Approx(300));
  CHECK(figures.at("first_token_ms") == Approx(10));
  CHECK(figures.at("slowest_first_token_ms") == Approx(30));
}

TEST_CASE("completion round: prompts are words, and none begins as another") {
  const Prompts prompts = make_prompts(TenantPool::kPromptWords, 5, 7);
  std::set<TokenId> firsts;
  for (const auto& prompt : prompts) {
    CHECK(prompt.size() == 5);
    firsts.insert(prompt.front());
    for (const TokenId token : prompt) {
      CHECK(token >= TenantPool::kFirstPromptToken);
      CHECK(token < TenantPool::kFirstPromptToken + TenantPool::kPromptWords);
    }
  }
  CHECK(firsts.size() == prompts.size());
  CHECK(make_prompts(1, 5, 8).front() == prompts[1]);
}

TEST_CASE("completion round: each stream has the tokens that the server counts, in order of time") {
  const auto times = testing::required(round_with(kHead + kWord + kWord + last_chunk(2) + kEnd));
  CHECK(times.size() == 3);
  for (const StreamTimes& stream : times) {
    CHECK(stream.tokens == 2);
    CHECK(stream.sent < stream.first);
    CHECK(stream.first < stream.last);
  }
}

TEST_CASE("completion round: answers that cannot be compared are errors") {
  const auto code_of = [](const std::string& answer) {
    const auto times = round_with(answer);
    REQUIRE_FALSE(times);
    return times.error().code;
  };
  CHECK(code_of(kHead + kWord + kWord + last_chunk(1) + kEnd) == Errc::MalformedMessage);
  CHECK(code_of(kHead + kWord + kWord + kEnd) == Errc::MalformedMessage);
  CHECK(code_of(kHead + kWord + last_chunk(2) + kEnd) == Errc::MalformedMessage);
  CHECK(code_of("HTTP/1.1 400 Bad Request\r\n\r\n") == Errc::BadRequest);
  CHECK(code_of("") == Errc::ConnectionLost);
  boost::asio::io_context io;
  std::uint16_t unused = 0;
  {
    const AnsweringServer server(io, "");
    unused = server.address().port;
  }
  const auto refused = run_round(io, {.port = unused, .key = {}, .model = {}}, {{1}}, 2);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::ConnectionRefused);
}

}  // namespace leasehold::bench
