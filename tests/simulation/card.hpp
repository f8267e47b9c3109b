/// A card of the simulated machine: its memory, and what its driver reports.
///
/// Memory exists while the agent has its handle, a process imports it, or the driver still tears
/// down what an exited process had. New memory always holds data of an earlier user. Its
/// descriptors are real ones, so only a descriptor identifies which memory was lent. The card
/// checks no promise; the judge does.
///
/// Lifetime: the schedule's. Threads: one.
#pragma once

#include <vector>

#include "common/machine/unique_fd.hpp"
#include "tests/simulation/machine.hpp"

namespace leasehold::simulation {

class Card {
 public:
  struct Memory {
    std::uint64_t size_bytes = 0;
    const Process* agent = nullptr;  ///< Has the handle.
    int imports = 0;                 ///< By running processes.
    int exiting = 0;                 ///< By processes that have exited.
    bool kept = false;               ///< The driver never finishes tearing it down.
    bool abandoned = false;          ///< No caller waits for its return any more.
    bool zero = false;
    bool exists() const { return agent != nullptr || imports > 0 || exiting > 0; }
  };

  Card(Machine& machine, std::uint64_t total_bytes)
      : machine_(&machine), total_bytes_(total_bytes), noisy_(machine.one_in(4)) {}

  // Driver calls of an agent.
  std::optional<std::size_t> allocate(std::uint64_t size_bytes, const Process& agent);
  void clear(std::size_t memory) { memories_.at(memory).zero = true; }
  void release(std::size_t memory) { memories_.at(memory).agent = nullptr; }
  std::uint64_t free_bytes() const;
  std::uint64_t total_bytes() const { return total_bytes_; }
  UniqueFd descriptor(std::size_t memory) const;
  static std::size_t memory_of(const UniqueFd& descriptor);

  // Calls of processes that use the memory.
  void import(std::size_t memory) { ++memories_.at(memory).imports; }
  void unmap(std::size_t memory) { --memories_.at(memory).imports; }
  void write(std::size_t memory) { memories_.at(memory).zero = false; }
  /// The importer has exited; the driver tears the import down later, or never.
  void importer_exited(std::size_t memory);
  void agent_died(const Process& agent);
  void give_up(std::size_t memory) { memories_.at(memory).abandoned = true; }

  const Memory& at(std::size_t memory) const { return memories_.at(memory); }

  /// The driver finishes one import of an exited process. False when there is none.
  bool finish_teardown();
  /// Another program allocates memory or frees some.
  bool disturb();
  /// True when more memory came back than the release being waited for: the free figure may then
  /// hide memory that is kept.
  bool free_figure_unreliable() const { return free_figure_unreliable_; }
  std::uint32_t agents_lost() const { return agents_lost_; }

 private:
  Machine* machine_;
  std::uint64_t total_bytes_;
  std::uint64_t others_bytes_ = 0;
  bool noisy_;
  bool free_figure_unreliable_ = false;
  std::uint32_t agents_lost_ = 0;
  std::vector<Memory> memories_;
};

}  // namespace leasehold::simulation
