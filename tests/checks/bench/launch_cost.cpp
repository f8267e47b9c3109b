#include <algorithm>
#include <string>
#include <system_error>

#include "kernels/cpu/thread_pool.hpp"
#include "tests/checks/bench/poll_cost.hpp"
#include "tests/checks/bench/thread_time.hpp"

namespace leasehold::bench {
namespace {

constexpr double kWorkNs = 5'000;  // about a thread's mean work in a launch

void work() {
  const double end = wall_time_ns() + kWorkNs;
  while (wall_time_ns() < end) {
  }
}

template <class Tile>
double launch_us(ThreadPool& pool, Tile&& tile) {
  const double begin = wall_time_ns();
  pool.run(pool.threads(), [&](std::uint32_t, std::uint32_t) {
    tile();
    return true;
  });
  return (wall_time_ns() - begin) / 1e3;
}

}  // namespace

Result<Samples> measure_launch(std::uint32_t threads, std::uint32_t launches) {
  try {
    ThreadPool pool(threads);
    Samples samples;
    for (std::uint32_t i = 0; i < launches; ++i) {
      samples["empty_us"].push_back(launch_us(pool, [] {}));
      samples["meeting_us"].push_back(std::max(launch_us(pool, work) - kWorkNs / 1e3, 0.0));
    }
    return samples;
  } catch (const std::system_error& error) {
    return fail(Errc::SystemError, std::string("cannot start the compute threads: ") +
                                       error.what() + "; use fewer --threads");
  }
}

}  // namespace leasehold::bench
