#include "kernels/backend.hpp"

namespace leasehold {

LaunchStatus Backend::project(const LaunchContext& context, const ProjectionArgs& args) {
  LaunchStatus status{context.gates->all()};
  if (args.norm != nullptr) status &= rms_norm(context, *args.norm);
  if (args.swiglu != nullptr && !status.none_live()) status &= swiglu(context, *args.swiglu);
  for (const MatmulArgs& matmul_args : args.matmuls)
    if (!status.none_live()) status &= matmul(context, matmul_args);
  if (!status.none_live()) status &= cap_products(context, args);
  return status;
}

LaunchStatus Backend::cap_products(const LaunchContext& context, const ProjectionArgs& args) {
  LaunchStatus status{context.gates->all()};
  for (const MatmulArgs& matmul : args.matmuls)
    if (args.softcap > 0 && !status.none_live())
      status &= softcap(context, {.x = matmul.out,
                                  .width = matmul.weight.n_out,
                                  .cap = args.softcap,
                                  .select = matmul.select});
  return status;
}

LaunchStatus Backend::prepare_and_attend(const LaunchContext& context, const HeadsArgs& heads,
                                         const AttentionArgs& attention_args) {
  LaunchStatus status = prepare_heads(context, heads);
  if (!status.none_live()) status &= attention(context, attention_args);
  return status;
}

LaunchStatus Backend::feed_forward(const LaunchContext& context, const FeedForwardArgs& args) {
  const MatmulArgs wide[] = {args.gate, args.up};
  const bool has_up = bool{args.up.weight.data};
  LaunchStatus status =
      project(context, {.norm = args.norm, .matmuls = std::span(wide).first(has_up ? 2 : 1)});
  if (status.none_live()) return status;
  const SwiGluArgs swiglu{args.gate.out, has_up ? args.up.out : args.gate.out,
                          args.gate.weight.n_out, args.activation};
  return status &= project(context, {.swiglu = &swiglu, .matmuls = {&args.down, 1}});
}

}  // namespace leasehold
