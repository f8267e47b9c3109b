#include "tools/brokerctl/repeated_output.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ipc/client/parse_message.hpp"
#include "tools/cli/json_text.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

constexpr std::string_view kTitles =
    "WORKER              STEP   TIME_US  SEQS  PREFILL  DECODE  RUNNING  WAITING  "
    "TENANTS (PREFILL+DECODE)";

std::string line_of(const wire::StepView& view) {
  const wire::WorkerStep& step = view.step;
  std::string tenants;
  for (const wire::TenantTokens& each : step.tenants) {
    tenants += fmt::format("{}{} {}+{}", tenants.empty() ? "" : ", ", each.tenant.value,
                           each.prefill_tokens, each.decode_tokens);
  }
  if (step.other_tenants > 0) tenants += fmt::format(", {} more", step.other_tenants);
  return fmt::format("{:<12} {:>11} {:>9} {:>5} {:>8} {:>7} {:>8} {:>8}  {}", view.worker,
                     step.step, step.duration_us, step.n_seqs, step.prefill_tokens,
                     step.decode_tokens, step.running, step.waiting, tenants);
}

class StepReader {
 public:
  StepReader(const WatchSteps& watch, Output output, const Dependencies& dependencies)
      : watch_(watch), output_(output), dependencies_(dependencies) {}

  Result<void> read() {
    TRY(dependencies_.call(wire::StepWatch::kMethod, watch_.message.to_json()));
    if (output_ != Output::Json) write(std::string(kTitles));
    do {
      const Json reply = TRY(dependencies_.call("step.list", Json::object()));
      for (const auto& view : TRY(client::parse_items<wire::StepView>(reply))) show(view);
      dependencies_.out->flush();
    } while (!is_full() &&
             dependencies_.wait(std::chrono::milliseconds(watch_.message.interval_ms)));
    return {};
  }

 private:
  bool is_full() const { return watch_.limit != 0 && shown_ >= watch_.limit; }

  void show(const wire::StepView& view) {
    const auto [last, is_new] = last_steps_.try_emplace(view.attachment, view.step.step);
    if (is_full() || (!is_new && std::exchange(last->second, view.step.step) == view.step.step)) {
      return;
    }
    ++shown_;
    write(output_ == Output::Json ? cli::json_text(view.to_json()) : line_of(view));
  }

  void write(const std::string& line) { *dependencies_.out << line << '\n'; }

  const WatchSteps& watch_;
  Output output_;
  const Dependencies& dependencies_;
  std::map<AttachmentId, std::uint64_t> last_steps_;  // the last step shown of each attachment
  std::uint64_t shown_ = 0;
};

}  // namespace

Result<void> show_steps(const WatchSteps& watch, Output output, const Dependencies& dependencies) {
  return StepReader(watch, output, dependencies).read();
}

}  // namespace leasehold::brokerctl
