#include "kernels/backend.hpp"

namespace leasehold {

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
