#include "ipc/control/messages/cell/agent_calls.hpp"
#include "sample_of.hpp"

namespace leasehold::testing {

std::vector<MessageSample> key_and_audit_samples() {
  using namespace wire;
  return {
      sample<KeyCreate>("KeyCreate", R"({"tenant":"acme","request_id":"r-1","hash":
           "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff","name":"ci",
           "expires_unix_ms":7258118399999,"max_concurrent":64,"tokens_per_minute":1,
           "requests_per_minute":1,"tokens_per_day":1000000000000})",
                        {"name", "expires_unix_ms", "max_concurrent", "tokens_per_minute",
                         "requests_per_minute", "tokens_per_day"}),
      sample<KeyRevoke>("KeyRevoke", R"({"key":"0011223344556677","request_id":"r-1"})"),
      sample<KeyCheck>("KeyCheck", R"({"api_key":"lh-00"})"),
      sample<KeyView>("KeyView", R"({"key":"0011223344556677","tenant":"acme","name":"ci",
           "created_unix_ms":1,"expires_unix_ms":2,"expired":true,"last_used_unix_ms":3,
           "tokens_today":18446744073709551615,"max_concurrent":4,"tokens_per_minute":5,
           "requests_per_minute":6,"tokens_per_day":7})",
                      {"expires_unix_ms", "last_used_unix_ms", "max_concurrent",
                       "tokens_per_minute", "requests_per_minute", "tokens_per_day"}),
      sample<KeyList>("KeyList", R"({"tenant":"acme","after":"0011223344556677","limit":7})",
                      {"tenant", "after", "limit"}),
      sample<LeaseAcquire>("LeaseAcquire with a key",
                           R"({"tenant":"acme","blocks":8,"ttl_ms":0,"api_key":"lh-00",
           "request_id":"r-1"})",
                           {"api_key"}),
      sample<UsageRecord>(
          "UsageRecord",
          R"({"number":1,"tenant":"acme","request":"r-1","lease":"17.4","prompt_tokens":9,
           "cached_tokens":4294967295,"generated_tokens":3,"reason":"EndOfSequence",
           "submitted_boottime_ns":5,"first_token_boottime_ns":0,"ended_boottime_ns":9223372036854775807})"),
      sample<UsageReport>(
          "UsageReport",
          R"({"records":[{"number":1,"tenant":"acme","request":"r-1","lease":"17.4","prompt_tokens":9,
           "cached_tokens":4294967295,"generated_tokens":3,"reason":"EndOfSequence",
           "submitted_boottime_ns":5,"first_token_boottime_ns":0,"ended_boottime_ns":9223372036854775807}]})"),
      sample<AuditList>("AuditList", R"({"after":7,"limit":0})", {"after", "limit"}),
      sample<AuditRecordView>("AuditRecordView",
                              R"({"sequence":3,"content":"{\"sequence\":3}","hash":"00"})"),
      sample<AuditPage>("AuditPage", with_digest(with_digest(R"({"records":[
           {"sequence":3,"content":"{\"sequence\":3}","hash":"00"}],"removed_sequence":2,
           "removed_hash":DIGEST,"head_sequence":3,"head_hash":DIGEST})"))),
      sample<WorkerWeights>("WorkerWeights", R"({"missing":"part blk.0: /m.gguf has 7 bytes"})",
                            {"missing"}),
      sample<WorkerView>(
          "WorkerView of a worker out of service",
          R"({"worker":"w1","id":"0","pid":123,"state":"ready","drain":"out_of_service","model":"tiny","address":"/run/w",
           "leases":1,"revocations":5,"out_of_service":"part blk.0: /m.gguf has 7 bytes"})",
          {"out_of_service"}),
      sample<WorkerAdmission>("WorkerAdmission", R"({"admits":false,"incarnation":7})",
                              {"incarnation"}),
      sample<KeyUpdate>("KeyUpdate", R"({"key":"0011223344556677","request_id":"r-1","name":"ci",
           "expires_unix_ms":1,"max_concurrent":1,"tokens_per_minute":1,
           "requests_per_minute":1,"tokens_per_day":1})",
                        {"name", "expires_unix_ms", "max_concurrent", "tokens_per_minute",
                         "requests_per_minute", "tokens_per_day"}),
      sample<KeyUpdate>("KeyUpdate without an expiry",
                        R"({"key":"0011223344556677","request_id":"r-1","never_expires":true,
                            "removes":["max_concurrent","tokens_per_day"]})",
                        {"never_expires", "removes"}),
      sample<KeyOwner>("KeyOwner",
                       R"({"key":"0011223344556677","tenant":"acme","tenant_admitted_unix_ms":1})"),
      sample<PromptLogprobs>(
          "PromptLogprobs",
          R"({"request":"r-1","position":0,"tokens":[{"token":1},{"token":2147483647,
           "logprob":-0.5,"top_logprobs":[{"token":3,"logprob":-0.25}]}]})"),
      sample<WorkerWeights>("WorkerWeights of a sleeping worker", R"({"asleep":true})", {"asleep"}),
      sample<WeightsSleep>("WeightsSleep", R"({"why":"PoolExhausted: 7 bytes","request_id":"r-1"})",
                           {"why"}),
      sample<WeightsWake>("WeightsWake", R"({"request_id":"r-1"})"),
      sample<WorkerSleep>("WorkerSleep", R"({"worker":"w1","request_id":"r-1"})"),
      sample<WorkerWake>("WorkerWake", R"({"worker":"w1","request_id":"r-1"})"),
      sample<WorkerAsleep>("WorkerAsleep", R"({"asleep":false})"),
      sample<RequestSubmit>(
          "RequestSubmitEmbedding",
          R"({"token":"v1:17.4:acme:00","request_id":"r-1","prompt":"Once","emitted":[],
           "sampling":{"temperature":0.0,"seed":0},"max_emitted_tokens":0,"ignore_eos":false,
           "embedding":{"pooling":"mean","dimensions":64}})",
          {"embedding"}),
      sample<TenantCheck>("TenantCheck", R"({"tenants":[{"tenant":"acme","admitted_unix_ms":1}]})"),
      sample<CellAttach>("CellAttach", R"({"cell":"c1"})"),
      sample<CellAttached>("CellAttached", R"({"incarnation":7,"ceiling_boottime_ns":12})"),
      sample<CellCeiling>(
          "CellCeiling",
          R"({"incarnation":18446744073709551615,"ceiling_boottime_ns":9223372036854775807})"),
      sample<CellAdmit>(
          "CellAdmit",
          R"({"policy":{"tenant":"acme","max_concurrent":0,"max_blocks":0,"reserved_blocks":0,"weight":1,
           "tier":"standard","ttl_ms":10000,"rebinds_per_minute":600,"rebind_burst":256,"cell":"c1"},
           "incarnation":7,"revision":1,"first_credit_ms":60000})"),
      sample<CellPart>(
          "CellPart",
          R"({"incarnation":7,"revision":18446744073709551615,"may_run":4,"demand":3,"uses":9,"confirmed":true})",
          {"uses"}),
      sample<CellPartChanged>(
          "CellPartChanged",
          R"({"tenant":"acme","part":{"incarnation":7,"revision":2,"may_run":4,"demand":3,"uses":9,"confirmed":false},
           "blocks_held":12})"),
      sample<KeyResolve>(
          "KeyResolve",
          R"({"hash":"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
           "moved_from":"h1"})",
          {"moved_from"}),
      sample<PartWant>("PartWant", R"({"tenant":"acme","moved_from":"h1"})", {"moved_from"}),
  };
}

}  // namespace leasehold::testing
