#include "worker/lease/step_reporter.hpp"

#include <algorithm>
#include <chrono>

namespace leasehold {
namespace {

wire::WorkerStep report_of(const StepSample& sample) {
  using std::chrono::microseconds;
  wire::WorkerStep report{
      .step = sample.step,
      .at_boottime_ns = sample.at.boottime_ns,
      .duration_us = static_cast<std::uint64_t>(sample.duration / microseconds(1)),
      .n_seqs = sample.n_seqs,
      .running = sample.running,
      .waiting = sample.waiting};
  for (const auto& [tenant, tokens] : sample.tenants) {
    report.prefill_tokens += tokens.prefill;
    report.decode_tokens += tokens.decode;
    report.tenants.push_back(
        {.tenant = tenant, .prefill_tokens = tokens.prefill, .decode_tokens = tokens.decode});
  }
  std::ranges::stable_sort(report.tenants, std::ranges::greater{}, [](const auto& each) {
    return each.prefill_tokens + each.decode_tokens;
  });
  if (report.tenants.size() > wire::kMaxStepTenants) {
    report.other_tenants =
        static_cast<std::uint32_t>(report.tenants.size() - wire::kMaxStepTenants);
    report.tenants.resize(wire::kMaxStepTenants);
  }
  return report;
}

}  // namespace

void StepReporter::deliver(StepSample sample) {
  if (deps_.sampler->put(std::move(sample))) deps_.post([this] { send_newest(); });
}

void StepReporter::send_newest() {
  if (awaits_reply_) return;
  const std::optional<StepSample> sample = deps_.sampler->take();
  if (!sample) return;
  awaits_reply_ = true;
  deps_.send(report_of(*sample), [this] {
    awaits_reply_ = false;
    send_newest();
  });
}

}  // namespace leasehold
