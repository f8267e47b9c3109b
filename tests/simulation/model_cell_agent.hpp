/// The agent of a cell beside the broker: moves the ceiling, and changes the part of one tenant. It
/// lowers the ceiling more often than a real agent, whose ceiling only grows until it is fenced. It
/// does not fail itself; its calls end with the broker that they were sent to.
#pragma once

#include <string>

#include "tests/simulation/model_broker.hpp"

namespace leasehold::simulation {

class CellAgent {
 public:
  CellAgent(Dependencies deps, std::string tenant) : deps_(deps), tenant_(std::move(tenant)) {}

  /// From now on the tenant is the cell's.
  void join();
  bool is_of_cell(std::string_view tenant) const { return has_joined_ && tenant == tenant_; }
  /// Beats arrive, etcd is lost, or the host is fenced and joins again. False: nothing happens.
  bool act();
  void change_part(std::uint32_t blocks);
  /// After the last fault all beats arrive, and the tenant has a part.
  void serve_without_end();

 private:
  void move_ceiling(TimePoint ceiling);
  TimePoint in(std::uint32_t least_ms, std::uint32_t more_ms);

  Dependencies deps_;
  std::string tenant_;
  bool has_joined_ = false;
  std::uint64_t incarnation_ = 1;
  std::uint64_t revision_ = 0;
};

}  // namespace leasehold::simulation
