#include "worker/metrics/metrics_page.hpp"

#include "common/cli/version.hpp"
#include "common/metrics/exposition.hpp"

namespace leasehold {
namespace {

using metrics::Exposition;
using metrics::Labels;

double number(std::uint64_t count) {
  return static_cast<double>(count);
}

void add_identity(Exposition& page, const WorkerIdentity& identity) {
  page.gauge({"leasehold_worker_info", "The worker; always 1"}, 1,
             {{"worker", identity.worker},
              {"model", identity.model},
              {"version", std::string(version())}});
}

void add_requests(Exposition& page, const RequestMetrics& requests) {
  constexpr metrics::Name kCompleted{"leasehold_requests_completed_total",
                                     "Requests that ran and have ended, by reason"};
  for (std::size_t i = 0; i < RequestMetrics::kReasonCount; ++i) {
    const auto reason = static_cast<CompletionReason>(i);
    page.counter(kCompleted, number(requests.completed(reason)),
                 {{"reason", std::string(name(reason))}});
  }
  constexpr metrics::Name kRefused{"leasehold_requests_refused_total",
                                   "Requests that were refused before they ran, by error code"};
  for (int i = 0; i < kErrcCount; ++i) {
    const auto code = static_cast<Errc>(i);
    // Most codes never refuse a request, so zeros are left out. QueueFull is always written, so
    // that the metric exists.
    if (const auto count = requests.refused_count(code); count > 0 || code == Errc::QueueFull)
      page.counter(kRefused, number(count), {{"code", std::string(name(code))}});
  }
  page.counter({"leasehold_refused_keys_total", "HTTP requests with an API key that is not valid"},
               number(requests.refused_keys().value()));
  constexpr metrics::Name kLines{"leasehold_worker_batch_lines",
                                 "Lines of batches: those that wait or run now, and those with a "
                                 "result since the start"};
  const metrics::BatchLines& lines = requests.batch_lines();
  page.gauge(kLines, number(lines.waiting.load()), {{"state", "waiting"}});
  page.gauge(kLines, number(lines.running.load()), {{"state", "running"}});
  page.gauge(kLines, number(lines.completed.value()), {{"state", "completed"}});
  page.gauge(kLines, number(lines.failed.value()), {{"state", "failed"}});
  constexpr metrics::Name kTokens{"leasehold_tokens_total",
                                  "Tokens: prompts whose first token or embedding was sent, and "
                                  "generated ones"};
  page.counter(kTokens, number(requests.prompt_tokens()), {{"kind", "prompt"}});
  page.counter(kTokens, number(requests.generated_tokens()), {{"kind", "generated"}});
  page.counter({"leasehold_embeddings_total", "Embeddings that were computed"},
               number(requests.embeddings()));
  page.counter({"leasehold_preemptions_total", "Running requests that gave their blocks to others"},
               number(requests.preemptions()));
  page.counter({"leasehold_rebinds_total", "Requests that continued under another lease"},
               number(requests.rebinds()));
  page.histogram({"leasehold_request_latency_seconds", "From the submission to the end"},
                 requests.latency());
  page.histogram(
      {"leasehold_time_to_first_token_seconds", "From the submission to the first token"},
      requests.first_token());
  page.histogram({"leasehold_inter_token_latency_seconds", "Between two tokens of a request"},
                 requests.inter_token());
  constexpr metrics::Name kClock{
      "leasehold_revocation_clock_seconds",
      "From a revocation to each refusing poll (t_refuse) and each typed end (t_error)"};
  page.histogram(kClock, requests.clock_refuse(), {{"clock", "t_refuse"}});
  page.histogram(kClock, requests.clock_error(), {{"clock", "t_error"}});
}

void add_engine(Exposition& page, const WorkerIdentity& identity, const EngineSnapshot& engine) {
  constexpr metrics::Name kRequests{"leasehold_requests", "Requests that run or wait"};
  page.gauge(kRequests, number(engine.running), {{"state", "running"}});
  page.gauge(kRequests, number(engine.waiting), {{"state", "waiting"}});
  constexpr metrics::Name kBlocks{
      "leasehold_kv_blocks",
      "KV blocks of the leases: held by requests, cached alone, free, or "
      "copied to swap"};
  page.gauge(kBlocks, number(engine.held_blocks), {{"state", "held"}});
  page.gauge(kBlocks, number(engine.cached_blocks), {{"state", "cached"}});
  page.gauge(kBlocks, number(engine.free_blocks), {{"state", "free"}});
  page.gauge(kBlocks, number(engine.swapped_blocks), {{"state", "swapped"}});
  const PrefixCounters& prefixes = engine.prefixes;
  const std::uint64_t block = identity.tokens_per_block;
  page.counter({"leasehold_prefix_queried_tokens_total", "Tokens looked up in the prefix cache"},
               number((prefixes.hits + prefixes.misses) * block));
  page.counter({"leasehold_prefix_hit_tokens_total", "Tokens found there and not computed again"},
               number(prefixes.hits * block));
  page.counter({"leasehold_prefix_evicted_blocks_total", "Blocks evicted from the prefix cache"},
               number(prefixes.evictions));
  page.counter({"leasehold_prefix_cross_tenant_hits_total",
                "Blocks found of another tenant; more than 0 is a leak"},
               number(prefixes.cross_tenant_hits));
  page.counter({"leasehold_proposed_tokens_total", "Tokens that --speculate proposed and computed"},
               number(engine.proposals.proposed));
  page.counter({"leasehold_accepted_tokens_total", "Proposed tokens that the sampler drew, too"},
               number(engine.proposals.accepted));
  page.gauge({"leasehold_worker_asleep",
              "1 while the worker has given its weights back and waits for a request, or restores "
              "them for one"},
             engine.is_asleep ? 1 : 0);
  if (!engine.is_drafting) return;
  page.gauge({"leasehold_draft_model_live",
              "1 while the draft model makes the proposals, 0 once one of its leases is lost"},
             *engine.is_drafting ? 1 : 0);
  page.counter({"leasehold_draft_seconds_total", "Time of the engine that the draft model took"},
               static_cast<double>(engine.proposals.time.count()) / 1e9);
}

void add_adapters(Exposition& page, const AdapterCounts& adapters) {
  constexpr metrics::Name kAdapters{"leasehold_adapters", "Versions of adapters on this worker"};
  page.gauge(kAdapters, number(adapters.loaded), {{"state", "loaded"}});
  page.gauge(kAdapters, number(adapters.loading), {{"state", "loading"}});
  page.gauge({"leasehold_adapter_bytes", "Matrices of the loaded adapters"},
             number(adapters.loaded_bytes));
  page.counter({"leasehold_adapter_loads_total", "Adapters that were loaded"},
               number(adapters.loads));
  page.counter({"leasehold_adapter_evictions_total", "Loaded adapters that left the worker"},
               number(adapters.evictions));
}

void add_tenants(Exposition& page, const std::vector<wire::TenantServed>& tenants) {
  const auto add = [&](const metrics::Name& name, std::uint64_t wire::TenantServed::* count) {
    for (const wire::TenantServed& each : tenants)
      page.counter(name, number(each.*count), {{"tenant", each.tenant.value}});
  };
  add({"leasehold_tenant_tokens_total",
       "Tokens computed for the busiest tenants; the rest is counted as tenant=\"other\""},
      &wire::TenantServed::tokens);
  add({"leasehold_tenant_prefix_hit_tokens_total",
       "Tokens of the tenant found in the prefix cache"},
      &wire::TenantServed::hit_tokens);
  add({"leasehold_tenant_evicted_blocks_total", "Cached blocks of the tenant that were evicted"},
      &wire::TenantServed::evicted_blocks);
  add({"leasehold_tenant_preemptions_total", "Preempted requests of the tenant"},
      &wire::TenantServed::preemptions);
}

void add_spans(Exposition& page, const SpanCounts& spans) {
  constexpr metrics::Name kSpans{
      "leasehold_trace_spans_total",
      "Spans of traces that the collector of --otlp-endpoint accepted, and that were dropped"};
  page.counter(kSpans, number(spans.exported), {{"result", "exported"}});
  page.counter(kSpans, number(spans.dropped), {{"result", "dropped"}});
}

std::string_view finished_reason(CompletionReason reason) {
  switch (reason) {
    case CompletionReason::EndOfSequence:
    case CompletionReason::StopSequence:
      return "stop";
    case CompletionReason::MaxTokensReached:
    case CompletionReason::ContextFull:
      return "length";
    case CompletionReason::EngineError:
      return "error";
    case CompletionReason::Cancelled:
    case CompletionReason::RequestCancelled:
    case CompletionReason::Revoked:
    case CompletionReason::LeaseFenced:
    case CompletionReason::DeadlineExceeded:
      return "abort";
  }
  return "abort";
}

void add_finished(Exposition& page, const Labels& model, const RequestMetrics& requests) {
  for (const std::string_view finished : {"stop", "length", "abort", "error"}) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < RequestMetrics::kReasonCount; ++i) {
      const auto reason = static_cast<CompletionReason>(i);
      if (finished_reason(reason) == finished) count += requests.completed(reason);
    }
    Labels labels = model;
    labels.emplace_back("finished_reason", finished);
    page.counter({"vllm:request_success_total", "Requests that have ended"}, number(count), labels);
  }
}

void add_vllm_names(Exposition& page, const WorkerIdentity& identity,
                    const RequestMetrics& requests, const EngineSnapshot& engine) {
  const Labels model{{"model_name", identity.model}};
  const std::uint64_t block = identity.tokens_per_block;
  const std::uint64_t blocks = engine.held_blocks + engine.cached_blocks + engine.free_blocks;
  page.gauge({"vllm:num_requests_running", "Requests that run"}, number(engine.running), model);
  page.gauge({"vllm:num_requests_waiting", "Requests that wait"}, number(engine.waiting), model);
  page.gauge({"vllm:kv_cache_usage_perc",
              "Share of the blocks lent to this worker that requests hold, 0 to 1"},
             blocks == 0 ? 0 : number(engine.held_blocks) / number(blocks), model);
  page.counter({"vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache"},
               number((engine.prefixes.hits + engine.prefixes.misses) * block), model);
  page.counter({"vllm:prefix_cache_hits_total", "Tokens found in the prefix cache"},
               number(engine.prefixes.hits * block), model);
  page.counter({"vllm:spec_decode_num_draft_tokens_total", "Proposed tokens"},
               number(engine.proposals.proposed), model);
  page.counter({"vllm:spec_decode_num_accepted_tokens_total", "Proposed tokens that were accepted"},
               number(engine.proposals.accepted), model);
  page.counter({"vllm:num_preemptions_total", "Preempted requests"}, number(requests.preemptions()),
               model);
  page.counter({"vllm:prompt_tokens_total", "Prompt tokens"}, number(requests.prompt_tokens()),
               model);
  page.counter({"vllm:generation_tokens_total", "Generated tokens"},
               number(requests.generated_tokens()), model);
  add_finished(page, model, requests);
  page.histogram({"vllm:time_to_first_token_seconds", "From the submission to the first token"},
                 requests.first_token(), model);
  page.histogram({"vllm:inter_token_latency_seconds", "Between two tokens of a request"},
                 requests.inter_token(), model);
  page.histogram({"vllm:e2e_request_latency_seconds", "From the submission to the end"},
                 requests.latency(), model);
}

}  // namespace

std::string metrics_page(const WorkerIdentity& identity, const RequestMetrics& requests,
                         const EngineSnapshot& engine, const ObservationCounts& observed) {
  Exposition page;
  add_identity(page, identity);
  page.counter({"leasehold_log_lines_dropped_total",
                "Lines of the worker's log that the reader of its stderr did not take"},
               number(observed.log_lines_dropped));
  if (observed.spans) add_spans(page, *observed.spans);
  add_requests(page, requests);
  add_engine(page, identity, engine);
  if (engine.adapters) add_adapters(page, *engine.adapters);
  add_tenants(page, engine.tenants);
  add_vllm_names(page, identity, requests, engine);
  return page.text();
}

}  // namespace leasehold
