// What an answer sends in one write, and what is left of a resumable request whose client has gone
// before the end.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>
#include <future>
#include <nlohmann/json.hpp>

#include "tests/support/tiny_tokenizer.hpp"
#include "tests/unit/worker/http/fake_client.hpp"
#include "worker/http/answers/answer_driver.hpp"
#include "worker/http/api/api_answer.hpp"

namespace leasehold::http {

TEST_CASE("http answer: a lease is kept for a client that left before the end was written") {
  ServerWorld world;
  const Tokenizer tokenizer = testing::tiny_tokenizer();
  Shared shared(dependencies(world, tokenizer));
  FakeClient reader;
  reader.leaves = GENERATE(true, false);
  Caller caller;
  caller.tenant = {"A"};
  caller.key = "k";
  caller.key_id = {"k1"};
  ApiRequest request;
  request.submit = world.request;
  request.submit.resumable = true;
  request.stream = GENERATE(true, false);
  bool is_over = false;
  boost::asio::co_spawn(world.io, answer_request(shared, caller, request, reader),
                        [&](const std::exception_ptr&) { is_over = true; });
  world.run_until([&] { return world.worker.calls("request.submit").size() == 1; });
  const auto submitted = world.worker.calls("request.submit").front();
  CHECK(submitted.at("x_request_id") == "a-1");
  CHECK(submitted.at("traceparent") == reader.exchange.trace->text());
  // An earlier client of the request has left.
  shared.leases->keep(caller.key_id, request.submit.request_id, std::chrono::seconds(60));
  world.worker.notify_submitter(
      "request.completed",
      wire::RequestCompleted{
          .request = request.submit.request_id, .reason = "MaxTokensReached", .scope = "tenant"}
          .to_json());
  world.run_until([&] { return is_over; });
  if (!reader.leaves)
    world.run_until([&] { return world.broker.calls("lease.release").size() == 1; });
  world.settle();
  CHECK(world.broker.calls("lease.release").size() == (reader.leaves ? 0 : 1));
  CHECK(reader.writes.size() == (request.stream ? 1 : 0));
}

TEST_CASE("http answer: it waits for a lease between two leases, and not while it is written") {
  ServerWorld world;
  const Tokenizer tokenizer = testing::tiny_tokenizer();
  Shared shared(dependencies(world, tokenizer));
  boost::asio::steady_timer unread(world.io, boost::asio::steady_timer::time_point::max());
  FakeClient reader;
  reader.unread = &unread;
  Caller caller;
  caller.tenant = {"A"};
  caller.key = "k";
  caller.key_id = {"k1"};
  ApiRequest request;
  request.submit = world.request;
  request.stream = true;
  world.broker.held = "lease.acquire";
  bool is_over = false;
  boost::asio::co_spawn(world.io, answer_request(shared, caller, request, reader),
                        [&](const std::exception_ptr&) { is_over = true; });
  world.run_until([&] { return world.broker.calls("lease.acquire").size() == 1; });
  CHECK(shared.counts.awaiting_lease == 1);
  world.broker.answer_held();
  world.run_until([&] { return shared.counts.awaiting_lease == 0; });

  world.emit(0, 1);
  world.run_until([&] { return reader.writes.size() == 1; });
  world.broker.held = "lease.acquire";
  world.complete_revoked({1, 1});
  world.settle();
  CHECK(shared.counts.awaiting_lease == 0);
  unread.expires_at(boost::asio::steady_timer::time_point::min());
  world.run_until([&] { return shared.counts.awaiting_lease == 1; });

  world.broker.answer_held();
  world.run_until([&] { return world.worker.calls("request.submit").size() == 2; });
  world.emit(1, 1);
  world.run_until([&] { return shared.counts.awaiting_lease == 0; });
  world.worker.notify_submitter(
      "request.completed",
      wire::RequestCompleted{
          .request = request.submit.request_id, .reason = "MaxTokensReached", .scope = "tenant"}
          .to_json());
  world.run_until([&] { return is_over; });
  world.settle();
}

namespace {

enum class Form : std::uint8_t { Stream, Scored };  // one body with log probabilities

/// An answer whose request the worker has accepted.
struct Streamed {
  explicit Streamed(Duration heartbeat = Duration::zero(), const std::string& schema = {},
                    Form form = Form::Stream) {
    shared.deps.heartbeat = heartbeat;
    caller.tenant = {"A"};
    caller.key = "k";
    caller.key_id = {"k1"};
    request.submit = world.request;
    request.stream = form == Form::Stream;
    request.submit.sampling.logprobs = form == Form::Scored;
    if (!schema.empty()) {
      request.schema_path = "response_format/schema";
      request.submit.sampling.response_format = {.type = "json_schema", .schema = schema};
    }
    boost::asio::co_spawn(world.io, answer_request(shared, caller, request, reader),
                          [this](const std::exception_ptr&) { is_over = true; });
    world.run_until([this] { return world.worker.calls("request.submit").size() == 1; });
  }
  ~Streamed() { world.settle(); }

  void end_with_error(std::uint32_t emitted_tokens, std::string reason = "DeadlineExceeded") {
    world.worker.notify_submitter("request.completed",
                                  wire::RequestCompleted{.request = request.submit.request_id,
                                                         .reason = std::move(reason),
                                                         .emitted_tokens = emitted_tokens,
                                                         .scope = "tenant",
                                                         .detail = "too late"}
                                      .to_json());
  }

  ServerWorld world;
  const Tokenizer tokenizer = testing::tiny_tokenizer();
  Shared shared{dependencies(world, tokenizer)};
  boost::asio::steady_timer unread{world.io, boost::asio::steady_timer::time_point::max()};
  FakeClient reader;
  Caller caller;
  ApiRequest request;
  bool is_over = false;
};

/// Tokens, then the error and the end of the stream.
void check_error_after(std::size_t tokens, const ServerEvents& events) {
  REQUIRE(events.size() == tokens + 2);
  for (std::size_t i = 0; i < tokens; ++i) CHECK(events[i].data.starts_with(R"({"choices":)"));
  CHECK(events[tokens].data.starts_with(R"({"error":)"));
  CHECK(events[tokens + 1].data == kDone);
}

}  // namespace

TEST_CASE("http answer: what came during a write is sent in one, an error after its tokens") {
  Streamed stream;
  stream.reader.unread = &stream.unread;
  stream.world.emit(0, 1);
  stream.world.run_until([&] { return stream.reader.writes.size() == 1; });
  stream.world.emit(1, 2);
  stream.end_with_error(3);
  stream.world.settle();
  CHECK(stream.reader.writes.size() == 1);
  stream.unread.expires_at(boost::asio::steady_timer::time_point::min());
  stream.world.run_until([&] { return stream.is_over; });

  REQUIRE(stream.reader.writes.size() == 2);
  check_error_after(2, stream.reader.writes[1]);
  CHECK(stream.reader.has_ended);
}

TEST_CASE("http answer: log probabilities are written on the pool, not on the thread of streams") {
  Streamed scored(Duration::zero(), {}, Form::Scored);
  std::promise<void> release;
  const std::shared_future<void> free = release.get_future().share();
  for (const char* other : {"B", "C"})  // one for each thread of the pool
    scored.shared.pool.run({other}, [free] { free.wait(); });
  scored.world.emit(0, 3);
  scored.end_with_error(3, "MaxTokensReached");
  scored.world.settle();
  CHECK(scored.reader.answers == 0);
  release.set_value();
  scored.world.run_until([&] { return scored.is_over; });
  CHECK(scored.reader.answers == 1);
  CHECK_THAT(scored.reader.body, Catch::Contains(R"("logprobs":{)"));
}

TEST_CASE("http answer: of many tokens a write has 64, and others have a turn between two writes") {
  int turns = 0;  // of another connection
  std::vector<int> turns_before;
  Streamed stream;
  stream.reader.unread = &stream.unread;
  stream.reader.on_write = [&] {
    turns_before.push_back(turns);
    boost::asio::post(stream.world.io, [&turns] { ++turns; });
  };
  stream.world.emit(0, 1);
  stream.world.run_until([&] { return stream.reader.writes.size() == 1; });
  stream.world.emit(1, 100);
  stream.world.settle();
  CHECK(stream.reader.writes.size() == 1);
  stream.reader.unread = nullptr;  // later writes end at once
  stream.unread.expires_at(boost::asio::steady_timer::time_point::min());
  stream.world.run_until([&] { return stream.reader.writes.size() == 3; });
  stream.end_with_error(101);
  stream.world.run_until([&] { return stream.is_over; });

  std::vector<std::size_t> sizes;
  for (const ServerEvents& write : stream.reader.writes) sizes.push_back(write.size());
  CHECK(sizes == std::vector<std::size_t>{1, 64, 36, 2});  // the error and the end are the last two
  CHECK(turns_before == std::vector{0, 1, 2, 3});
}

TEST_CASE("http answer: a stream whose prompt is read for long sends comments, and then its text") {
  Streamed stream(std::chrono::milliseconds(1));
  stream.world.run_until([&] { return stream.reader.writes.size() == 3; });
  for (const ServerEvents& write : stream.reader.writes) CHECK(write.empty());
  stream.world.emit(0, 1);
  const auto has_text = [&] { return !stream.reader.writes.back().empty(); };
  stream.world.run_until(has_text);
  const std::size_t before = stream.reader.writes.size();
  stream.world.run_until([&] { return stream.reader.writes.size() > before + 1; });  // goes on
  stream.end_with_error(1);
  stream.world.run_until([&] { return stream.is_over; });
  CHECK(stream.reader.answers == 0);
  CHECK(stream.reader.has_ended);
  CHECK(stream.reader.writes.back().back().data == kDone);
}

TEST_CASE("http answer: no comment is sent before a worker has accepted the request") {
  ServerWorld world;
  const Tokenizer tokenizer = testing::tiny_tokenizer();
  Shared shared(dependencies(world, tokenizer));
  shared.deps.heartbeat = std::chrono::nanoseconds(1);
  FakeClient reader;
  Caller caller;
  caller.tenant = {"A"};
  caller.key = "k";
  caller.key_id = {"k1"};
  ApiRequest request;
  request.submit = world.request;
  request.stream = true;
  world.broker.held = "lease.acquire";
  bool is_over = false;
  boost::asio::co_spawn(world.io, answer_request(shared, caller, request, reader),
                        [&](const std::exception_ptr&) { is_over = true; });
  world.run_until([&] { return world.broker.calls("lease.acquire").size() == 1; });
  world.settle();
  CHECK(reader.writes.empty());
  world.broker.answer_held();
  world.run_until([&] { return !reader.writes.empty(); });
  world.worker.notify_submitter(
      "request.completed",
      wire::RequestCompleted{
          .request = request.submit.request_id, .reason = "MaxTokensReached", .scope = "tenant"}
          .to_json());
  world.run_until([&] { return is_over; });
  world.settle();
}

TEST_CASE("http answer: an error that came with the first token is an event, not an answer") {
  Streamed stream;
  stream.world.emit(0, 1);
  stream.end_with_error(1);
  stream.world.run_until([&] { return stream.is_over; });

  CHECK(stream.reader.answers == 0);
  REQUIRE(stream.reader.writes.size() == 1);
  check_error_after(1, stream.reader.writes[0]);
  CHECK(stream.reader.has_ended);
}

TEST_CASE("http answer: an error before the first token is an answer") {
  Streamed stream;
  stream.end_with_error(0);
  stream.world.run_until([&] { return stream.is_over; });

  CHECK(stream.reader.answers == 1);
  CHECK(stream.reader.writes.empty());
}

TEST_CASE("http answer: a refusal names the schema if the schema is the cause") {
  const auto param_of = [](const std::string& schema) {
    Streamed stream(Duration::zero(), schema);
    stream.end_with_error(0, "BadRequest");
    stream.world.run_until([&] { return stream.is_over; });
    return nlohmann::json::parse(stream.reader.body).at("error").at("param");
  };
  CHECK(param_of(R"({"type":"strange"})") == "response_format/schema");
  CHECK(param_of(R"({"type":"boolean"})").is_null());
}

}  // namespace leasehold::http
