#include "kernels/cuda/row_operators.hpp"

namespace leasehold::cuda {

LaunchStatus RowOperators::embedding(const LaunchContext& context, const EmbeddingArgs& args) {
  cuda_.prepared.overwrite(args.out);
  EmbeddingArgs here = args;
  here.tokens = cuda_.step().tokens();
  return cuda_.runner->launch_one(context, label(context, LaunchSite::Embedding),
                                  [&](const PlanContext& plan, const LaunchPermit& permit) {
                                    return plan_embedding(plan, here, permit.open(args.table.data));
                                  });
}

LaunchStatus RowOperators::rms_norm(const LaunchContext& context, const RmsNormArgs& args,
                                    RowForm next) {
  cuda_.prepared.overwrite(args.out, args.width, next);
  return cuda_.runner->launch_one(context, label(context, args.site),
                                  [&](const PlanContext& plan, const LaunchPermit& permit) {
                                    return plan_rms_norm(plan, args, permit.open(args.weight),
                                                         cuda_.prepared.room_for(args.width, next));
                                  });
}

LaunchStatus RowOperators::prepare_heads(const LaunchContext& context, const HeadsArgs& args) {
  cuda_.prepared.overwrite(args.q);
  const auto plan_heads = [&](const PlanContext& plan, const LaunchPermit& permit) {
    const auto opened = [&](Leased<const float> handle) {
      return handle ? permit.open(handle) : nullptr;
    };
    return plan_rope_kv_append(
        {.gate = plan.gate,
         .kv = device::KvAddressing::of(args.layout, plan.layer, cuda_.step().block_tables()),
         .q = args.q,
         .k = args.k,
         .v = args.v,
         .q_norm = opened(args.query_norm),
         .k_norm = opened(args.key_norm),
         .cos_sin = cuda_.step().cos_sin(),
         .n_heads = args.n_heads,
         .n_kv_heads = args.layout.n_kv_heads,
         .head_dim = args.layout.head_dim,
         .rope_dim = args.rope_dim,
         .epsilon = args.epsilon,
         .style = args.style},
        plan.n_rows);
  };
  return cuda_.runner->launch_one(
      context, label(context, LaunchSite::KvAppend, Touches::TenantMemory), plan_heads);
}

LaunchStatus RowOperators::swiglu(const LaunchContext& context, const SwiGluArgs& args,
                                  RowForm next) {
  cuda_.prepared.overwrite(args.gate, args.width, next);
  return cuda_.runner->launch_one(context, label(context, LaunchSite::SwiGlu),
                                  [&](const PlanContext& plan, const LaunchPermit&) {
                                    return plan_swiglu(plan, args,
                                                       cuda_.prepared.room_for(args.width, next),
                                                       cuda_.blocks.row_parts());
                                  });
}

LaunchStatus RowOperators::expert_routing(const LaunchContext& context,
                                          const ExpertRoutingArgs& args) {
  return cuda_.runner->launch_one(context, label(context, LaunchSite::ExpertRouting),
                                  [&](const PlanContext& plan, const LaunchPermit&) {
                                    return plan_expert_routing(plan, args);
                                  });
}

LaunchStatus RowOperators::weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) {
  cuda_.prepared.overwrite(args.out);
  return cuda_.runner->launch_one(
      context, label(context, LaunchSite::ExpertSum),
      [&](const PlanContext& plan, const LaunchPermit&) { return plan_weighted_sum(plan, args); });
}

}  // namespace leasehold::cuda
