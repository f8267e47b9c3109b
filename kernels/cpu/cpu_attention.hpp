/// Attention of the CPU backend. A step is processed in *waves* of rows whose partials fit the
/// scratch. The unit that computes the last partial of a row and head merges all of its partials,
/// in the order of the partitions. A wave with long contexts merges in a separate launch.
#pragma once

#include <atomic>
#include <vector>

#include "common/zeroed_array.hpp"
#include "kernels/cpu/cpu_resources.hpp"

namespace leasehold {

class CpuAttention {
 public:
  /// The resources outlive it.
  explicit CpuAttention(CpuResources& cpu);

  LaunchStatus run(const LaunchContext& context, const AttentionArgs& args);
  void clear();

 private:
  struct Wave;
  /// Queries [first_query, first_query + n_queries) of a kv head against a partition. Query i is
  /// head i mod (heads per kv head) of row first_row + i / (heads per kv head).
  struct TilePlan {
    std::uint32_t first_row;
    std::uint32_t first_query;
    std::uint32_t n_queries;
    std::uint32_t kv_head;
    std::uint32_t partition;
  };
  /// A head of a row.
  struct Query {
    std::uint32_t row;
    std::uint32_t head;
  };
  static Query query_of(const Wave& wave, const TilePlan& plan, std::uint32_t i);

  Wave next_wave(const LaunchContext& context, const AttentionArgs& args, std::uint32_t first_row);
  void add_tiles(const Wave& wave, std::uint32_t first, std::uint32_t end, std::uint32_t partition);
  void plan_tiles(const Wave& wave);
  void place_queries(const Wave& wave, const TilePlan& plan, AttentionTile& tile);
  float* partials_of(const Wave& wave, Query query);
  float* tile_scratch(std::uint32_t thread);
  LaunchStatus score(const Wave& wave);
  void merge_query(const LaunchPermit& permit, const Wave& wave, Query query);
  void merge_complete(const LaunchPermit& permit, const Wave& wave, const TilePlan& plan);
  LaunchStatus merge(const Wave& wave);

  CpuResources& cpu_;
  std::size_t max_partials_;                  // the most partials of a wave
  ZeroedArray<float> partials_;               // [max_partials_, partial_floats(head_dim)]
  std::size_t used_partials_ = 0;             // partials written since the last clear()
  std::vector<std::uint32_t> first_partial_;  // [max_rows + 1], of the running wave
  /// [max_rows, n_heads]: partitions of the running wave that no unit has computed yet
  std::vector<std::atomic<std::uint32_t>> partitions_left_;
  std::vector<TilePlan> tiles_;  // of the running wave; at most max_partials_
  std::size_t tile_scratch_stride_;
  ZeroedArray<float> tile_scratch_;  // [1 + threads, tile_scratch_stride_], see tile_scratch()
};

}  // namespace leasehold
