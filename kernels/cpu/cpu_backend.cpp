#include "kernels/cpu/cpu_backend.hpp"

#include <system_error>

#include "common/machine/start_thread.hpp"

namespace leasehold {

Result<std::unique_ptr<CpuBackend>> CpuBackend::create(const BackendLimits& limits,
                                                       std::vector<ThreadGate> gates, SimdPath path,
                                                       const PoolNodes& nodes) {
  const std::string path_name(leasehold::name(path));
  const std::string_view missing = missing_for(path);
  if (!missing.empty())
    return fail(Errc::BadRequest, "this CPU does not support " + path_name + ": it lacks " +
                                      std::string(missing) +
                                      "; choose another --simd path or omit the option");
  if (!passes_self_check(path))
    return fail(Errc::SystemError, "products by " + path_name +
                                       " differ from the plain ones on this CPU; choose another "
                                       "--simd path or omit the option");
  return create(limits, std::move(gates), row_kernels(path), "cpu-" + path_name, nodes);
}

Result<std::unique_ptr<CpuBackend>> CpuBackend::create(const BackendLimits& limits,
                                                       std::vector<ThreadGate> gates,
                                                       const RowKernels& kernels, std::string name,
                                                       const PoolNodes& nodes) {
  const std::size_t threads = gates.size();
  try {
    return std::unique_ptr<CpuBackend>(
        new CpuBackend(limits, std::move(gates), kernels, std::move(name), nodes));
  } catch (const std::system_error& error) {
    return std::unexpected(
        thread_refused(std::to_string(threads) + " compute threads", error, "use fewer --threads"));
  }
}

LaunchStatus CpuBackend::matmul(const LaunchContext& context, const MatmulArgs& args) {
  expect_within_limits(cpu_.limits, context);
  expects(args.weight.n_in <= cpu_.limits.max_width, "matrix rows are at most max_width long");
  if (args.weight.layout == MatrixLayout::RowGroups)
    return int8_matmuls_.project(context, {.matmuls = {&args, 1}});
  return float_matmuls_.matmul(context, args);
}

LaunchStatus CpuBackend::project(const LaunchContext& context, const ProjectionArgs& args) {
  if (!Int8Matmuls::can_project(args)) return Backend::project(context, args);
  return int8_matmuls_.project(context, args);
}

LaunchStatus CpuBackend::feed_forward(const LaunchContext& context, const FeedForwardArgs& args) {
  if (!int8_matmuls_.can_fuse(context, args)) return Backend::feed_forward(context, args);
  const LaunchStatus gated = int8_matmuls_.gate_and_up(context, args);
  if (gated.none_live()) return gated;
  return {gated.live & matmul(context, args.down).live};
}

LaunchStatus CpuBackend::expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) {
  expect_within_limits(cpu_.limits, context, args);
  return args.weight.layout == MatrixLayout::RowGroups
             ? int8_matmuls_.expert_matmul(context, args, experts_)
             : float_matmuls_.expert_matmul(context, args, experts_);
}

LaunchStatus CpuBackend::copy_in(const LaunchContext& context, const CopyInArgs& args) {
  return cpu_.launcher.run(context, label(context, args.site, touches_of(args)),
                           tiles_for(args.size_bytes, kCopyUnitBytes),
                           [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                             copy_in_unit(permit, context, args, tile);
                           });
}

LaunchStatus CpuBackend::copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) {
  return cpu_.launcher.run(context, label(context, LaunchSite::BlockCopy, Touches::TenantMemory),
                           copy_piece_count(args, kCopyUnitBytes),
                           [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                             copy_piece(permit, args, tile);
                           });
}

void CpuBackend::clear_workspace() {
  int8_matmuls_.clear();
  float_matmuls_.clear();
  attention_.clear();
}

}  // namespace leasehold
