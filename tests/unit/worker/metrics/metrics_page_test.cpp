// The text of a worker's metrics, from known counts.
#include <catch2/catch.hpp>

#include "worker/metrics/metrics_page.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kSubmitted{1'000'000'000};

std::string page(const RequestMetrics& requests, const EngineSnapshot& engine) {
  return metrics_page({.worker = "w1", .model = "m"}, requests, engine,
                      {.log_lines_dropped = 4, .spans = SpanCounts{.exported = 5, .dropped = 6}});
}

}  // namespace

TEST_CASE("worker metrics: one request counts its prompt, its tokens and its times once") {
  RequestMetrics requests;
  RequestTiming timing{.submitted_at = kSubmitted, .prompt_tokens = 7};
  requests.token(timing, 0, kSubmitted + 20ms);
  requests.token(timing, 1, kSubmitted + 30ms);
  requests.token(timing, 2, kSubmitted + 40ms);
  requests.completed(timing, CompletionReason::MaxTokensReached, kSubmitted + 40ms);
  const std::string text = page(requests, {});
  for (const char* line :
       {"leasehold_tokens_total{kind=\"prompt\"} 7\n",
        "leasehold_tokens_total{kind=\"generated\"} 3\n",
        "leasehold_time_to_first_token_seconds_count 1\n",
        "leasehold_time_to_first_token_seconds_bucket{le=\"0.01\"} 0\n",
        "leasehold_time_to_first_token_seconds_bucket{le=\"0.025\"} 1\n",
        "leasehold_inter_token_latency_seconds_bucket{le=\"0.01\"} 2\n",
        "leasehold_request_latency_seconds_bucket{le=\"0.05\"} 1\n",
        "leasehold_requests_completed_total{reason=\"MaxTokensReached\"} 1\n",
        "vllm:prompt_tokens_total{model_name=\"m\"} 7\n",
        "vllm:generation_tokens_total{model_name=\"m\"} 3\n",
        "vllm:request_success_total{model_name=\"m\",finished_reason=\"length\"} 1\n",
        "vllm:request_success_total{model_name=\"m\",finished_reason=\"stop\"} 0\n",
        "vllm:e2e_request_latency_seconds_count{model_name=\"m\"} 1\n"})
    CHECK_THAT(text, Catch::Contains(line));
}

TEST_CASE("worker metrics: a request that continues under another lease has one first token") {
  RequestMetrics requests;
  RequestTiming continued{.submitted_at = kSubmitted, .prompt_tokens = 7};
  requests.token(continued, 5, kSubmitted + 20ms);
  requests.token(continued, 6, kSubmitted + 30ms);
  CHECK(requests.prompt_tokens() == 0);
  CHECK(requests.generated_tokens() == 2);
  CHECK(requests.first_token().sum_s == 0);
  CHECK(requests.inter_token().sum_s == Approx(0.01));  // not the gap before the first one
}

TEST_CASE("worker metrics: a poll that no word refused moves no clock") {
  RequestMetrics requests;
  requests.refused_poll(Duration::zero());
  requests.refused_poll(1ms);
  CHECK_THAT(page(requests, {}), Catch::Contains("clock=\"t_refuse\",le=\"+Inf\"} 1\n"));
}

TEST_CASE("worker metrics: adapters are those of the snapshot, and missing without --adapters") {
  const RequestMetrics requests;
  CHECK_FALSE(page(requests, {}).contains("leasehold_adapter"));
  const AdapterCounts counts{
      .loaded = 2, .loading = 1, .loaded_bytes = 300, .loads = 9, .evictions = 7};
  const std::string text = page(requests, {.adapters = counts});
  for (const char* line :
       {"leasehold_adapters{state=\"loaded\"} 2\n", "leasehold_adapters{state=\"loading\"} 1\n",
        "leasehold_adapter_bytes 300\n", "leasehold_adapter_loads_total 9\n",
        "leasehold_adapter_evictions_total 7\n"})
    CHECK_THAT(text, Catch::Contains(line));
}

TEST_CASE("worker metrics: blocks, prefixes and proposals are those of the snapshot") {
  RequestMetrics requests;
  EngineSnapshot engine{.running = 2,
                        .waiting = 3,
                        .held_blocks = 6,
                        .cached_blocks = 1,
                        .free_blocks = 5,
                        .swapped_blocks = 4,
                        .prefixes = {.hits = 3, .misses = 1, .evictions = 9},
                        .proposals = {.proposed = 20, .accepted = 15}};
  wire::TenantServed ann;
  ann.tenant = {"ann"};
  ann.tokens = 11;
  ann.hit_tokens = 48;
  engine.tenants.push_back(ann);
  const std::string text = page(requests, engine);
  for (const char* line :
       {"leasehold_requests{state=\"running\"} 2\n", "leasehold_requests{state=\"waiting\"} 3\n",
        "leasehold_kv_blocks{state=\"held\"} 6\n", "leasehold_kv_blocks{state=\"cached\"} 1\n",
        "leasehold_kv_blocks{state=\"free\"} 5\n", "leasehold_kv_blocks{state=\"swapped\"} 4\n",
        "leasehold_proposed_tokens_total 20\n", "leasehold_accepted_tokens_total 15\n",
        "vllm:spec_decode_num_draft_tokens_total{model_name=\"m\"} 20\n",
        "vllm:spec_decode_num_accepted_tokens_total{model_name=\"m\"} 15\n",
        "leasehold_prefix_queried_tokens_total 64\n", "leasehold_prefix_hit_tokens_total 48\n",
        "leasehold_prefix_evicted_blocks_total 9\n",
        "leasehold_tenant_tokens_total{tenant=\"ann\"} 11\n",
        "leasehold_tenant_prefix_hit_tokens_total{tenant=\"ann\"} 48\n",
        "vllm:kv_cache_usage_perc{model_name=\"m\"} 0.5\n",
        "vllm:prefix_cache_queries_total{model_name=\"m\"} 64\n",
        "vllm:prefix_cache_hits_total{model_name=\"m\"} 48\n"})
    CHECK_THAT(text, Catch::Contains(line));
}

TEST_CASE("worker metrics: a draft model has a state and its time") {
  RequestMetrics requests;
  CHECK_THAT(page(requests, {}), !Catch::Contains("leasehold_draft"));
  const EngineSnapshot engine{.proposals = {.time = 1500ms}, .is_drafting = true};
  CHECK_THAT(page(requests, engine), Catch::Contains("leasehold_draft_model_live 1\n") &&
                                         Catch::Contains("leasehold_draft_seconds_total 1.5\n"));
  CHECK_THAT(page(requests, {.is_drafting = false}),
             Catch::Contains("leasehold_draft_model_live 0\n"));
}

TEST_CASE("worker metrics: a sleeping worker says so") {
  RequestMetrics requests;
  CHECK_THAT(page(requests, {}), Catch::Contains("leasehold_worker_asleep 0\n"));
  CHECK_THAT(page(requests, {.is_asleep = true}), Catch::Contains("leasehold_worker_asleep 1\n"));
}

TEST_CASE("worker metrics: refusals are counted by their code") {
  RequestMetrics requests;
  requests.refused(Errc::QuotaConcurrent);
  requests.refused(Errc::QuotaConcurrent);
  requests.refused_poll(3us);
  requests.error_written(2ms);
  const std::string text = page(requests, {});
  CHECK_THAT(text,
             Catch::Contains("leasehold_requests_refused_total{code=\"QuotaConcurrent\"} 2\n"));
  CHECK_THAT(text,
             Catch::Contains(
                 "leasehold_revocation_clock_seconds_bucket{clock=\"t_refuse\",le=\"5e-06\"} 1\n"));
  CHECK_THAT(text,
             Catch::Contains("leasehold_revocation_clock_seconds_count{clock=\"t_error\"} 1\n"));
}
