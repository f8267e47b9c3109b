#include "common/fault_point.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>

namespace leasehold {
namespace detail {

bool fault_points_armed = false;

namespace {
FaultSite armed_site{};
int armed_signal = 0;
std::atomic<int> arrivals_left{0};
}  // namespace

void reach_fault_point(FaultSite site) {
  if (site != armed_site) return;
  // Raised in this thread: a signal to the process may reach another thread first, and this one
  // would pass the point.
  if (arrivals_left.fetch_sub(1) == 1) ::raise(armed_signal);
}

}  // namespace detail

namespace {

constexpr std::array<std::string_view, kFaultSiteCount> kNames{
    "broker.journal.written",
    "broker.grant.decided",
    "broker.grant.published",
    "broker.revoke.published",
    "broker.fence.decided",
    "broker.scrubbed",
    "worker.attached",
    "worker.resumed",
    "worker.redelivered",
    "worker.weights.filled",
    "worker.extents.mapped",
    "worker.unit.polled",
    "worker.commit.before_record",
    "worker.commit.after_record",
    "worker.extents.unmapped",
    "worker.spill.read",
    "tenant.lease.acquired",
    "tenant.request.submitted",
    "tenant.token.received",
    "cell.beat.sent",
    "cell.beat.arrived",
    "cell.part.admitted",
    "cell.part.written",
    "cell.keys.checked",
    "gateway.expiry.decided",
    "gateway.host.expired",
    "gateway.move.decided",
    "gateway.successor.runs",
    "gateway.answer.ready",
};

struct Plan {
  FaultSite site{};
  int signal_number = 0;
  int arrival = 1;
};

Result<Plan> parse(std::string_view text) {
  const auto first = text.find(':');
  const std::string_view site_name = text.substr(0, first);
  std::string_view action = first == std::string_view::npos ? "" : text.substr(first + 1);
  Plan plan;
  if (const auto second = action.find(':'); second != std::string_view::npos) {
    const std::string_view count = action.substr(second + 1);
    const char* end = count.data() + count.size();
    const auto [rest, error] = std::from_chars(count.data(), end, plan.arrival);
    if (error != std::errc{} || rest != end) plan.arrival = 0;  // refused below
    action = action.substr(0, second);
  }
  if (action == "kill") plan.signal_number = SIGKILL;
  if (action == "stop") plan.signal_number = SIGSTOP;
  for (int i = 0; i < kFaultSiteCount; ++i) {
    plan.site = static_cast<FaultSite>(i);
    const bool found = kNames[static_cast<std::size_t>(i)] == site_name;
    if (found && plan.signal_number != 0 && plan.arrival > 0) return plan;
  }
  return fail(
      Errc::BadRequest,
      fmt::format("LEASEHOLD_FAULT={}: expected POINT:kill|stop[:N] with a known point", text));
}

}  // namespace

std::string_view name(FaultSite site) {
  return kNames[static_cast<std::size_t>(site)];
}

Result<void> arm_fault_points_from_environment() {
  const char* text = std::getenv("LEASEHOLD_FAULT");
  if (text == nullptr) return {};
  const Plan plan = TRY(parse(text));
  detail::armed_site = plan.site;
  detail::armed_signal = plan.signal_number;
  detail::arrivals_left = plan.arrival;
  detail::fault_points_armed = true;
  return {};
}

}  // namespace leasehold
