#include "kernels/backend.hpp"

namespace leasehold {
namespace {

/// Runs launches one after another until no sequence is live.
class LaunchSequence {
 public:
  explicit LaunchSequence(const LaunchContext& context) : live_(context.gates->all()) {}

  template <class Launch>
  void then(Launch&& launch) {
    if (live_ != 0) live_ &= launch().live;
  }
  LaunchStatus status() const { return {live_}; }

 private:
  SequenceMask live_;
};

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
  LaunchSequence launches(context);
  if (args.query_norm) {
    launches.then([&] {
      return rms_norm(context, head_norm(LaunchSite::QueryNorm, args, args.q, args.n_heads));
    });
  }
  if (args.key_norm) {
    launches.then([&] {
      return rms_norm(context, head_norm(LaunchSite::KeyNorm, args, args.k, n_kv_heads));
    });
  }
  launches.then(
      [&] { return rope(context, rotation(LaunchSite::QueryRope, args, args.q, args.n_heads)); });
  launches.then(
      [&] { return rope(context, rotation(LaunchSite::KeyRope, args, args.k, n_kv_heads)); });
  launches.then([&] {
    return kv_append(
        context,
        {.layout = args.layout, .k = args.k, .v = args.v, .block_tables = args.block_tables});
  });
  return launches.status();
}

}  // namespace leasehold
