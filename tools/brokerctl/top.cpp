#include "tools/brokerctl/repeated_output.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

#include "ipc/client/all_pages.hpp"
#include "ipc/client/parse_message.hpp"
#include "tools/brokerctl/top_view.hpp"
#include "tools/cli/json_text.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

constexpr std::int64_t kStepInterval_ms = 100;

/// Requests sampled engine steps, which the broker permits operators only. Nothing for an observer,
/// and from a broker that samples none.
Result<std::vector<wire::StepView>> newest_steps(const Dependencies& dependencies) {
  const wire::StepWatch watch{.interval_ms = kStepInterval_ms};
  const auto watched = dependencies.call(wire::StepWatch::kMethod, watch.to_json());
  if (!watched) {
    const Errc code = watched.error().code;
    if (code == Errc::PermissionDenied || code == Errc::UnknownMethod)
      return std::vector<wire::StepView>{};
    return std::unexpected(watched.error());
  }
  const Json steps = TRY(dependencies.call("step.list", Json::object()));
  return client::parse_items<wire::StepView>(steps);
}

Result<TopSample> take_sample(const Dependencies& dependencies) {
  const auto& call = dependencies.call;
  TopSample sample;
  const Json status = TRY(call("status", Json::object()));
  sample.status = TRY(client::parse_message<wire::StatusView>(status));
  sample.tenants = TRY(client::all_pages<wire::TenantView>(call));
  const Json workers = TRY(call("worker.list", Json::object()));
  sample.workers = TRY(client::parse_items<wire::WorkerView>(workers));
  // Reads the list of leases, which may be long, only if it has revoked ones.
  if (sample.status.leases_revoked > 0) {
    sample.revoked = TRY(client::all_pages<wire::LeaseView>(call));
    std::erase_if(sample.revoked,
                  [](const wire::LeaseView& lease) { return lease.state != LeaseState::Revoked; });
  }
  sample.steps = TRY(newest_steps(dependencies));
  sample.at = dependencies.clock->now();
  return sample;
}

void write_picture(const TopSample& now, const TopSample* before, Output output,
                   const Dependencies& dependencies) {
  std::ostream& out = *dependencies.out;
  if (output == Output::Json) {
    out << cli::json_text(top_json(now, before)) << '\n';
  } else if (dependencies.screen_size) {
    out << cli::frame(top_text(now, before), dependencies.screen_size());
  } else {
    out << top_text(now, before);
  }
  out.flush();
}

}  // namespace

Result<void> show_top(const ShowTop& top, Output output, const Dependencies& dependencies) {
  const Duration interval = std::chrono::milliseconds(top.interval_ms);
  const bool is_live = !top.once && output != Output::Json && dependencies.screen_size;
  TopSample before = TRY(take_sample(dependencies));
  if (is_live) write_picture(before, nullptr, output, dependencies);
  bool goes_on = dependencies.wait(interval);
  if (!is_live) {
    const TopSample now = goes_on ? TRY(take_sample(dependencies)) : before;
    write_picture(now, goes_on ? &before : nullptr, output, dependencies);
    return {};
  }
  for (; goes_on; goes_on = dependencies.wait(interval)) {
    TopSample now = TRY(take_sample(dependencies));
    write_picture(now, &before, output, dependencies);
    before = std::move(now);
  }
  return {};
}

}  // namespace leasehold::brokerctl
