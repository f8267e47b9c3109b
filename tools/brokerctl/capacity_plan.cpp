#include "tools/brokerctl/capacity_plan.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "broker/books/extents.hpp"
#include "common/cli/size_option.hpp"
#include "common/machine/available_memory.hpp"
#include "model/config.hpp"
#include "model/kv_type.hpp"
#include "model/weights_plan.hpp"
#include "tools/cli/json_text.hpp"
#include "tools/cli/table.hpp"
#include "worker/engine/engine_limits.hpp"
#include "worker/kv/sequence_record.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr int kExitDoesNotFit = 1;
constexpr std::uint64_t kSizeStep = 1 << 20;

template <class Number>
Number ceil_div(Number number, Number by) {
  return (number + by - 1) / by;
}

std::string advice(const CapacityPlan& plan, const PlanRequest& request) {
  return fmt::format(
      "\nbroker.toml: capacity = \"{}\", weights-capacity = \"{}\", max-extents = {}\n"
      "worker.toml: max-context = {}, kv-type = \"{}\"\n"
      "each tenant: brokerctl tenants admit NAME --max-blocks {}\n",
      size_text(plan.capacity_bytes),
      size_text(ceil_div(plan.weights_bytes, kSizeStep) * kSizeStep), request.max_extents,
      plan.context, request.kv_type, plan.blocks_per_tenant);
}

std::string text_of(const CapacityPlan& plan, const PlanRequest& request) {
  using cli::bytes_text;
  cli::Table table{.columns = {{"WHAT"}, {"BYTES", true}, {"FROM"}}};
  const auto row = [&](const char* what, std::uint64_t bytes, std::string from) {
    table.rows.push_back({what, bytes_text(bytes), std::move(from)});
  };
  row("weights", plan.weights_bytes, "the model file, as the worker lays it out");
  row("KV of a token", plan.kv_bytes_per_token, request.kv_type + ", all layers");
  row("KV block", plan.block_bytes, fmt::format("{} tokens", KvLayout::kBlockTokens));
  row("extent", plan.extent_bytes, fmt::format("{} blocks", plan.extent_bytes / plan.block_bytes));
  row("KV of a tenant", std::uint64_t{plan.extents_per_tenant} * plan.extent_bytes,
      fmt::format("{} blocks for a request of {} tokens, in {} extent{}", plan.blocks_per_tenant,
                  plan.context, plan.extents_per_tenant, plan.extents_per_tenant == 1 ? "" : "s"));
  row("KV of all", plan.capacity_bytes,
      fmt::format("{} tenant{}", request.tenants, request.tenants == 1 ? "" : "s"));
  row("a step", plan.step_bytes, "with the worker's default limits");
  row("needed", plan.needed_bytes(), "weights, KV of all, a step");
  row("memory", plan.memory_bytes, request.memory_bytes > 0 ? "--memory" : "available here");
  const std::string verdict =
      plan.fits() ? fmt::format("\nIt fits, with {} left.\n",
                                bytes_text(plan.memory_bytes - plan.needed_bytes()))
                  : fmt::format(
                        "\nIt does not fit: {} are missing. Use fewer tenants, a shorter "
                        "--context, or a smaller model.\n",
                        bytes_text(plan.needed_bytes() - plan.memory_bytes));
  return cli::render(table) + verdict + (plan.fits() ? advice(plan, request) : "");
}

wire::Json json_of(const CapacityPlan& plan, const PlanRequest& request) {
  return {{"fits", plan.fits()},
          {"tenants", request.tenants},
          {"context", plan.context},
          {"weights_bytes", plan.weights_bytes},
          {"kv_bytes_per_token", plan.kv_bytes_per_token},
          {"block_bytes", plan.block_bytes},
          {"blocks_per_tenant", plan.blocks_per_tenant},
          {"extent_bytes", plan.extent_bytes},
          {"extents_per_tenant", plan.extents_per_tenant},
          {"capacity_bytes", plan.capacity_bytes},
          {"step_bytes", plan.step_bytes},
          {"needed_bytes", plan.needed_bytes()},
          {"memory_bytes", plan.memory_bytes}};
}

}  // namespace

/// Larger extents hold more blocks per byte, so the capacity may shrink when they grow. The loops
/// end because the extent size never falls, and with the largest extents each tenant needs one.
void choose_capacity(CapacityPlan& plan, std::uint32_t tenants, std::uint32_t max_extents) {
  const auto chosen = [&] {
    return choose_extent_size(plan.capacity_bytes, plan.block_bytes, max_extents);
  };
  plan.capacity_bytes = std::uint64_t{tenants} * plan.blocks_per_tenant * plan.block_bytes;
  plan.extent_bytes = 0;
  while (chosen() > plan.extent_bytes) {
    plan.extent_bytes = chosen();
    const std::uint64_t blocks_per_extent = plan.extent_bytes / plan.block_bytes;
    plan.extents_per_tenant = static_cast<std::uint32_t>(
        ceil_div<std::uint64_t>(plan.blocks_per_tenant, blocks_per_extent));
    plan.capacity_bytes = std::uint64_t{tenants} * plan.extents_per_tenant * plan.extent_bytes;
  }
  while (chosen() < plan.extent_bytes) plan.capacity_bytes += plan.extent_bytes;
}

Result<CapacityPlan> plan_capacity(const PlanRequest& request, std::uint64_t memory_bytes) {
  if (request.tenants > request.max_extents) {
    return fail(Errc::BadRequest,
                fmt::format("{} tenants need an extent each, and --max-extents is {}; use fewer "
                            "tenants{}",
                            request.tenants, request.max_extents,
                            request.max_extents < kMaxExtents
                                ? fmt::format(", or raise it; it is at most {}", kMaxExtents)
                                : "; --max-extents is at most that"));
  }
  const GgufFile file = TRY(GgufFile::open(request.model));
  ModelConfig config = TRY(read_config(file));
  if (request.context > config.n_context) {
    return fail(Errc::BadRequest, fmt::format("--context is {}, and the model has {} tokens",
                                              request.context, config.n_context));
  }
  if (request.context > 0) config.n_context = request.context;
  const KvLayout kv = TRY(kv_layout_of(config, *kv_type_from_name(request.kv_type)));
  const ChosenPlan weights =
      TRY(choose_weights_plan(file, config, std::nullopt, WeightsScope::Model));
  CapacityPlan plan{.context = config.n_context,
                    .weights_bytes = weights.plan.size_bytes(),
                    .kv_bytes_per_token = kv.block_size_bytes() / KvLayout::kBlockTokens,
                    .block_bytes = kv.block_size_bytes(),
                    .step_bytes = step_memory_bytes({}, config),
                    .memory_bytes = memory_bytes};
  plan.blocks_per_tenant = ceil_div(plan.context, KvLayout::kBlockTokens) +
                           record_block_count(plan.context, plan.block_bytes);
  choose_capacity(plan, request.tenants, request.max_extents);
  return plan;
}

Result<PrintText> plan(const PlanRequest& request) {
  const std::uint64_t memory_bytes =
      request.memory_bytes > 0 ? request.memory_bytes : TRY(machine_memory()).available_bytes;
  const CapacityPlan planned = TRY(plan_capacity(request, memory_bytes));
  return PrintText{.text = text_of(planned, request),
                   .json = cli::json_text(json_of(planned, request), 2) + '\n',
                   .exit_code = planned.fits() ? kExitOk : kExitDoesNotFit};
}

}  // namespace leasehold::brokerctl
