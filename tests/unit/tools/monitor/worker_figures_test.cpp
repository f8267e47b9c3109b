// What the monitor reads from the metrics of a worker.
#include "tools/monitor/worker_figures.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/temporary_directory.hpp"
#include "worker/metrics/metrics_page.hpp"

using namespace leasehold;
using namespace leasehold::monitor;

namespace {

Errc error_of(std::string_view page) {
  const auto figures = worker_figures(page);
  REQUIRE_FALSE(figures);
  return figures.error().code;
}

constexpr std::string_view kInfo = "leasehold_worker_info{worker=\"w1\",model=\"m\"} 1\n";

}  // namespace

TEST_CASE("worker figures: are read from the page that a worker makes") {
  RequestMetrics requests;
  ManualClock clock;
  RequestTiming timing{.submitted_at = clock.now(), .prompt_tokens = 3};
  requests.token(timing, 0, clock.now() + std::chrono::milliseconds(30));
  requests.token(timing, 1, clock.now() + std::chrono::milliseconds(33));
  requests.refused(Errc::QuotaConcurrent);
  requests.refused_keys().add(7);
  EngineSnapshot engine;
  engine.running = 2;
  engine.waiting = 5;
  const std::string name = "a \"quoted\" \\ name\n";
  const auto figures =
      worker_figures(metrics_page({.worker = "w1", .model = name}, requests, engine, {}));
  REQUIRE(figures);
  CHECK(figures->worker == "w1");
  CHECK(figures->model == name);
  CHECK(figures->running == 2);
  CHECK(figures->waiting == 5);
  CHECK(figures->refused == std::map<std::string, std::uint64_t>{{"QuotaConcurrent", 1}});
  CHECK(figures->refused_keys == 7);
  const LatencyBuckets& first = figures->first_token;
  REQUIRE(first.bounds_s.size() == first.counts.size());
  for (std::size_t i = 0; i < first.counts.size(); ++i)
    CHECK(first.counts[i] == (first.bounds_s[i] >= 0.03 ? 1u : 0u));
  CHECK(figures->inter_token.counts.back() == 1);
  CHECK(figures->to_json().at("first_token").at("bounds_s").back().is_null());
}

TEST_CASE("worker figures: another page, or one that cannot be read, is MalformedMessage") {
  CHECK(error_of("") == Errc::MalformedMessage);
  CHECK(error_of("leasehold_broker_up 1\n") == Errc::MalformedMessage);
  for (const char* line :
       {"leasehold_requests{state=\"running\"} many\n",
        "leasehold_requests{state=\"running\"} -1\n", "leasehold_requests{state=\"running} 1\n",
        "leasehold_requests{state\n", "leasehold_time_to_first_token_seconds_bucket{le=\"x\"} 1\n",
        "leasehold_time_to_first_token_seconds_bucket{le=\"1\"} 2\n"
        "leasehold_time_to_first_token_seconds_bucket{le=\"2\"} 1\n"}) {
    CAPTURE(line);
    CHECK(error_of(std::string(kInfo) + line) == Errc::MalformedMessage);
  }
  CHECK(worker_figures(std::string(kInfo) + "other_metric{ nonsense\n# HELP x\n"));
}

TEST_CASE("fetch metrics: the errors name the address") {
  const TemporaryDirectory directory = TemporaryDirectory::create("metrics").value();
  const std::string path = directory.file("socket");
  const auto absent = fetch_metrics({.unix_path = path});
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == Errc::FileNotFound);
  CHECK_THAT(absent.error().detail, Catch::Contains(path));

  namespace asio = boost::asio;
  using Local = asio::local::stream_protocol;
  asio::io_context io;
  Local::acceptor acceptor(io, path);
  const auto reply_to_next = [&](const std::string& reply) {
    std::jthread server([&acceptor, reply] {
      auto socket = acceptor.accept();
      std::array<char, 1024> request;
      socket.read_some(asio::buffer(request));
      boost::system::error_code ended;  // the reader may stop early
      asio::write(socket, asio::buffer(reply), ended);
    });
    return fetch_metrics({.unix_path = path});
  };
  CHECK(reply_to_next("HTTP/1.1 200 OK\r\n\r\ntext").value() == "text");
  CHECK(reply_to_next("HTTP/1.1 404 Not Found\r\n\r\n").error().code == Errc::MalformedMessage);
  CHECK(reply_to_next(std::string(2 << 20, 'x')).error().code == Errc::MessageTooLarge);
  const auto silent =
      fetch_metrics({.unix_path = path});  // the kernel accepts, and the server does not read
  CHECK(silent.error().code == Errc::TimedOut);
}
