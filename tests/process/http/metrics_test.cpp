// The metrics of a worker that runs, after requests whose counts are known.
#include <catch2/catch.hpp>

#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {
namespace {

constexpr const char* kGetMetrics = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A worker with both servers.
class MeteredSystem {
 public:
  explicit MeteredSystem(const std::string& slow_motion_us = "30")
      : http_({"--slow-motion-us", slow_motion_us, "--metrics", "127.0.0.1:0", "--metrics-host",
               "worker.example"}),
        address_(logged_address(http_.system(), "metrics ready address=")) {}

  HttpSystem& http() { return http_; }
  HttpReply ask(const std::string& request) const {
    HttpClient client(address_);
    client.write(request);
    return client.reply();
  }
  /// Waits until the page has this sample.
  bool shows(const std::string& sample) const {
    return eventually([&] { return ask(kGetMetrics).body.contains("\n" + sample + "\n"); });
  }

 private:
  HttpSystem http_;
  std::string address_;
};

}  // namespace

TEST_CASE("metrics: after known requests the counts are those of the requests") {
  MeteredSystem metered;
  HttpSystem& http = metered.http();
  const std::string key = http.admit("ann");
  std::size_t prompt_tokens = 0;
  for (const int generated : {5, 12}) {
    const HttpReply reply =
        http.send(post("/v1/completions", key, http.completion(key, generated, false)));
    REQUIRE(reply.status == 200);
    prompt_tokens += reply.json()["usage"]["prompt_tokens"].get<std::size_t>();
  }
  CHECK(http.send(post("/v1/completions", "lh-wrong", http.completion(key, 1, false))).status ==
        401);
  CHECK(metered.shows("leasehold_refused_keys_total 1"));
  const std::string model = "{model_name=\"" + http.model(key) + "\"}";
  CHECK(metered.shows("leasehold_requests_completed_total{reason=\"MaxTokensReached\"} 2"));
  CHECK(metered.shows("leasehold_tokens_total{kind=\"prompt\"} " + std::to_string(prompt_tokens)));
  CHECK(metered.shows("leasehold_tokens_total{kind=\"generated\"} 17"));
  CHECK(metered.shows("leasehold_time_to_first_token_seconds_count 2"));
  CHECK(metered.shows("leasehold_inter_token_latency_seconds_count 15"));
  CHECK(metered.shows("leasehold_request_latency_seconds_count 2"));
  CHECK(metered.shows("leasehold_requests{state=\"running\"} 0"));
  CHECK(metered.shows("leasehold_kv_blocks{state=\"held\"} 0"));
  CHECK(metered.shows("vllm:generation_tokens_total" + model + " 17"));
  CHECK(metered.shows("vllm:num_requests_waiting" + model + " 0"));
  // The last token of a request is drawn, and not computed.
  CHECK(metered.shows("leasehold_tenant_tokens_total{tenant=\"ann\"} " +
                      std::to_string(prompt_tokens + 17 - 2)));
}

TEST_CASE("metrics: a revocation in the middle of a request moves its two clocks") {
  MeteredSystem metered("1000");  // the text outlasts many publications, one each second
  System& system = metered.http().system();
  system.admit("ann");
  const auto tenant = system.start_streaming({.tenant = "ann", .max_tokens = 400}, 3);
  CHECK(metered.shows("leasehold_requests{state=\"running\"} 1"));
  system.revoke_mid_request("ann");
  CHECK(tenant->finish() != 0);
  CHECK(metered.shows("leasehold_requests_completed_total{reason=\"Revoked\"} 1"));
  // A poll of the step and one between two steps may both refuse.
  CHECK(eventually([&] {
    return !metered.ask(kGetMetrics)
                .body.contains("leasehold_revocation_clock_seconds_count{clock=\"t_refuse\"} 0\n");
  }));
  CHECK(metered.shows("leasehold_revocation_clock_seconds_count{clock=\"t_error\"} 1"));
}

TEST_CASE("metrics: the address of the metrics answers nothing else, and the API's no metrics") {
  MeteredSystem metered;
  const std::string key = metered.http().admit("ann");
  CHECK(metered.ask(kGetMetrics).head.contains("Content-Type: text/plain; version=0.0.4"));
  CHECK(metered.ask("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 404);
  CHECK(metered.http().send(kGetMetrics).status == 401);
  CHECK(metered.http().send(get("/metrics", key)).status == 404);
}

TEST_CASE(
    "metrics: a site whose name was pointed at the worker does not read the names of tenants") {
  MeteredSystem metered;
  const auto status_for = [&](const std::string& host) {
    return metered.ask("GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n").status;
  };
  for (const std::string host : {"evil.example", "evil.example:9464", "worker.example.evil", "h"})
    CHECK(status_for(host) == 421);
  for (const std::string host :
       {"127.0.0.1:9464", "localhost", "[::1]:9464", "worker.example:9464"})
    CHECK(status_for(host) == 200);
}

}  // namespace leasehold::testing
