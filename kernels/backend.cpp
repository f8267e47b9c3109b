#include "kernels/backend.hpp"

namespace leasehold {
namespace {

RopeArgs rotation(LaunchSite site, const HeadsArgs& args, float* x, std::uint32_t n_heads) {
  return {.site = site,
          .x = x,
          .n_heads = n_heads,
          .head_dim = args.layout.head_dim,
          .rope_dim = args.rope_dim,
          .style = args.style,
          .cos_sin = args.cos_sin};
}

RmsNormArgs head_norm(LaunchSite site, const HeadsArgs& args, float* x, std::uint32_t n_heads) {
  return {.site = site,
          .x = x,
          .weight = site == LaunchSite::QueryNorm ? args.query_norm : args.key_norm,
          .out = x,
          .width = args.layout.head_dim,
          .epsilon = args.epsilon,
          .n_vectors = n_heads};
}

}  // namespace

LaunchStatus Backend::prepare_heads(const LaunchContext& context, const HeadsArgs& args) {
  const std::uint32_t n_kv_heads = args.layout.n_kv_heads;
  SequenceMask live = context.gates->all();
  // Runs the launch if a sequence is still live.
  const auto then = [&](auto&& launch) {
    if (live != 0) live &= launch().live;
  };
  if (args.query_norm) {
    then([&] {
      return rms_norm(context, head_norm(LaunchSite::QueryNorm, args, args.q, args.n_heads));
    });
  }
  if (args.key_norm) {
    then([&] {
      return rms_norm(context, head_norm(LaunchSite::KeyNorm, args, args.k, n_kv_heads));
    });
  }
  then([&] { return rope(context, rotation(LaunchSite::QueryRope, args, args.q, args.n_heads)); });
  then([&] { return rope(context, rotation(LaunchSite::KeyRope, args, args.k, n_kv_heads)); });
  then([&] {
    return kv_append(
        context,
        {.layout = args.layout, .k = args.k, .v = args.v, .block_tables = args.block_tables});
  });
  return {live};
}

LaunchStatus Backend::project(const LaunchContext& context, const ProjectionArgs& args) {
  SequenceMask live = context.gates->all();
  if (args.norm != nullptr) live &= rms_norm(context, *args.norm).live;
  if (args.swiglu != nullptr && live != 0) live &= swiglu(context, *args.swiglu).live;
  for (const MatmulArgs& matmul_args : args.matmuls)
    if (live != 0) live &= matmul(context, matmul_args).live;
  return {live};
}

LaunchStatus Backend::feed_forward(const LaunchContext& context, const FeedForwardArgs& args) {
  const MatmulArgs wide[] = {args.gate, args.up};
  const LaunchStatus gated = project(context, {.norm = args.norm, .matmuls = wide});
  if (gated.none_live()) return gated;
  const SwiGluArgs swiglu{args.gate.out, args.up.out, args.gate.weight.n_out};
  return {gated.live & project(context, {.swiglu = &swiglu, .matmuls = {&args.down, 1}}).live};
}

}  // namespace leasehold
