// Values that the rules of the messages refuse.
#include <algorithm>
#include <ranges>
#include <string_view>

#include "message_samples.hpp"

namespace leasehold::testing {
namespace {

std::vector<OutOfRange> make_out_of_range() {
  const std::string long_path = '"' + std::string(108, 'p') + '"';
  const std::string long_name = '"' + std::string(65, 'n') + '"';
  return {
      {"TenantAdmit", "/tenant", {R"("")", R"("a/b")", long_name}},
      {"TenantAdmit", "/max_concurrent", {"0", "65"}},
      {"TenantAdmit", "/max_blocks", {"0", "1048577"}},
      {"TenantAdmit", "/weight", {"0", "1001", "4294967297", "-1", "18446744073709551617"}},
      {"TenantAdmit", "/tier", {R"("gold")"}},
      {"TenantAdmit", "/ttl_ms", {"99", "86400001", "18446744073709551615"}},
      {"TenantAdmit", "/rebinds_per_minute", {"0", "6000001"}},
      {"TenantAdmit", "/rebind_burst", {"0", "1048577"}},
      {"TenantAdmit", "/uid", {"4294967296", "-1"}},
      {"TenantList", "/limit", {"1001"}},
      {"TenantList", "/after", {long_name}},
      {"ExtentList", "/limit", {"-1"}},
      {"ExtentList", "/after", {R"("")"}},
      {"LeaseRevoke",
       "/lease",
       {R"("17.0")", R"("17.281474976710656")", R"("4294967296.1")", R"("17")"}},
      {"LeaseRevoke of a part", "/part", {R"("")", R"("two\nlines")"}},
      {"LeaseRevoke of a part", "/worker", {R"("a b")"}},
      {"LeaseDrain", "/grace_ms", {"-1", "86400001"}},
      {"TenantAdmit", "/max_lifetime_ms", {"99"}},
      {"TenantAdmit", "/tokens_per_minute", {"0", "-1", "10000001"}},
      {"TenantQuota", "/tokens_per_minute", {"0", "10000001"}},
      {"TenantQuota", "/token_credit", {"-1", "10000001"}},
      {"TenantQuota", "/request_blocks", {"-1", "1048577"}},
      {"TenantQuota", "/request_tokens", {"0", "10000001"}},
      {"WorkerReady", "/arithmetic", {R"("f64")"}},
      {"WorkerReady", "/model", {'"' + std::string(257, 'm') + '"', R"("two\nlines")"}},
      {"WorkerReady", "/text_identity", {R"("")", R"("tiny")", R"("sha256:0123/int8/f16/1")", "1"}},
      {"LeaseAcquire",
       "/model",
       {R"("")", R"("two\nlines")", '"' + std::string(257, 'm') + '"', R"("sha256:0123456")",
        R"("sha256:0123456X")"}},
      {"LeaseAcquire", "/text_identity", {R"("sha256:01234567")"}},
      {"LeaseAcquire", "/min_context", {"-1", "4294967296"}},
      {"WeightsOpen", "/model", {'"' + std::string(257, 'm') + '"'}},
      {"WeightsOpen", "/part", {'"' + std::string(257, 'p') + '"'}},
      {"QuarantineRelease",
       "/reason",
       {R"("")", R"("two\nlines")", '"' + std::string(201, 'r') + '"'}},
      {"QuarantineView of an extent", "/since_boottime_ns", {"-1"}},
      {"LeasesTouched", "/leases/1", {R"("x")"}},
      {"LeaseStatus", "/state", {R"("Gone")"}},
      {"LeaseStatus", "/deadline_boottime_ns", {"-1"}},
      {"LeaseRevoked", "/reason", {R"("boredom")"}},
      {"LeaseRevoked", "/scope", {R"("weights")"}},
      {"LeaseAcquire", "/blocks", {"1048577"}},
      {"LeaseAcquire", "/ttl_ms", {"-1"}},
      {"LeaseAcquire", "/worker", {R"("w 0")"}},
      {"LeaseAcquired", "/address", {R"("")", long_path, R"("a\u0000b")"}},
      {"LeaseAcquired", "/token", {R"("")"}},
      {"LeaseAcquired", "/deadline_boottime_ns", {"-1"}},
      {"LeaseGrow", "/extents", {"0", "1025"}},
      {"LeaseGrow", "/pool", {R"("disk")", R"("Swap")", R"("")"}},
      {"LeaseShrink", "/extents", {"0"}},
      {"LeaseHold", "/token", {R"("")"}},
      {"WorkerAttach", "/worker", {R"("../w")"}},
      {"WorkerAttach", "/resume", {"12"}},
      {"WorkerAttach", "/protocol", {"0", "-1", R"("2")"}},
      {"LeaseRedeliver", "/extents/1", {R"("x")"}},
      {"WorkerAttached", "/token_key", {R"("00")"}},
      {"WorkerAttached", "/protocol", {"0"}},
      {"WorkerAttached", "/worker", {R"("03")", R"("-3")", R"("18446744073709551616")"}},
      {"WeightsOpen", "/layout_digest", {R"("xyz")"}},
      {"WeightsOpen", "/size_bytes", {"0"}},
      {"WeightsOpen", "/file_inode", {"-1"}},
      {"ExtentShape", "/blocks_per_extent", {"0"}},
      {"LeaseGrant", "/extents/0", {"5"}},
      {"LeaseReclaim", "/count", {"0"}},
      {"Sampling", "/temperature", {"-0.5", "100.5", "1e300"}},
      {"Sampling", "/top_k", {"-1"}},
      {"Sampling", "/top_p", {"null"}},
      {"Sampling", "/min_p", {"1e39"}},
      {"Sampling", "/logit_bias", {"[]", R"({"x7":1})", R"({"07":1})"}},
      {"Sampling", "/logit_bias/7", {R"("x")"}, "logit_bias.7"},
      {"Sampling", "/logprobs", {"1"}},
      {"Sampling", "/stop", {"1"}},
      {"Sampling", "/stop/1", {"1"}},
      {"Sampling", "/stop_token_ids/0", {"-1"}},
      {"Sampling", "/grammar", {"{}"}},
      {"Sampling", "/response_format", {R"("json")"}},
      {"Sampling", "/response_format/type", {R"("xml")"}},
      {"Sampling",
       "/response_format/json_schema",
       {"{}", R"({"strict":false})"},
       "response_format.json_schema.schema"},
      {"Sampling", "/response_format/json_schema/strict", {R"("no")", "0"}},
      {"Sampling",
       "/response_format/type",
       {R"("json_object")", R"("text")"},
       "response_format.json_schema.strict"},
      {"RequestSubmitted", "/unchecked/0", {R"("\n")"}},
      {"RequestSubmitted", "/unchecked_omitted", {"-1"}},
      {"RequestSubmitted", "/max_emitted_tokens", {"-1", "1048577"}},
      {"RequestCompleted", "/retry_after_ms", {"-1", "86400001"}},
      {"RequestSubmit", "/sampling/temperature", {"1e39"}},
      {"RequestSubmit", "/sampling/seed", {"-1"}},
      {"RequestSubmit", "/max_emitted_tokens", {"-1", "1048577"}},
      {"RequestSubmitChat", "/prompt_logprobs", {"-1", "21"}},
      {"RequestSubmitChat", "/received_prompt_positions", {"-1"}},
      {"PromptLogprobs", "/position", {"-1"}},
      {"PromptLogprobs", "/tokens/1/token", {"-1", "2147483648"}},
      {"RequestSubmit", "/emitted/1", {"-1", "2147483648"}},
      {"RequestSubmit", "/deadline_ms", {"-1"}},
      {"RequestSubmit", "/priority", {"-11", "11", "0.5"}},
      {"RequestPreempted", "/cause", {R"("mood")", R"("")"}},
      {"RequestPreempted", "/freed_blocks", {"-1"}},
      {"RequestCompleted", "/scope", {R"("planet")"}},
      {"RequestCompleted", "/revoke_reason", {R"("mood")"}},
      {"RequestCompleted", "/reason", {R"("")"}},
      {"RevokeClocks", "/refuse_ns", {"-2"}},
      {"LeaseView", "/state", {R"("live")"}},
      {"LeaseView", "/reason", {R"("unknown")"}},
      {"LeaseView", "/scope", {R"("Engine")"}},
      {"LeaseView", "/clocks/reuse_ns", {"-2"}},
      {"WorkerView", "/state", {R"("asleep")"}},
      {"WorkerView", "/drain", {R"("")"}},
      {"LeaseDrain of a worker", "/worker", {R"("a b")"}},
      {"TenantView", "/policy/weight", {"0"}},
      {"TenantView", "/served/hit_tokens", {"-1"}},
      {"TenantServed", "/cached_blocks", {"-1", "4294967296"}},
      {"StatusView", "/clocks/0/clock", {R"("t_nap")"}},
      {"StatusView", "/clocks/0/since_start/max_ns", {"-1"}},
      {"StatusView", "/isolation", {R"("")"}},
      {"RequestSubmitChat", "/messages", {"{}"}},
      {"RequestSubmitChat", "/messages/1", {"5"}},
      {"RequestSubmitChat", "/messages/0/role", {R"("")"}},
      {"RequestSubmitChat", "/messages/1/content", {"null"}},
      {"RequestSubmitChat", "/asked_at_unix_s", {"253402300800"}},
      {"UsageRecord", "/number", {"0", "-1"}},
      {"UsageRecord", "/reason", {R"("")"}},
      {"UsageReport", "/records/0/ended_boottime_ns", {"-1"}},
      {"AuditList", "/limit", {"1001"}},
      {"AuditPage", "/head_hash", {R"("00")"}},
      {"StepWatch", "/interval_ms", {"0", "9", "60001"}},
      {"StepSampling", "/interval_ms", {"-1", "60001"}},
      {"WorkerStep", "/n_seqs", {"65"}},
      {"WorkerStep", "/at_boottime_ns", {"-1"}},
      {"WorkerStep", "/tenants/1/tenant", {R"("a/b")", long_name}},
      {"WorkerStep", "/other_tenants", {"65"}},
      {"StepView", "/worker", {R"("a b")"}},
  };
}

}  // namespace

std::string OutOfRange::name_in_error() const {
  if (!field.empty()) return field;
  std::string dotted;
  for (const auto part : std::views::split(std::string_view(pointer).substr(1), '/')) {
    const std::string word(part.begin(), part.end());
    const bool is_index = std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
    dotted += is_index ? '[' + word + ']' : (dotted.empty() ? "" : ".") + word;
  }
  return dotted;
}

const std::vector<OutOfRange>& out_of_range_samples() {
  static const auto samples = make_out_of_range();
  return samples;
}

}  // namespace leasehold::testing
