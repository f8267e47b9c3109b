// Sampled engine steps: operator ↔ broker ↔ worker.
#include "ipc/control/messages/steps.hpp"

#include <algorithm>
#include <set>

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold::wire {
namespace {

constexpr Between<std::int64_t> kStepInterval_ms{kMinStepInterval_ms, kMaxStepInterval_ms};
constexpr Between<std::int64_t> kStepIntervalOrZero_ms{0, kMaxStepInterval_ms};

void describe_step(auto& m, auto& fields) {
  fields.field("step", m.step);
  fields.field("at_boottime_ns", m.at_boottime_ns, kBoottime_ns);
  fields.field("duration_us", m.duration_us);
  fields.field("n_seqs", m.n_seqs, kConcurrentOrZero);
  fields.field("prefill_tokens", m.prefill_tokens);
  fields.field("decode_tokens", m.decode_tokens);
  fields.field("running", m.running, kConcurrentOrZero);
  fields.field("waiting", m.waiting);
  fields.field("tenants", m.tenants, MaxItems{kMaxStepTenants});
  fields.field("other_tenants", m.other_tenants, kConcurrentOrZero);
}

std::uint64_t tokens_of(const TenantTokens& tokens) {
  return std::uint64_t{tokens.prefill_tokens} + tokens.decode_tokens;
}

}  // namespace

void describe(Is<StepWatch> auto& m, auto& fields) {
  fields.field("interval_ms", m.interval_ms, kStepInterval_ms);
}

void describe(Is<StepSampling> auto& m, auto& fields) {
  fields.field("interval_ms", m.interval_ms, kStepIntervalOrZero_ms);
}

void describe(Is<TenantTokens> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("prefill_tokens", m.prefill_tokens);
  fields.field("decode_tokens", m.decode_tokens);
}

void describe(Is<WorkerStep> auto& m, auto& fields) {
  describe_step(m, fields);
}

void describe(Is<StepView> auto& m, auto& fields) {
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("attachment", m.attachment);
  describe_step(m.step, fields);
}

static Result<void> validate(const WorkerStep& m) {
  std::set<TenantId> names;
  std::uint64_t prefill = 0;
  std::uint64_t decode = 0;
  for (const TenantTokens& each : m.tenants) {
    if (!names.insert(each.tenant).second) {
      return fail(Errc::BadRequest,
                  fmt::format("'tenants' has {} twice; send each once", each.tenant.value));
    }
    prefill += each.prefill_tokens;
    decode += each.decode_tokens;
  }
  if (prefill > m.prefill_tokens || decode > m.decode_tokens) {
    return fail(Errc::BadRequest,
                fmt::format("'tenants' sums to {} prefill and {} decode tokens, but the step has "
                            "{} and {}",
                            prefill, decode, m.prefill_tokens, m.decode_tokens));
  }
  if (std::ranges::is_sorted(m.tenants, std::ranges::greater{}, tokens_of)) return {};
  return fail(Errc::BadRequest, "'tenants' is not in falling order of tokens");
}

template struct Message<StepWatch>;
template struct Message<StepSampling>;
template struct Message<TenantTokens>;
template struct Message<WorkerStep>;
template struct Message<StepView>;

}  // namespace leasehold::wire
