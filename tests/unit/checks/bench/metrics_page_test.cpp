// Counters read from a worker's metrics page.
#include "tests/checks/bench/metrics_page.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <thread>

#include "common/machine/temporary_directory.hpp"
#include "ipc/http/page_server.hpp"

using namespace leasehold;
using namespace leasehold::bench;

TEST_CASE("bench: a counter is read from the page that a Unix socket serves") {
  const auto directory = TemporaryDirectory::create("metrics-page").value();
  const std::string path = directory.path() / "metrics.sock";
  boost::asio::io_context io;
  const auto pages =
      http::PageServer::create(
          io, {.unix_path = path, .ip = {}},
          {{.path = "/metrics", .make = [] { return http::Answer{.body = "a_total 12\n"}; }}})
          .value();
  pages->serve();
  std::jthread thread([&io] { io.run(); });

  const auto page = fetch_metrics(path);
  io.stop();
  REQUIRE(page);
  CHECK(metric_of(*page, "a_total").value() == 12);
}

TEST_CASE("bench: a counter has the name that was asked for, and a value") {
  const std::string page = "HTTP/1.1 200 OK\r\n\r\nab 1\na{x=\"y\"} 2\nb few\na 3.5\n";
  CHECK(metric_of(page, "a").value() == 3.5);
  CHECK(metric_of(page, "b").error().code == Errc::BadRequest);
  CHECK(metric_of(page, "c").error().code == Errc::BadRequest);
}

TEST_CASE("bench: a worker without a metrics page is an error") {
  CHECK(fetch_metrics("/nonexistent/metrics.sock").error().code == Errc::ConnectionLost);
}
