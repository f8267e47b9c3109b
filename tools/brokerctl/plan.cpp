#include "tools/brokerctl/plan.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/cli/size_option.hpp"
#include "common/machine/available_memory.hpp"
#include "kernels/op_args.hpp"
#include "tools/cli/json_text.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr int kExitDoesNotFit = 1;
constexpr std::uint64_t kSizeStep = 1 << 20;

std::uint64_t rounded_up(std::uint64_t bytes) {
  return (bytes + kSizeStep - 1) / kSizeStep * kSizeStep;
}

std::string draft_advice(const PlanRequest& request) {
  if (request.draft_model.empty()) return "";
  return fmt::format(", draft-model = \"{}\", draft-context = {}, max-batch-size = {}",
                     request.draft_model, request.draft_context, request.max_batch_size);
}

std::string advice(const CapacityPlan& plan, const PlanRequest& request) {
  return fmt::format(
      "\nbroker.toml: capacity = \"{}\", weights-capacity = \"{}\", max-extents = {}\n"
      "worker.toml: max-context = {}, kv-type = \"{}\"{}\n"
      "each tenant: brokerctl tenants admit NAME --max-blocks {}\n",
      size_text(plan.capacity_bytes), size_text(rounded_up(plan.worker_bytes())),
      request.max_extents, plan.context, request.kv_type, draft_advice(request),
      plan.blocks_per_tenant);
}

std::string skipped(const CapacityPlan& plan) {
  if (plan.skipped_layers == 0) return "";
  return fmt::format(", without {} layer{} of multi-token prediction", plan.skipped_layers,
                     plan.skipped_layers == 1 ? "" : "s");
}

std::string text_of(const CapacityPlan& plan, const PlanOptions& options) {
  const PlanRequest& request = options.request;
  using cli::bytes_text;
  cli::Table table{.columns = {{"WHAT"}, {"BYTES", true}, {"FROM"}}};
  const auto row = [&](const char* what, std::uint64_t bytes, std::string from) {
    table.rows.push_back({what, bytes_text(bytes), std::move(from)});
  };
  row("weights", plan.weights_bytes, "the model file, as the worker lays it out" + skipped(plan));
  if (!request.draft_model.empty()) {
    row("draft weights", plan.draft_weights_bytes, "--draft-model");
    row("draft texts", plan.draft_texts_bytes,
        fmt::format("keys, values and states of {} texts", request.max_batch_size));
  }
  const bool has_windows = plan.window_blocks_per_tenant > 0;
  row("KV of a token", plan.kv_bytes_per_token,
      request.kv_type + (has_windows ? ", layers without a window" : ", all layers"));
  row("KV block", plan.block_bytes, fmt::format("{} tokens", KvLayout::kBlockTokens));
  if (has_windows) {
    row("windows of a tenant", plan.window_blocks_per_tenant * plan.block_bytes,
        fmt::format("at most {} blocks: the window of a request and the rows of a step",
                    plan.window_blocks_per_tenant));
  }
  if (plan.state_blocks_per_tenant > 0) {
    row("state of a tenant", plan.state_blocks_per_tenant * plan.block_bytes,
        fmt::format("{} blocks: two copies of recurrent layers; cached states take at most half "
                    "of a lease's blocks",
                    plan.state_blocks_per_tenant));
  }
  row("extent", plan.extent_bytes, fmt::format("{} blocks", plan.extent_bytes / plan.block_bytes));
  row("KV of a tenant", std::uint64_t{plan.extents_per_tenant} * plan.extent_bytes,
      fmt::format("{} blocks for a request of {} tokens, in {} extent{}", plan.blocks_per_tenant,
                  plan.context, plan.extents_per_tenant, plan.extents_per_tenant == 1 ? "" : "s"));
  row("KV of all", plan.capacity_bytes,
      fmt::format("{} tenant{}", request.tenants, request.tenants == 1 ? "" : "s"));
  row("a step", plan.step_bytes, "with the worker's default limits");
  row("needed", plan.needed_bytes(),
      request.draft_model.empty() ? "weights, KV of all, a step"
                                  : "weights, draft, KV of all, a step");
  row("memory", plan.memory_bytes, options.memory_bytes > 0 ? "--memory" : "available here");
  const std::string verdict =
      plan.fits() ? fmt::format("\nIt fits, with {} left.\n",
                                bytes_text(plan.memory_bytes - plan.needed_bytes()))
                  : fmt::format(
                        "\nIt does not fit: {} are missing. Use fewer tenants, a shorter "
                        "--context, or a smaller model.{}\n",
                        bytes_text(plan.needed_bytes() - plan.memory_bytes),
                        request.draft_model.empty()
                            ? ""
                            : " A lower --max-batch-size leaves the draft less to keep.");
  return cli::render(table) + verdict + (plan.fits() ? advice(plan, request) : "");
}

wire::Json json_of(const CapacityPlan& plan, const PlanRequest& request) {
  return {{"fits", plan.fits()},
          {"tenants", request.tenants},
          {"context", plan.context},
          {"skipped_layers", plan.skipped_layers},
          {"weights_bytes", plan.weights_bytes},
          {"draft_weights_bytes", plan.draft_weights_bytes},
          {"draft_texts_bytes", plan.draft_texts_bytes},
          {"kv_bytes_per_token", plan.kv_bytes_per_token},
          {"block_bytes", plan.block_bytes},
          {"state_blocks_per_tenant", plan.state_blocks_per_tenant},
          {"window_blocks_per_tenant", plan.window_blocks_per_tenant},
          {"blocks_per_tenant", plan.blocks_per_tenant},
          {"extent_bytes", plan.extent_bytes},
          {"extents_per_tenant", plan.extents_per_tenant},
          {"capacity_bytes", plan.capacity_bytes},
          {"step_bytes", plan.step_bytes},
          {"needed_bytes", plan.needed_bytes()},
          {"memory_bytes", plan.memory_bytes}};
}

}  // namespace

Result<PrintText> plan(const PlanOptions& options) {
  const std::uint64_t memory_bytes =
      options.memory_bytes > 0 ? options.memory_bytes : TRY(machine_memory()).available_bytes;
  const CapacityPlan planned = TRY(plan_capacity(options.request, memory_bytes));
  return PrintText{.text = text_of(planned, options),
                   .json = cli::json_text(json_of(planned, options.request), 2) + '\n',
                   .exit_code = planned.fits() ? kExitOk : kExitDoesNotFit};
}

}  // namespace leasehold::brokerctl
