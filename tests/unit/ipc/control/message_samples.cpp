#include "message_samples.hpp"

#include "ipc/control/messages/agent.hpp"
#include "sample_of.hpp"

namespace leasehold::testing {
namespace {

std::vector<MessageSample> make_samples() {
  using namespace wire;
  return {
      sample<TenantAdmit>(
          "TenantAdmit",
          R"({"tenant":"acme","max_concurrent":64,"max_blocks":1048576,"reserved_blocks":1048576,"weight":1000,
           "tier":"scavenger","ttl_ms":100,"max_lifetime_ms":1000000000000,"rebinds_per_minute":6000000,
           "rebind_burst":1048576,"tokens_per_minute":10000000,"requests_per_minute":10000000,
           "tokens_per_day":1000000000000,"uid":4294967295,
           "request_id":"r-1"})",
          {"max_concurrent", "max_blocks", "reserved_blocks", "weight", "tier", "ttl_ms", "uid",
           "max_lifetime_ms", "rebinds_per_minute", "rebind_burst", "tokens_per_minute",
           "requests_per_minute", "tokens_per_day"}),
      sample<TenantRemove>("TenantRemove", R"({"tenant":"acme","revoke":true,"request_id":"r-1"})"),
      sample<LeaseRevoke>("LeaseRevoke", R"({"lease":"17.4","request_id":"r-1"})"),
      sample<LeaseRevoke>("LeaseRevoke of a part",
                          R"({"part":"blk.1.ffn_up.weight","worker":"w0","request_id":"r-1"})",
                          {"worker"}),
      sample<LeaseDrain>("LeaseDrain",
                         R"({"tenant":"acme","grace_ms":86400000,"request_id":"r-1"})"),
      sample<LeaseDrain>("LeaseDrain of a worker",
                         R"({"worker":"w0","grace_ms":0,"request_id":"r-1"})"),
      sample<LeaseUndrain>("LeaseUndrain", R"({"tenant":"acme","request_id":"r-1"})"),
      sample<LeasesTouched>("LeasesTouched", R"({"leases":["17.4","0.1"]})"),
      sample<LeaseAcquire>(
          "LeaseAcquire",
          R"({"tenant":"acme","blocks":16,"ttl_ms":5000,"worker":"w0","replaces":"17.3",
           "model":"sha256:01234567","min_context":400,"request_id":"r-1","text_identity":
           "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/int8/f16/1"})",
          {"worker", "replaces", "model", "min_context", "text_identity"}),
      sample<LeaseAcquired>(
          "LeaseAcquired",
          R"({"lease":"17.4","token":"v1:17.4:acme:00","address":"/run/w0.sock","worker":"w0",
           "arithmetic":"int8","deadline_boottime_ns":9223372036854775807,"ttl_ms":5000,"blocks":64,
           "adopted_blocks":16,"max_context":4096,"text_identity":
           "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/int8/f16/1"})",
          {"arithmetic", "adopted_blocks", "max_context", "text_identity"}),
      sample<LeaseRenew>("LeaseRenew", R"({"lease":"17.4","request_id":"r-1"})"),
      sample<LeaseRenewed>("LeaseRenewed", R"({"deadline_boottime_ns":12})"),
      sample<LeaseRelease>("LeaseRelease", R"({"lease":"17.4","request_id":"r-1"})"),
      sample<LeaseGrow>("LeaseGrow",
                        R"({"lease":"17.4","extents":1024,"pool":"swap","request_id":"r"})",
                        {"pool"}),
      sample<LeaseShrink>("LeaseShrink", R"({"lease":"17.4","extents":1,"request_id":"r"})"),
      sample<LeaseResized>("LeaseResized", R"({"extents":3,"blocks":192})"),
      sample<LeaseHold>("LeaseHold",
                        R"({"lease":"17.4","token":"v1:17.4:acme:00","request_id":"r-1"})"),
      sample<WorkerAttach>("WorkerAttach",
                           R"({"worker":"w0","resume":"12","protocol":2,"request_id":"r-1"})",
                           {"resume", "protocol"}),
      sample<WorkerAttached>(
          "WorkerAttached",
          with_digest(R"({"worker":"3","attachment":"12","slot_count":4096,"token_key":DIGEST,
           "resumed":true,"device":"cuda:0","device_uuid":"GPU-1","protocol":2})"),
          {"protocol"}),
      sample<LeaseRedeliver>("LeaseRedeliver",
                             R"({"lease":"17.4","extents":["5","18446744073709551615"]})"),
      sample<WeightsOpen>(
          "WeightsOpen",
          with_digest(
              R"({"model":"tiny","part":"blk.0","file_device":1,"file_inode":18446744073709551615,
           "file_size_bytes":7,"file_mtime_ns":-5,"layout_digest":DIGEST,"layout_version":1,
           "size_bytes":4096,"request_id":"r-1"})")),
      sample<WeightsOpened>("WeightsOpened",
                            R"({"region":"18446744073709551615","lease":"2.1","published":true})"),
      sample<WeightsPublish>("WeightsPublish", R"({"region":"0","request_id":"r-1"})"),
      sample<WorkerReady>(
          "WorkerReady",
          R"({"address":"/run/w0.sock","model":"tiny","aliases":["small"],"arithmetic":"f32",
           "kv_block_size_bytes":4096,"max_extents":500,"kv_identity":"record=3","request_id":"r",
           "max_context":4096,"can_sleep":true,"text_identity":
           "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/int8/f16/1"})",
          {"aliases", "arithmetic", "can_sleep", "kv_identity", "max_context", "text_identity"}),
      sample<ExtentShape>("ExtentShape", R"({"extent_size_bytes":2097152,"blocks_per_extent":64})"),
      sample<LeaseAttach>("LeaseAttach", R"({"lease":"17.4"})"),
      sample<LeaseDrained>("LeaseDrained", R"({"lease":"17.4"})"),
      sample<EventReport>("EventReport", R"({"events":["{}"]})"),
      sample<LeaseDraining>("LeaseDraining", R"({"lease":"17.4"})"),
      sample<LeaseGrant>(
          "LeaseGrant",
          R"({"lease":"17.4","tenant":"acme","extent_size_bytes":2097152,"extents":["5","6"],
           "pool":"swap","adopted_from":"17.3","api_key":"0011223344556677"})",
          {"pool", "adopted_from", "api_key"}),
      sample<TenantQuota>("TenantQuota", R"({"tenant":"acme","revision":18446744073709551615,
           "max_concurrent":64,"max_blocks":1048576,"weight":1000,"divided":true,
           "tokens_per_minute":10000000,"token_credit":10000000,
           "request_blocks":1048576,"request_tokens":10000000,"requests_per_minute":1,
           "request_credit":10000000,"tokens_today":1000000000000,"day_end_boottime_ns":12,
           "request_day_tokens":1000000000000,
           "keys":[{"key":"0011223344556677","max_concurrent":64,"tokens_per_minute":7,
           "token_credit":1,"request_tokens":8,"requests_per_minute":9,"request_credit":2,
           "tokens_today":3,"day_end_boottime_ns":4,"request_day_tokens":1}]})",
                          {"tokens_per_minute", "token_credit", "request_blocks", "request_tokens",
                           "requests_per_minute", "request_credit", "tokens_today",
                           "day_end_boottime_ns", "request_day_tokens", "keys"}),
      sample<TenantUsage>("TenantUsage", R"({"tenant":"acme","revision":7,"running":64,
           "waiting":3,"admitted":18446744073709551615})"),
      sample<LeaseSettle>("LeaseSettle", R"({"lease":"17.4"})"),
      sample<LeaseUnmap>("LeaseUnmap", R"({"lease":"17.4"})"),
      sample<LeaseReclaim>("LeaseReclaim", R"({"lease":"17.4","count":2,"pool":"swap"})", {"pool"}),
      sample<ExtentsReclaimed>("ExtentsReclaimed", R"({"extents":["5"]})"),
      sample<Sampling>(
          "Sampling",
          R"({"temperature":0.5,"seed":18446744073709551615,"top_k":40,"top_p":0.5,"min_p":0.25,
           "typical_p":0.75,"repetition_penalty":1.5,"presence_penalty":-1.0,"frequency_penalty":2.0,
           "penalty_window":64,"logit_bias":{"12":-100.0,"7":0.5},"logprobs":true,"top_logprobs":5,
           "stop":["a","b"],"include_stop_str_in_output":true,"stop_token_ids":[3],"min_tokens":4,
           "grammar":"root ::= \"x\"","regex":"x",
           "response_format":{"type":"json_schema","json_schema":{"schema":"{}","strict":false}}})",
          {"top_k", "top_p", "min_p", "typical_p", "repetition_penalty", "presence_penalty",
           "frequency_penalty", "penalty_window", "logit_bias", "logprobs", "top_logprobs", "stop",
           "include_stop_str_in_output", "stop_token_ids", "min_tokens", "grammar", "regex",
           "response_format"}),
      sample<ConnectionAuthenticate>("ConnectionAuthenticate", R"({"token":"v1:17.4:acme:00"})"),
      sample<RequestSubmit>(
          "RequestSubmit",
          R"({"token":"v1:17.4:acme:00","request_id":"r-1","prompt":"Once","emitted":[5,6],
           "rebound_from":"17.3","sampling":{"temperature":1.5,"seed":9},
           "max_emitted_tokens":1048576,"ignore_eos":true,"deadline_ms":1000,
           "priority":-3,"resumable":true,"may_shorten":true,"add_generation_prompt":false,
           "continue_final_message":true,"x_request_id":"a-1",
           "traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})",
          {"rebound_from", "deadline_ms", "priority", "resumable", "may_shorten",
           "continue_final_message", "x_request_id", "traceparent"}),
      sample<RequestSubmitted>("RequestSubmitted",
                               R"({"request":"r-1","prompt_tokens":4,
           "unchecked":["#/items: 'not'"],"unchecked_omitted":3,"max_emitted_tokens":1048576})",
                               {"unchecked", "unchecked_omitted", "max_emitted_tokens"}),
      sample<TokenEmitted>(
          "TokenEmitted",
          R"({"request":"r-1","token":2147483647,"position":0,"text":"é","logprob":-0.5,
           "top_logprobs":[{"token":3,"logprob":-0.25}]})",
          {"logprob", "top_logprobs"}),
      sample<RequestPreempted>(
          "RequestPreempted",
          R"({"request":"r-1","cause":"QuotaBlocks","freed_blocks":3,"swapped_blocks":2,
           "emitted_tokens":7})",
          {"swapped_blocks"}),
      sample<RequestCompleted>(
          "RequestCompleted",
          R"({"request":"r-1","reason":"Revoked","emitted_tokens":3,"lease":"17.4","scope":"tenant",
           "revoke_reason":"operator","detail":"by hand","text":"end","retry_after_ms":1000,
           "cached_tokens":16,"embedding":"AACAPw=="})",
          {"lease", "text", "retry_after_ms", "cached_tokens", "embedding"}),
      sample<RequestCancel>("RequestCancel", R"({"request_id":"r-1"})"),
      sample<RevokeClocks>("RevokeClocks", R"({"refuse_ns":1,"error_ns":2,"quiet_ns":3})",
                           {"refuse_ns", "error_ns", "quiet_ns"}),
      sample<LeaseView>(
          "LeaseView",
          R"({"lease":"17.4","scope":"engine","tenant":"","model":"tiny","part":"blk.0","worker":"w0","state":"Fenced",
           "reason":"machine_restarted","proof":"LaunchQuiet","extents":2,"blocks":61,"size_bytes":4194304,"swap_bytes":2097152,
           "quarantined_extents":1,"drain_deadline_boottime_ns":6,
           "deadline_boottime_ns":-1,"replaced_by":"18.1",
           "clocks":{"refuse_ns":1,"error_ns":2,"quiet_ns":3,"reuse_ns":4},
           "times":{"granted_boottime_ns":1,"revoked_boottime_ns":2,"fenced_boottime_ns":3,
                    "rebound_boottime_ns":4,"worker_stopped_boottime_ns":1}})",
          {"replaced_by"}),
      sample<ExtentView>(
          "ExtentView",
          R"({"extent":"5","pool":"swap","state":"Owned","lease":"17.4","size_bytes":2097152,
           "inode":77})",
          {"lease"}),
      sample<LeaseTimes>("LeaseTimes",
                         R"({"granted_boottime_ns":1,"revoked_boottime_ns":2,"fenced_boottime_ns":3,
           "rebound_boottime_ns":0,"worker_stopped_boottime_ns":5})"),
      sample<QuarantineView>(
          "QuarantineView of an extent",
          R"({"extent":"5","lease":"17.4","worker":"w0","since_boottime_ns":7,"size_bytes":2097152,
           "why":"4096 bytes came back"})",
          {"lease"}),
      sample<QuarantineView>(
          "QuarantineView of weights",
          R"({"region":"3","worker":"","since_boottime_ns":7,"size_bytes":2097152,"why":"w"})"),
      sample<QuarantineRelease>(
          "QuarantineRelease",
          R"({"extent":"5","reason":"the worker was replaced","request_id":"r-1"})"),
      sample<QuarantineReleased>("QuarantineReleased", R"({"size_bytes":2097152})"),
      sample<WorkerView>(
          "WorkerView",
          R"({"worker":"w0","id":"0","pid":123,"state":"ready","drain":"drained","model":"tiny","address":"/run/w",
           "aliases":["small"],"arithmetic":"f32","leases":2,"revocations":5,"max_context":4096,"text_identity":
           "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/int8/f16/1"})",
          {"aliases", "arithmetic", "max_context", "text_identity"}),
      sample<TenantView>(
          "TenantView",
          R"({"policy":{"tenant":"acme","max_concurrent":1,"max_blocks":1,"reserved_blocks":1,"weight":1,
           "tier":"guaranteed","ttl_ms":86400000,"rebinds_per_minute":1,"rebind_burst":1},
           "leases_live":1,"blocks_held":64,"swap_blocks_held":8,"draining":true,
           "served":{"tenant":"acme","tokens":7,"hit_blocks":2,"hit_tokens":32,"evicted_blocks":1,
             "preemptions":3,"cross_tenant_hits":0,"cached_blocks":9,"shared_hit_blocks":6},
           "rebinds":{"since_start":{"count":3,"p50_ns":1,"p99_ns":2,"max_ns":3},
             "last_minute":{"count":0,"p50_ns":0,"p99_ns":0,"max_ns":0}}})"),
      sample<OperatorActionView>(
          "OperatorActionView",
          R"({"at_unix_s":1700000000,"uid":0,"action":"quarantine_release","object":"extent:5",
           "reason":"the worker was replaced","done":false})"),
      sample<StatusView>(
          "StatusView",
          R"({"capacity_bytes":21,"free_bytes":1,"owned_bytes":2,"draining_bytes":3,
           "scrubbing_bytes":4,"retained_bytes":5,"quarantined_bytes":6,"held_bytes":1,"unproven_bytes":2,
           "swap":{"capacity_bytes":21,"free_bytes":1,"owned_bytes":2,"draining_bytes":3,
             "scrubbing_bytes":4,"retained_bytes":5,"quarantined_bytes":6,"unproven_bytes":2},
           "spill_capacity_bytes":18446744073709551615,"spill_lent_bytes":7,
           "leases_live":1,
           "leases_revoked":2,"leases_stuck":1,"oldest_revoked_ms":7,"leases_fenced":3,
           "workers":1,"workers_lost":1,"workers_out_of_service":1,"workers_asleep":1,"tenants":2,"tenants_live":1,"isolation":"same-user","tampered":4,"journal_faults":5,"log_lines_dropped":6,"uptime_ms":9,
           "clocks":[{"clock":"t_quiet","since_start":{"count":3,"p50_ns":1,"p99_ns":2,"max_ns":3},
             "last_minute":{"count":0,"p50_ns":0,"p99_ns":0,"max_ns":0}}],
           "device":"cuda:0","device_uuid":"GPU-1","device_state":"lost","device_losses":1,
           "rebinds":[{"mode":"adopt","rebinds":{
             "since_start":{"count":3,"p50_ns":1,"p99_ns":2,"max_ns":3},
             "last_minute":{"count":0,"p50_ns":0,"p99_ns":0,"max_ns":0}}}]})",
          {"journal_faults", "log_lines_dropped", "workers_asleep", "workers_out_of_service"}),
      sample<RequestSubmit>("RequestSubmitChat", R"({"token":"v1:17.4:acme:00","request_id":"r-1",
           "messages":[{"role":"system","content":""},{"role":"user","content":"Hi é"},
             {"role":"assistant","tool_calls":"[]","reasoning_content":"Hm"},
             {"role":"tool","content":"4","tool_call_id":"c1","name":"f"}],
           "tools":"[]","chat_template_kwargs":"{}",
           "asked_at_unix_s":253402300799,"emitted":[],"sampling":{"temperature":0.0,"seed":0},
           "max_emitted_tokens":0,"ignore_eos":false,"prompt_logprobs":20,
           "received_prompt_positions":7})",
                            {"asked_at_unix_s", "tools", "chat_template_kwargs", "prompt_logprobs",
                             "received_prompt_positions"}),
      sample<TenantList>("TenantList", R"({"after":"acme","limit":0})", {"after", "limit"}),
      sample<ExtentList>("ExtentList", R"({"after":"5","limit":7})", {"after", "limit"}),
      sample<QuarantineList>("QuarantineList", R"({"after_region":"5","limit":7})",
                             {"after_region", "limit"}),
      sample<LeaseQuery>("LeaseQuery", R"({"lease":"17.4"})"),
      sample<LeaseStatus>("LeaseStatus",
                          R"({"lease":"17.4","scope":"tenant","state":"Revoked","reason":"operator",
           "deadline_boottime_ns":12,"drain_deadline_boottime_ns":0,"blocks":64})"),
      sample<LeaseRevoked>("LeaseRevoked",
                           R"({"lease":"17.4","scope":"tenant","reason":"ttl_expired"})"),
      sample<Empty>("Empty", "{}"),
      sample<TenantPolicy>(
          "TenantPolicy", R"({"tenant":"acme","max_concurrent":1,"max_blocks":1,"reserved_blocks":0,
           "weight":1,"tier":"standard","ttl_ms":100,"max_lifetime_ms":100,"rebinds_per_minute":1,
           "rebind_burst":1,"tokens_per_minute":1,"requests_per_minute":1,"tokens_per_day":1,"uid":0})",
          {"max_lifetime_ms", "tokens_per_minute", "requests_per_minute", "tokens_per_day", "uid"}),
      sample<ExtentOpen>("ExtentOpen", R"({"extent":"5"})"),
      sample<LatencySummary>("LatencySummary",
                             R"({"count":3,"p50_ns":1,"p99_ns":2,"max_ns":9223372036854775807})"),
      sample<ClockSummary>("ClockSummary",
                           R"({"clock":"t_error","since_start":{"count":3,"p50_ns":1,"p99_ns":2,
           "max_ns":3},"last_minute":{"count":0,"p50_ns":0,"p99_ns":0,"max_ns":0}})"),
      sample<AgentDevice>("AgentDevice", R"({"uuid":"GPU-1","name":"","total_bytes":1})"),
      sample<AgentAllocate>("AgentAllocate", R"({"size_bytes":2097152})"),
      sample<AgentAllocated>("AgentAllocated", R"({"object":0,"size_bytes":2097152})"),
      sample<AgentObject>("AgentObject", R"({"object":18446744073709551615})"),
      sample<AgentMemory>("AgentMemory", R"({"free_bytes":1,"total_bytes":3,"allocated_bytes":2})"),
      sample<RequestList>(
          "RequestList",
          R"({"worker":"w1","tenant":"acme","id":"acme/r","after":"acme/q","limit":0})",
          {"tenant", "id", "after", "limit"}),
      sample<RequestView>(
          "RequestView",
          R"({"id":"acme/r","worker":"w1","state":"awaiting_lease","lease":"17.4","prompt_tokens":1,
           "emitted_tokens":2,"max_emitted_tokens":3,"age_ms":4,"embeds":true,
           "detached":true,"key":"0011223344556677","answer":"cmpl-r","x_request_id":"x"})",
          {"worker", "lease", "embeds", "detached", "key", "answer", "x_request_id"}),
      sample<EndedRequest>("EndedRequest", R"({"id":"acme/r","reason":"Cancelled","ago_ms":5})"),
      sample<RequestPage>("RequestPage",
                          R"({"items":{"id":["a/1","a/2"],"state":["decode","parsing"],
        "lease":["3.7",null],"prompt_tokens":[5,0],"emitted_tokens":[2,0],"max_emitted_tokens":[9,0],
        "age_ms":[12,3],"detached":[null,true]},"more":true,"ended":[]})"),
      sample<RequestStop>("RequestStop", R"({"worker":"w1","ids":["acme/r"]})"),
      sample<RequestsStopped>("RequestsStopped", R"({"ids":["acme/r"]})"),
      sample<StepWatch>("StepWatch", R"({"interval_ms":10})"),
      sample<StepSampling>("StepSampling", R"({"interval_ms":0})"),
      sample<TenantTokens>("TenantTokens",
                           R"({"tenant":"acme","prefill_tokens":4294967295,"decode_tokens":1})"),
      sample<WorkerStep>(
          "WorkerStep",
          R"({"step":18446744073709551615,"at_boottime_ns":5,"duration_us":900,"n_seqs":64,
           "prefill_tokens":30,"decode_tokens":7,"running":64,"waiting":3,
           "tenants":[{"tenant":"acme","prefill_tokens":20,"decode_tokens":0},
                      {"tenant":"b","prefill_tokens":4,"decode_tokens":5}],
           "other_tenants":2})"),
      sample<StepView>(
          "StepView",
          R"({"worker":"w0","attachment":"12","step":9,"at_boottime_ns":5,"duration_us":900,
           "n_seqs":1,"prefill_tokens":0,"decode_tokens":1,"running":1,"waiting":0,
           "tenants":[{"tenant":"acme","prefill_tokens":0,"decode_tokens":1}],
           "other_tenants":0})"),
      sample<TenantServed>("TenantServed", R"({"tenant":"acme","tokens":18446744073709551615,
           "hit_blocks":2,"hit_tokens":32,"evicted_blocks":1,"preemptions":5,"cross_tenant_hits":4,
           "cached_blocks":9,"shared_hit_blocks":3})"),
      sample<PrefixPublish>("PrefixPublish",
                            R"({"worker":"w0","text":"You are","name":"rules","request_id":"r9"})"),
      sample<PrefixPublished>("PrefixPublished", R"({"lease":"3.1","tokens":61,"blocks":3})"),
      sample<PrefixFill>("PrefixFill", R"({"lease":"3.1","text":"You are"})"),
      sample<PrefixFilled>("PrefixFilled", R"({"tokens":61,"blocks":3})"),
      sample<LeaseGrant>("LeaseGrant of a text", R"({"lease":"3.1","tenant":"",
           "extent_size_bytes":2097152,"extents":["5"],"pool":"swap","scope":"shared"})",
                         {"pool"}),
      sample<RequestResume>("RequestResume", R"({"request_id":"r-1","after_position":7})",
                            {"after_position"}),
      sample<SpillOpened>("SpillOpened", R"({"size_bytes":18446744073709551615})"),
      sample<LeaseReplace>("LeaseReplace",
                           R"({"lease":"17.4","mode":"checkpoint","request_id":"r-1"})"),
      sample<LeaseAcquired>(
          "LeaseAcquired with a limit",
          R"({"lease":"17.4","token":"v1:17.4:acme:00","address":"/run/w0.sock","worker":"w0",
           "deadline_boottime_ns":5,"ttl_ms":5000,"blocks":64,"last_deadline_boottime_ns":7})",
          {"last_deadline_boottime_ns"}),
      sample<RequestMove>("RequestMove", R"({"request_id":"r-1","token":"v1:17.4:acme:00"})"),
      sample<RequestMoved>("RequestMoved", R"({"request":"r-1","lease":"18.1","blocks":7})"),
      sample<WorkerReplace>(
          "WorkerReplace",
          R"({"worker":"w1","by":"w2","grace_ms":86400000,"any_arithmetic":true,"request_id":"r-1"})",
          {"any_arithmetic"}),
      sample<LeaseDraining>("LeaseDraining of a replaced worker",
                            R"({"lease":"17.4","successor":"w2"})", {"successor"}),
      sample<LeaseReplace>(
          "LeaseReplace on another worker",
          R"({"lease":"17.4","mode":"failover","any_arithmetic":true,"request_id":"r-1"})",
          {"any_arithmetic"}),
      sample<WorkerView>(
          "WorkerView of a replaced worker",
          R"({"worker":"w1","id":"0","pid":123,"state":"ready","drain":"replacing","model":"tiny","address":"/run/w",
           "leases":2,"revocations":5,"replaced_by":"w2","leases_moved":3,"leases_ended":1})",
          {"replaced_by", "leases_moved", "leases_ended"}),
  };
}

}  // namespace

const std::vector<MessageSample>& message_samples() {
  static const auto samples = [] {
    auto all = make_samples();
    const auto rest = key_and_audit_samples();
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }();
  return samples;
}

std::string line_seed(std::size_t sample) {
  const MessageSample& message = message_samples().at(sample);
  const nlohmann::json call = {
      {"jsonrpc", "2.0"}, {"id", sample}, {"method", message.name}, {"params", message.json()}};
  return static_cast<char>(sample) + call.dump() + "\n";
}

}  // namespace leasehold::testing
